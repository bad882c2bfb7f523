//! Faults measured in earlier loaders on these very fixtures, each shown to be absent here.

use std::collections::BTreeSet;

use episode_pool::pool_core::{Coverage, ShardUnit, Topology};
use episode_pool::resume::State;
use episode_pool::{Loader, LoaderOptions, Sample};
use testkit::code;

use crate::support::{fixture, fleet, order, samples, windows};

fn picture_code(
    sample: &Sample,
    camera: &str,
    k: usize,
    (height, width): (usize, usize),
) -> (usize, usize) {
    let pixels = sample.fields.get(camera).unwrap().as_u8().unwrap();
    let found = code::read(
        &pixels[k * height * width * 3..][..height * width * 3],
        height,
        width,
    );
    (found.episode, found.frame)
}

/// With 2 workers, 420 of the 867 frames were lost; with 3, more.
#[test]
fn no_frame_is_lost_to_workers() {
    let pool = fixture("aloha_like").build().unwrap();
    for num_workers in [2, 3] {
        let mut seen = BTreeSet::new();
        let mut coverage = Coverage::default();
        for topology in fleet(1, num_workers) {
            let mut epoch = pool.with_topology(topology).unwrap().epoch(0).unwrap();
            for sample in epoch.by_ref() {
                let sample = sample.unwrap();
                let frame = (sample.episode_index, sample.frame_index);
                assert!(seen.insert(frame), "{frame:?} was emitted twice");
            }
            coverage.merge(epoch.report().emitted);
        }
        assert_eq!(seen.len(), 867, "{num_workers} workers");
        assert_eq!(coverage, pool.fleet_coverage());
    }
}

/// A camera window into the future held the next episode's first frame, or crashed at the end of a file.
#[test]
fn a_camera_window_past_the_end_repeats_the_episodes_own_last_frame() {
    let (camera, size) = ("observation.images.front", (240, 320));
    let pool = fixture("h264_gop30")
        .delta_timestamps(windows(&[(camera, &[0.0, 1.0 / 30.0, 1.0, 10.0])]))
        .episode_pool_size(2)
        .build()
        .unwrap();
    let metadata = pool.metadata();
    for episode in metadata.episodes() {
        let last = episode.length() - 1;
        let sample = pool.sample(episode.from_index() + last).unwrap();
        for k in 0..4 {
            let expected = (episode.episode_index(), last);
            assert_eq!(
                picture_code(&sample, camera, k, size),
                expected,
                "delta {k}"
            );
        }
        let mask = sample
            .fields
            .get("observation.images.front_is_pad")
            .unwrap();
        assert_eq!(mask.as_bool().unwrap(), [false, true, true, true]);
    }
}

/// The first step out of the episode was not marked as padding.
#[test]
fn the_first_step_out_of_the_episode_is_padding() {
    let pool = fixture("no_camera")
        .delta_timestamps(windows(&[("action", &[-0.02, 0.0, 0.02])]))
        .build()
        .unwrap();
    for sample in samples(&pool, 0) {
        let length = pool
            .metadata()
            .episode(sample.episode_index)
            .unwrap()
            .length();
        let mask = sample
            .fields
            .get("action_is_pad")
            .unwrap()
            .as_bool()
            .unwrap();
        let expected = [
            sample.frame_index == 0,
            false,
            sample.frame_index + 1 == length,
        ];
        assert_eq!(
            mask, expected,
            "episode {}, frame {}",
            sample.episode_index, sample.frame_index
        );
    }
}

/// With 2 ranks over 7 files, windows held rows of other episodes.
#[test]
fn windows_hold_the_episodes_own_rows_on_every_rank() {
    for unit in [ShardUnit::Episode, ShardUnit::File] {
        for topology in fleet(2, 0) {
            let pool = fixture("aloha_like")
                .delta_timestamps(windows(&[
                    ("index", &[-1.0, -1.0 / 30.0, 0.0, 1.0 / 30.0, 1.0]),
                    ("episode_index", &[-1.0, 0.0, 1.0]),
                ]))
                .shard_unit(unit)
                .topology(topology)
                .build()
                .unwrap();
            for sample in samples(&pool, 0) {
                let episode = pool.metadata().episode(sample.episode_index).unwrap();
                let first = episode.from_index() as i64;
                let last = first + episode.length() as i64 - 1;
                let here = first + sample.frame_index as i64;
                let expected = [-30, -1, 0, 1, 30].map(|offset| (here + offset).clamp(first, last));
                assert_eq!(
                    sample.fields.get("index").unwrap().as_i64().unwrap(),
                    expected
                );
                let episodes = sample
                    .fields
                    .get("episode_index")
                    .unwrap()
                    .as_i64()
                    .unwrap();
                assert_eq!(episodes, [sample.episode_index as i64; 3]);
            }
        }
    }
}

/// Every epoch repeated its order when workers were made anew for it.
#[test]
fn fresh_consumers_reshuffle_every_epoch() {
    let build = || fixture("no_camera").seed(5).build().unwrap();
    let orders = [0, 1, 2].map(|epoch| order(&build(), epoch));
    assert_ne!(orders[0], orders[1]);
    assert_ne!(orders[1], orders[2]);
    assert_eq!(orders[0], order(&build(), 0));
}

/// A resume's skip was applied again in the next epoch.
#[test]
fn a_resume_skips_once_and_the_next_epoch_is_whole() {
    let pool = fixture("no_camera")
        .topology(Topology::new(0, 1, 0, 2).unwrap())
        .build()
        .unwrap();
    let options = LoaderOptions {
        batch_size: 16,
        ..LoaderOptions::default()
    };
    let loader = Loader::new(&pool, options).unwrap();
    let resumed = loader
        .resume(&State {
            batches_consumed: 7,
            batch_size: 16,
        })
        .unwrap();
    let rest: usize = resumed.map(|batch| batch.unwrap().len()).sum();
    assert_eq!(rest, 1461 - 7 * 16);
    let next: usize = loader
        .epoch(1)
        .unwrap()
        .map(|batch| batch.unwrap().len())
        .sum();
    assert_eq!(next, 1461);
}

/// An episode filter was ignored.
#[test]
fn only_the_chosen_episodes_are_emitted() {
    let pool = fixture("aloha_like").episodes([7, 1, 4]).build().unwrap();
    let emitted: BTreeSet<usize> = samples(&pool, 0)
        .iter()
        .map(|sample| sample.episode_index)
        .collect();
    assert_eq!(emitted, BTreeSet::from([1, 4, 7]));
    assert_eq!(
        pool.num_frames(),
        [1, 4, 7]
            .map(|e| pool.metadata().episode(e).unwrap().length() as u64)
            .iter()
            .sum::<u64>()
    );
}

/// B-frame video came one frame off: 821 of 1,836 pictures were wrong, without an error.
#[test]
fn b_frame_video_gives_the_frame_asked_for() {
    let pool = fixture("h264_gop30").build().unwrap();
    let mut pictures = 0;
    for sample in samples(&pool, 0) {
        for camera in ["observation.images.front", "observation.images.wrist"] {
            let expected = (sample.episode_index, sample.frame_index);
            assert_eq!(picture_code(&sample, camera, 0, (240, 320)), expected);
            pictures += 1;
        }
    }
    assert_eq!(pictures, 2 * pool.metadata().total_frames());
}

/// HEVC with open GOPs was refused.
#[test]
fn open_gop_hevc_is_read() {
    let pool = fixture("hevc_small").build().unwrap();
    let emitted = samples(&pool, 0);
    assert_eq!(emitted.len(), pool.metadata().total_frames());
    for sample in emitted {
        let expected = (sample.episode_index, sample.frame_index);
        assert_eq!(
            picture_code(&sample, "observation.images.front", 0, (128, 160)),
            expected
        );
    }
}
