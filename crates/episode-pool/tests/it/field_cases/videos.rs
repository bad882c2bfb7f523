//! The wrong stretch of a video: other episodes' frames, other files, rounded offsets, left-over takes.

use std::fs;

use episode_pool::{Error, Warning, dataset};
use testkit::video::{self, VideoOptions};
use testkit::{Camera, Code, Dataset, Fps, FromTimestamp, Spec, Split, code};

use super::{CAMERA, assert_says, camera, chain, codes, epoch_error, field, own_code};
use crate::support::{builder, samples, windows};

/// Checks that every picture of every camera in every window is the right one; returns their number.
fn assert_pictures_are_right(dataset: &Dataset, cameras: &[&str], offsets: &[i64]) -> usize {
    let fps = dataset.spec().fps.as_f64();
    let deltas: Vec<f64> = offsets.iter().map(|&offset| offset as f64 / fps).collect();
    let mut builder = builder(dataset.root()).episode_pool_size(3);
    if offsets != [0] {
        let entries: Vec<(&str, &[f64])> = cameras
            .iter()
            .map(|&camera| (camera, &deltas[..]))
            .collect();
        builder = builder.delta_timestamps(windows(&entries));
    }
    let mut pictures = 0;
    for sample in samples(&builder.build().unwrap(), 0) {
        let last = dataset.spec().episode_lengths[sample.episode_index] as i64 - 1;
        for (position, camera) in cameras.iter().enumerate() {
            let expected: Vec<Code> = offsets
                .iter()
                .map(|offset| (sample.frame_index as i64 + offset).clamp(0, last) as usize)
                .map(|frame| Code {
                    episode: sample.episode_index,
                    frame,
                    camera: position,
                })
                .collect();
            assert_eq!(codes(&sample, camera), expected, "{camera}");
            pictures += expected.len();
        }
    }
    pictures
}

/// The time was counted from the start of the whole dataset: no frame from the second file on, or the next episode's.
#[test]
fn a_picture_is_sought_on_its_own_files_clock() {
    let dataset = Spec {
        cameras: vec![Camera {
            files: Split::Every(2),
            ..camera()
        }],
        ..Spec::new(10, &[10, 10, 10, 10])
    }
    .write();
    // By hand: the file and the time of each episode's first frame.
    let places = [
        ("file-000.mp4", 0.0),
        ("file-000.mp4", 1.0),
        ("file-001.mp4", 0.0),
        ("file-001.mp4", 1.0),
    ];
    let pool = builder(dataset.root()).build().unwrap();
    for (episode, (file, from_s)) in pool.metadata().episodes().iter().zip(places) {
        let span = episode.video(CAMERA).unwrap();
        assert!(span.path().ends_with(file), "{}", span.path());
        assert_eq!(span.from_timestamp_s(), from_s);
    }
    assert_eq!(assert_pictures_are_right(&dataset, &[CAMERA], &[0]), 40);
    assert_eq!(
        assert_pictures_are_right(&dataset, &[CAMERA], &[-1, 0, 1]),
        120
    );
    assert_eq!(
        assert_pictures_are_right(&dataset, &[CAMERA], &[-10, 10]),
        80
    );
}

/// The data file's number, or another camera's offset, was used for every camera.
#[test]
fn each_camera_has_its_own_files_and_offsets() {
    let keys = ["observation.images.a", "observation.images.b"];
    let files = [Split::Counts(vec![2, 2, 2]), Split::Counts(vec![1, 5])];
    let cameras = keys.into_iter().zip(files);
    let dataset = Spec {
        cameras: cameras
            .map(|(key, files)| Camera {
                files,
                ..Camera::video(key)
            })
            .collect(),
        ..Spec::new(10, &[4, 6, 3, 5, 7, 2])
    }
    .write();
    let pool = builder(dataset.root()).build().unwrap();
    let differing = pool.metadata().episodes().iter().filter(|episode| {
        let [a, b] = keys.map(|key| episode.video(key).unwrap().from_timestamp_s());
        a != b
    });
    assert_eq!(
        differing.count(),
        5,
        "the cameras' offsets differ, or this shows nothing"
    );
    assert_eq!(assert_pictures_are_right(&dataset, &keys, &[0]), 54);
    assert_eq!(assert_pictures_are_right(&dataset, &keys, &[-2, 3]), 108);
}

/// Two files of video, whose second holds `second` episodes of 1 s, with offsets that were not reset where it begins.
fn merged(second: usize) -> Dataset {
    let from_timestamp =
        FromTimestamp::Shifted(|segment| if segment.file == 1 { 2.0 } else { 0.0 });
    let files = Split::Counts(vec![2, second]);
    Spec {
        cameras: vec![Camera {
            from_timestamp,
            files,
            ..camera()
        }],
        ..Spec::new(10, &vec![10; 2 + second])
    }
    .write()
}

/// Offsets were not reset at a new file when datasets were merged, and the nearest frame was shown.
#[test]
fn an_episode_past_the_end_of_its_video_is_an_error() {
    let dataset = merged(2);
    for episode in [0, 1] {
        let pool = builder(dataset.root()).episodes([episode]).build().unwrap();
        for sample in samples(&pool, 0) {
            assert_eq!(codes(&sample, CAMERA), [own_code(&sample)]);
        }
    }
    for (episode, from, to) in [(2, "2.0000 s", "2.9000 s"), (3, "3.0000 s", "3.9000 s")] {
        let pool = builder(dataset.root()).episodes([episode]).build().unwrap();
        let error = epoch_error(&pool);
        assert!(matches!(error, Error::VideoInterval { .. }), "{error:?}");
        let file = format!("videos/{CAMERA}/chunk-000/file-001.mp4");
        let episode = format!("episode {episode}");
        assert_says(
            &chain(&error),
            &[CAMERA, &episode, &file, from, to, "0.0000 s to 1.9000 s"],
        );
    }
}

/// 200 episodes of 7 to 17 frames in one file. Late ones failed the tolerance, or were one frame off.
fn assert_rounded_offsets_are_right(fps: Fps, from_timestamp: FromTimestamp, tolerance_s: f64) {
    let lengths: Vec<usize> = (0..200).map(|episode| 7 + episode * 7 % 11).collect();
    let dataset = Spec {
        cameras: vec![Camera {
            from_timestamp,
            ..camera()
        }],
        ..Spec::new(fps, &lengths)
    }
    .write();
    let pool = builder(dataset.root())
        .tolerance_s(tolerance_s)
        .build()
        .unwrap();
    let mut first = 0;
    let drifts_s = pool.metadata().episodes().iter().map(|episode| {
        let exact_s = fps.seconds(first);
        first += episode.length();
        (episode.video(CAMERA).unwrap().from_timestamp_s() - exact_s).abs()
    });
    let drift_s = drifts_s.fold(0.0, f64::max);
    assert!(
        drift_s > tolerance_s,
        "{drift_s} s is within the tolerance, so this shows nothing"
    );
    let emitted = samples(&pool, 0);
    assert_eq!(emitted.len(), lengths.iter().sum::<usize>());
    for sample in &emitted {
        assert_eq!(codes(sample, CAMERA), [own_code(sample)]);
    }
}

#[test]
fn offsets_summed_in_single_precision_lead_to_the_right_frames_at_30_fps() {
    assert_rounded_offsets_are_right(Fps::from(30), FromTimestamp::Float32Sum, 1e-6);
}

#[test]
fn offsets_summed_in_single_precision_lead_to_the_right_frames_at_29_97_fps() {
    assert_rounded_offsets_are_right(Fps::from((30_000, 1001)), FromTimestamp::Float32Sum, 1e-6);
}

#[test]
fn offsets_that_drift_by_0_4_frames_lead_to_the_right_frames() {
    let drift = FromTimestamp::Shifted(|segment| segment.episode_index as f64 * 7e-5);
    assert_rounded_offsets_are_right(Fps::from(30), drift, 1e-4);
}

/// Equality was refused: half a frame is the most that rounding can make of an offset.
#[test]
fn an_offset_may_be_half_a_frame_off_and_no_more() {
    // At 8 fps half a frame is exact in binary: 0.0625 s.
    let check = |shift: fn(testkit::Segment) -> f64, episode: usize| {
        let from_timestamp = FromTimestamp::Shifted(shift);
        let dataset = Spec {
            cameras: vec![Camera {
                from_timestamp,
                ..camera()
            }],
            ..Spec::new(8, &[6, 5, 7])
        }
        .write();
        let pool = builder(dataset.root()).episodes([episode]).build().unwrap();
        let emitted: Result<Vec<_>, _> = pool.epoch(0).unwrap().collect();
        let emitted = emitted?;
        assert!(!emitted.is_empty());
        for sample in emitted {
            assert_eq!(codes(&sample, CAMERA), [own_code(&sample)]);
        }
        Ok::<(), Error>(())
    };
    check(|_| -0.0625, 0).unwrap();
    check(|_| 0.0625, 2).unwrap();
    for error in [
        check(|_| -0.063, 0).unwrap_err(),
        check(|_| 0.063, 2).unwrap_err(),
    ] {
        assert!(matches!(error, Error::VideoInterval { .. }), "{error:?}");
    }
}

fn video_warnings(warnings: &[Warning]) -> Vec<&dataset::Warning> {
    let of_dataset = warnings.iter().filter_map(|warning| match warning {
        Warning::Dataset(warning) => Some(warning),
        _ => None,
    });
    of_dataset.collect()
}

/// Pictures of a discarded take stayed in the recorder's folder, and began the next episode's video.
#[test]
fn a_video_longer_than_its_rows_is_warned_about_and_nothing_is_guessed() {
    // The table says that episode 1 lasts 3.5 s: the end of its interval is the other camera's, which is then taken out.
    let other = Camera {
        files: Split::Every(1),
        from_timestamp: FromTimestamp::Shifted(
            |segment| if segment.episode_index == 1 { 1.5 } else { 0.0 },
        ),
        ..Camera::video("other")
    };
    let dataset = Spec {
        cameras: vec![
            Camera {
                files: Split::Every(1),
                ..camera()
            },
            other,
        ],
        episode_column: |name| match name {
            "videos/observation.images.front/to_timestamp" => "unused".to_owned(),
            "videos/other/to_timestamp" => {
                "videos/observation.images.front/to_timestamp".to_owned()
            }
            name => name.to_owned(),
        },
        ..Spec::new(10, &[20, 20])
    }
    .write();
    dataset.edit_info(|info| {
        info["features"].as_object_mut().unwrap().remove("other");
    });
    let takes = (0..15)
        .map(|frame| (99, frame))
        .chain((0..20).map(|frame| (1, frame)));
    let pictures = takes.map(|(episode, frame)| {
        code::paint(
            Code {
                episode,
                frame,
                camera: 0,
            },
            64,
            96,
        )
    });
    video::encode(
        &dataset.video_file(CAMERA, 1),
        &VideoOptions::new(64, 96, 10),
        pictures,
    );

    let pool = builder(dataset.root()).build().unwrap();
    let warnings = video_warnings(pool.warnings());
    let [
        dataset::Warning::VideoLength {
            camera,
            path,
            episode_index: 1,
            interval_s,
            length: 20,
            count: 1,
        },
    ] = warnings[..]
    else {
        panic!("{warnings:?}")
    };
    assert_eq!((camera.as_str(), *interval_s), (CAMERA, 3.5));
    assert!(path.ends_with("file-001.mp4"), "{path}");
    assert_says(
        &pool.warnings()[0].to_string(),
        &["episode 1", "20 rows", "3.5000 s", CAMERA, path],
    );
    for sample in samples(&pool, 0) {
        let (episode, frame) = match (sample.episode_index, sample.frame_index) {
            (1, frame @ 0..15) => (99, frame),
            (1, frame) => (1, frame - 15),
            own => own,
        };
        assert_eq!(
            codes(&sample, CAMERA),
            [Code {
                episode,
                frame,
                camera: 0
            }]
        );
    }
}

#[test]
fn gaps_and_overlaps_between_neighbours_are_warned_about_once() {
    let warnings = |shift: fn(testkit::Segment) -> f64| {
        let from_timestamp = FromTimestamp::Shifted(shift);
        let cameras = vec![Camera {
            from_timestamp,
            ..camera()
        }];
        let dataset = Spec {
            cameras,
            ..Spec::new(10, &[6, 5, 7, 4])
        }
        .write();
        let pool = builder(dataset.root()).build().unwrap();
        video_warnings(pool.warnings())
            .into_iter()
            .cloned()
            .collect::<Vec<_>>()
    };
    // Each of the last three episodes begins 0.2 s later than the one before it ends; and half a frame is no gap.
    let gaps = warnings(|segment| segment.episode_index as f64 * 0.2);
    assert!(
        matches!(
            gaps[..],
            [dataset::Warning::VideoGap {
                episode_index: 0,
                next_episode_index: 1,
                count: 3,
                ..
            }]
        ),
        "{gaps:?}"
    );
    let overlaps = warnings(|segment| {
        if segment.episode_index >= 2 {
            -0.2
        } else {
            0.0
        }
    });
    assert!(
        matches!(
            overlaps[..],
            [dataset::Warning::VideoOverlap {
                episode_index: 1,
                next_episode_index: 2,
                count: 1,
                ..
            }]
        ),
        "{overlaps:?}"
    );
    assert!(warnings(|segment| segment.episode_index as f64 * 0.04).is_empty());
}

/// The frame rate or the codec of a video is not what info.json says.
#[test]
fn a_video_of_another_frame_rate_is_an_error_and_of_another_codec_is_none() {
    let dataset = Spec {
        cameras: vec![camera()],
        ..Spec::new(10, &[8, 6])
    }
    .write();
    dataset.edit_info(|info| {
        info["features"][CAMERA]["info"]["video.codec"] = "av1".into();
        info["features"][CAMERA]["info"]["video.pix_fmt"] = "yuv444p".into();
    });
    assert_eq!(assert_pictures_are_right(&dataset, &[CAMERA], &[0]), 14);

    let path = dataset.video_file(CAMERA, 0);
    for (fps, expected) in [
        (20, "episode 1 should lie in"),
        (5, "no frame within 0.0001 s"),
    ] {
        fs::remove_file(&path).unwrap();
        let pictures = (0..14).map(|frame| {
            code::paint(
                Code {
                    episode: 0,
                    frame,
                    camera: 0,
                },
                64,
                96,
            )
        });
        video::encode(&path, &VideoOptions::new(64, 96, fps), pictures);
        let pool = builder(dataset.root())
            .shuffle(false)
            .episodes([1])
            .build()
            .unwrap();
        let message = chain(&epoch_error(&pool));
        assert_says(&message, &[CAMERA, "episode 1", "file-000.mp4", expected]);
    }
}

#[test]
fn a_video_of_another_size_is_an_error_with_both_sizes() {
    let dataset = Spec {
        cameras: vec![camera()],
        ..Spec::new(10, &[4])
    }
    .write();
    dataset.edit_info(|info| info["features"][CAMERA]["shape"] = serde_json::json!([96, 64, 3]));
    let pool = builder(dataset.root()).build().unwrap();
    assert_says(
        &chain(&epoch_error(&pool)),
        &[CAMERA, "file-000.mp4", "64x96", "96x64"],
    );
    assert_eq!(field(&fixed(&dataset), CAMERA).shape(), [64, 96, 3]);
}

/// The first sample, once info.json declares the right size.
fn fixed(dataset: &Dataset) -> episode_pool::Sample {
    dataset.edit_info(|info| info["features"][CAMERA]["shape"] = serde_json::json!([64, 96, 3]));
    builder(dataset.root()).build().unwrap().sample(0).unwrap()
}

/// Where the second file is the longer one, its first episodes' wrong intervals lie within it, and are other episodes' frames.
#[test]
fn an_episode_whose_file_promises_more_than_it_holds_is_an_error() {
    let dataset = merged(5);
    for episode in 2..7 {
        let pool = builder(dataset.root()).episodes([episode]).build().unwrap();
        let error = epoch_error(&pool);
        assert!(matches!(error, Error::VideoInterval { .. }), "{error:?}");
    }
}
