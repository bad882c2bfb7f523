//! Decoding ahead: what it must not change, and what it must save.

use std::collections::BTreeMap;
use std::fs;

use episode_pool::pool_core::Topology;
use episode_pool::{Batch, Builder, DecodeReport, EpisodePool, Error, Loader, LoaderOptions};
use testkit::fixtures;

use crate::support::{builder, fixture};

/// Threads and bytes: from one thread that holds nothing to several that hold everything.
const MEANS: [(usize, u64); 5] = [(1, 0), (1, 1 << 20), (2, 3 << 20), (3, 0), (4, 1 << 30)];

/// Batches of an epoch up to the first error, that error's text, and what decoding has cost.
fn epoch(pool: &EpisodePool) -> (Vec<Batch>, Option<String>, DecodeReport) {
    let options = LoaderOptions {
        batch_size: 7,
        ..LoaderOptions::default()
    };
    let mut epoch = Loader::new(pool, options).unwrap().epoch(0).unwrap();
    let (mut batches, mut failure) = (Vec::new(), None);
    for batch in epoch.by_ref() {
        match batch {
            Ok(batch) => batches.push(batch),
            Err(error) => failure = Some(describe(&error)),
        }
    }
    let mut decode = DecodeReport::default();
    for report in epoch.finish() {
        decode.merge(report.decode);
    }
    (batches, failure, decode)
}

fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

fn with_means(builder: Builder, (num_threads, decode_ahead_bytes): (usize, u64)) -> EpisodePool {
    builder
        .num_threads(num_threads)
        .decode_ahead_bytes(decode_ahead_bytes)
        .build()
        .unwrap()
}

fn windows(camera: &str) -> BTreeMap<String, Vec<f64>> {
    let deltas = vec![-0.2, -0.1, 0.0, 0.3];
    BTreeMap::from([(camera.to_owned(), deltas)])
}

#[test]
fn threads_and_memory_change_nothing_about_the_samples() {
    let cases = [
        ("pusht_like", "observation.image", 0),
        ("pusht_like", "observation.image", 3),
        ("h264_gop30", "observation.images.front", 2),
    ];
    for (name, camera, num_workers) in cases {
        let make = || {
            fixture(name)
                .delta_timestamps(windows(camera))
                .episode_pool_size(3)
                .episodes([0, 1, 4])
                .topology(Topology::new(0, 1, 0, num_workers).unwrap())
        };
        let (expected, failure, _) = epoch(&with_means(make(), MEANS[0]));
        assert_eq!(failure, None);
        for means in &MEANS[1..] {
            let (batches, failure, _) = epoch(&with_means(make(), *means));
            assert_eq!(failure, None);
            assert!(batches == expected, "{name}, {means:?}");
        }
        // And they are what each frame is by itself.
        let pool = make().build().unwrap();
        let batch = &expected[expected.len() / 2];
        let pictures = batch.fields.get(camera).unwrap();
        let indices = batch.fields.get("index").unwrap().as_i64().unwrap();
        let sample_len = pictures.as_u8().unwrap().len() / batch.len();
        for (&index, found) in indices
            .iter()
            .zip(pictures.as_u8().unwrap().chunks(sample_len))
        {
            let sample = pool.sample(index as usize).unwrap();
            assert!(
                sample.fields.get(camera).unwrap().as_u8().unwrap() == found,
                "{name} {index}"
            );
        }
    }
}

#[test]
fn each_frame_is_decoded_once_where_there_is_room_for_all() {
    // GOPs of 30 in episodes of other lengths: every frame of both cameras is wanted, so none is decoded for nothing.
    let pool = with_means(fixture("h264_gop30"), (2, 1 << 30));
    let (batches, _, decode) = epoch(&pool);
    let samples: usize = batches.iter().map(Batch::len).sum();
    assert_eq!(decode.frames_used, 2 * samples as u64);
    // A decoder opens with the first frame of each file, too, which is then decoded again.
    let first_frames = decode.frames_decoded - decode.frames_used;
    assert!(first_frames <= 4, "{decode:?}");
    assert!(decode.gops_decoded < decode.frames_used / 20, "{decode:?}");
    assert!(
        decode.decoder_opens <= 3 * 2,
        "one a thread and kind of stream: {decode:?}"
    );
}

#[test]
fn memory_stays_within_the_budget_and_more_of_it_saves_decoding() {
    let mut decoded = u64::MAX;
    for budget in [2 << 20, 8 << 20, 32 << 20, 256 << 20] {
        let (_, failure, decode) = epoch(&with_means(fixture("h264_gop30"), (2, budget)));
        assert_eq!(failure, None);
        assert!(decode.peak_held_bytes <= budget, "{budget}: {decode:?}");
        assert!(decode.frames_decoded < decoded, "{budget}: {decode:?}");
        decoded = decode.frames_decoded;
    }
}

#[test]
fn the_frames_of_a_window_share_a_pass() {
    let windows = BTreeMap::from([(
        "observation.images.front".to_owned(),
        (0..20).map(|frame| f64::from(frame) / 30.0).collect(),
    )]);
    // Nothing is held from one sample to the next.
    let make = || fixture("h264_gop30").episodes([2]);
    let (_, _, single) = epoch(&with_means(make(), (1, 0)));
    let (_, _, window) = epoch(&with_means(make().delta_timestamps(windows), (1, 0)));
    assert!(window.frames_used > 8 * single.frames_used, "{window:?}");
    assert!(window.gops_decoded < 2 * single.gops_decoded, "{window:?}");
}

/// A damaged packet is found long before the sample that wants its frame; it must be told in that sample's turn.
#[test]
fn damage_that_is_met_ahead_is_told_in_its_turn() {
    let folder = fixtures::copy_dataset("h264_gop30");
    let video = "videos/observation.images.front/chunk-000/file-000.mp4";
    let path = folder.path().join(video);
    let mut bytes = fs::read(&path).unwrap();
    // Late in the file's last GOP but one, so that few frames suffer.
    let late = bytes.len() * 9 / 10;
    bytes[late..late + 400].fill(0);
    fs::write(&path, bytes).unwrap();

    let make = || builder(folder.path()).seed(7);
    let (expected, failure, _) = epoch(&with_means(make(), MEANS[0]));
    let failure = failure.expect("a damaged packet is an error");
    assert!(
        failure.contains(video) && failure.contains("episode"),
        "{failure}"
    );
    assert!(!expected.is_empty(), "the damage is not in the first batch");
    for means in &MEANS[1..] {
        let (batches, found, _) = epoch(&with_means(make(), *means));
        assert_eq!(found.as_ref(), Some(&failure), "{means:?}");
        assert!(batches == expected, "{means:?}");
    }
}

#[test]
fn an_epoch_can_be_dropped_anywhere() {
    let pool = with_means(fixture("h264_gop30"), (2, 1 << 30));
    for samples in [0, 1, 20] {
        let mut epoch = pool.epoch(0).unwrap();
        let taken = epoch.by_ref().take(samples).filter(Result::is_ok);
        assert_eq!(taken.count(), samples);
        drop(epoch);
    }
}

#[test]
fn a_loader_dropped_in_the_middle_of_a_batch_does_not_finish_it() {
    // One batch for the whole epoch, decoded frame by frame: it takes a hundred times as long as what is done before it is dropped.
    let pool = with_means(fixture("h264_gop30"), (1, 0));
    let options = LoaderOptions {
        batch_size: 10_000,
        ..LoaderOptions::default()
    };
    let loader = Loader::new(&pool, options).unwrap();
    let reports = loader.epoch(0).unwrap().finish();
    let decoded: u64 = reports
        .iter()
        .map(|report| report.decode.frames_decoded)
        .sum();
    let whole: u64 = loader
        .epoch(0)
        .unwrap()
        .map(|batch| batch.unwrap().len() as u64)
        .sum();
    assert!(
        decoded < whole,
        "{decoded} frames decoded, {whole} in the epoch"
    );
}
