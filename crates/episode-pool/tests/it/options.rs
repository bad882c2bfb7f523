//! Options: what each does, and what a bad value is told.

use std::error::Error as _;

use episode_pool::decode::Layout;
use episode_pool::pool_core::Topology;
use episode_pool::{Builder, ElementType, Error, FrameType, Warning};
use testkit::{Camera, Spec};

use crate::support::{builder, fixture, order, samples, windows};

/// The whole chain of a failed build, as a person reads it.
fn message(builder: Builder) -> String {
    let error = builder.build().unwrap_err();
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    message
}

#[test]
fn bad_options_are_told_before_anything_is_read() {
    let base = || builder("/no/such/dataset".as_ref());
    for (builder, expected) in [
        (
            base().episode_pool_size(0),
            "`episode_pool_size` is 0; expected at least 1",
        ),
        (
            base().max_num_shards(0),
            "`max_num_shards` is 0; expected at least 1",
        ),
        (
            base().num_threads(0),
            "`num_threads` is 0; expected 1 to 1024",
        ),
        (
            base().resize(0, 64),
            "`resize` is 0x64; expected sides of 1 to 8192 pixels, the height first",
        ),
        (
            base().video_decoder_cache_size(0),
            "`video_decoder_cache_size` is 0; expected at least 1",
        ),
        (
            base().tolerance_s(f64::NAN),
            "`tolerance_s` is NaN; expected a finite number of seconds",
        ),
        (
            base().tolerance_s(-1.0),
            "`tolerance_s` is -1; expected a finite number of seconds",
        ),
    ] {
        let message = message(builder);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn options_that_do_not_fit_the_dataset_are_told() {
    let base = || fixture("no_camera");
    for (builder, expected) in [
        (
            base().topology(Topology::new(0, 1, 0, 1025).unwrap()),
            "`num_workers` is 1025; expected 0 to 1024",
        ),
        (base().episodes([0, 30]), "30"),
        (base().episodes([4, 4]), "4"),
        (base().episodes([]), "no frame is selected"),
        (base().exclude_episodes([31]), "31"),
        (base().drop_n_first_frames(100_000), "frame"),
        (
            base().delta_timestamps(windows(&[("actoin", &[0.0])])),
            "`actoin`",
        ),
        (
            base().delta_timestamps(windows(&[("action", &[0.01])])),
            "0.01",
        ),
        (
            base().delta_timestamps(windows(&[("action", &[])])),
            "`action`",
        ),
        (
            base().keep_ranges_file("/no/such/file.json"),
            "/no/such/file.json",
        ),
    ] {
        let message = message(builder);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn frames_left_out_are_not_emitted_and_windows_still_see_them() {
    let dataset = Spec::new(10, &[5, 6]).write();
    let ranges = dataset.root().join("keep.json");
    std::fs::write(&ranges, r#"{"1": [[0, 2], [4, 6]]}"#).unwrap();
    let pool = builder(dataset.root())
        .shuffle(false)
        .drop_n_first_frames(1)
        .drop_n_last_frames(1)
        .keep_ranges_file(ranges)
        .delta_timestamps(windows(&[("frame_index", &[-0.1, 0.0, 0.1])]))
        .build()
        .unwrap();
    assert_eq!(order(&pool, 0), [(0, 1), (0, 2), (0, 3), (1, 1), (1, 4)]);
    let first = &samples(&pool, 0)[0];
    assert_eq!(
        first.fields.get("frame_index").unwrap().as_i64().unwrap(),
        [0, 1, 2]
    );
    assert_eq!(
        first
            .fields
            .get("frame_index_is_pad")
            .unwrap()
            .as_bool()
            .unwrap(),
        [false; 3]
    );
}

#[test]
fn buffer_size_is_ignored_with_a_warning() {
    let pool = fixture("no_camera").buffer_size(1000).build().unwrap();
    let expected = Warning::BufferSizeIgnored {
        buffer_size: 1000,
        episode_pool_size: 64,
    };
    assert!(pool.warnings().contains(&expected), "{:?}", pool.warnings());
    assert_eq!(
        order(&pool, 0),
        order(&fixture("no_camera").build().unwrap(), 0)
    );
}

#[test]
fn layout_and_type_of_frames_are_as_asked() {
    let key = "observation.images.cam";
    let dataset = Spec {
        cameras: vec![Camera::video(key)],
        ..Spec::new(10, &[4])
    }
    .write();
    let base = || builder(dataset.root()).shuffle(false);
    let hwc = &samples(&base().build().unwrap(), 0)[2];
    let chw = base()
        .frame_layout(Layout::Chw)
        .frame_type(FrameType::F32)
        .build()
        .unwrap();
    let field = chw
        .fields()
        .iter()
        .find(|field| field.key() == key)
        .unwrap();
    assert_eq!(
        (field.element_type(), field.shape()),
        (ElementType::F32, &[3, 64, 96][..])
    );
    let chw = &samples(&chw, 0)[2];
    let bytes = hwc.fields.get(key).unwrap().as_u8().unwrap();
    let floats = chw.fields.get(key).unwrap().as_f32().unwrap();
    for (pixel, rgb) in bytes.chunks_exact(3).enumerate() {
        for (channel, &byte) in rgb.iter().enumerate() {
            assert_eq!(floats[channel * 64 * 96 + pixel], f32::from(byte) / 255.0);
        }
    }
}

#[test]
fn a_frame_outside_the_dataset_is_named_with_the_range() {
    let error = fixture("no_camera")
        .build()
        .unwrap()
        .sample(1461)
        .unwrap_err();
    assert!(matches!(
        error,
        Error::NoSuchFrame {
            index: 1461,
            total_frames: 1461
        }
    ));
    assert!(error.to_string().contains("0 to 1460"), "{error}");
}

#[test]
fn pools_and_epochs_move_between_threads() {
    fn assert_send<T: Send>() {}
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<episode_pool::EpisodePool>();
    assert_send_sync::<episode_pool::Loader>();
    assert_send::<episode_pool::Epoch>();
    assert_send::<episode_pool::LoaderEpoch>();
}

#[test]
fn a_sample_or_a_batch_beyond_all_memory_is_an_error() {
    let deltas = vec![0.0; 200_000];
    let error = fixture("aloha_like")
        .delta_timestamps(windows(&[("observation.images.top", &deltas)]))
        .build()
        .unwrap_err();
    assert!(matches!(error, Error::SampleTooLarge { .. }), "{error}");

    let deltas = vec![0.0; 5_000];
    let pool = fixture("aloha_like")
        .delta_timestamps(windows(&[("observation.images.top", &deltas)]))
        .build()
        .unwrap();
    let error = pool
        .epoch(0)
        .unwrap()
        .batches(usize::MAX, false)
        .unwrap_err();
    assert!(matches!(error, Error::BatchTooLarge { .. }), "{error}");
}

#[test]
fn frames_come_in_the_size_asked_for() {
    // Videos, and pictures in the rows.
    for (name, camera) in [
        ("aloha_like", "observation.images.top"),
        ("image_only", "observation.image"),
    ] {
        let pool = |layout, size: Option<(usize, usize)>| {
            let builder = fixture(name).frame_layout(layout).num_threads(2);
            let builder = match size {
                Some((height, width)) => builder.resize(height, width),
                None => builder,
            };
            builder.build().unwrap()
        };
        let stored = pool(Layout::Hwc, None).sample(3).unwrap();
        let shape = stored.fields.get(camera).unwrap().shape().to_vec();
        let mean =
            |pixels: &[u8]| pixels.iter().map(|&v| f64::from(v)).sum::<f64>() / pixels.len() as f64;
        for (layout, expected) in [(Layout::Hwc, [24, 40, 3]), (Layout::Chw, [3, 24, 40])] {
            let resized = pool(layout, Some((24, 40))).sample(3).unwrap();
            let resized = resized.fields.get(camera).unwrap();
            assert_eq!(resized.shape(), expected);
            let means = [stored.fields.get(camera).unwrap(), resized]
                .map(|array| mean(array.as_u8().unwrap()));
            assert!((means[0] - means[1]).abs() < 3.0, "{name}: {means:?}");
        }
        assert_ne!(shape, [24, 40, 3]);
        // Decoded ahead or by itself, a frame is the same.
        let pool = pool(Layout::Hwc, Some((24, 40)));
        let ahead = pool.epoch(0).unwrap().next().unwrap().unwrap();
        let index = ahead.fields.get("index").unwrap().as_i64().unwrap()[0];
        let alone = pool.sample(index as usize).unwrap();
        assert_eq!(ahead.fields, alone.fields);
    }
}
