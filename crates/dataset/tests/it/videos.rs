//! Where the episodes lie in the cameras' videos.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int64Array};
use dataset::{Error, Metadata, Warning};

use crate::small::{Small, doubles, drop_column};

/// Path and start of each episode in a camera's videos.
fn spans<'a>(metadata: &'a Metadata, camera: &str) -> Vec<(&'a str, f64)> {
    let span = |episode: &'a dataset::Episode| {
        let span = episode.video(camera).unwrap();
        (span.path(), span.from_timestamp_s())
    };
    metadata.episodes().iter().map(span).collect()
}

#[test]
fn file_and_offset_are_each_cameras_own() {
    // 4 episodes of 10 frames at 10 fps: one data file, camera `a` in 3 files, camera `b` in 2.
    let small = Small::new(&[10; 4])
        .with_camera(
            "a",
            &[(0, 0.0, 1.0), (1, 0.0, 1.0), (1, 1.0, 2.0), (2, 0.0, 1.0)],
        )
        .with_camera(
            "b",
            &[(0, 0.0, 1.0), (0, 1.0, 2.0), (0, 2.0, 3.0), (1, 0.0, 1.0)],
        );
    let metadata = small.metadata().unwrap();
    assert_eq!(metadata.warnings(), []);
    assert_eq!(metadata.data_files().len(), 1);
    assert_eq!(
        spans(&metadata, "a"),
        [
            ("videos/a/chunk-000/file-000.mp4", 0.0),
            ("videos/a/chunk-000/file-001.mp4", 0.0),
            ("videos/a/chunk-000/file-001.mp4", 1.0),
            ("videos/a/chunk-000/file-002.mp4", 0.0),
        ]
    );
    assert_eq!(
        spans(&metadata, "b"),
        [
            ("videos/b/chunk-000/file-000.mp4", 0.0),
            ("videos/b/chunk-000/file-000.mp4", 1.0),
            ("videos/b/chunk-000/file-000.mp4", 2.0),
            ("videos/b/chunk-000/file-001.mp4", 0.0),
        ]
    );
    assert!(metadata.episodes()[0].video("c").is_none());
}

#[test]
fn to_timestamp_may_mean_the_last_frame_or_be_missing() {
    let small = Small::default().with_camera("cam", &[(0, 0.0, 0.2), (0, 0.3, 0.7), (0, 0.8, 0.9)]);
    let metadata = small.metadata().unwrap();
    assert_eq!(metadata.warnings(), []);
    assert_eq!(metadata.episodes()[1].length(), 5);
    assert_eq!(
        metadata.episodes()[1]
            .video("cam")
            .unwrap()
            .to_timestamp_s(),
        Some(0.7)
    );

    let mut small = small;
    drop_column(&mut small.episodes, "videos/cam/to_timestamp");
    let metadata = small.metadata().unwrap();
    assert_eq!(metadata.warnings(), []);
    assert_eq!(
        metadata.episodes()[1]
            .video("cam")
            .unwrap()
            .to_timestamp_s(),
        None
    );
}

#[test]
fn running_sums_in_single_precision_are_no_fault() {
    let lengths: Vec<i64> = (0..200).map(|episode| 7 + episode % 11).collect();
    let mut sum = 0_f32;
    let starts: Vec<f32> = lengths
        .iter()
        .map(|length| {
            let start = sum;
            sum += *length as f32 / 10.0;
            start
        })
        .collect();
    let spans: Vec<(i64, f64, f64)> = lengths.iter().map(|_| (0, 0.0, 0.0)).collect();
    let mut small = Small::new(&lengths)
        .with_camera("cam", &spans)
        .with_episodes(
            "videos/cam/from_timestamp",
            Arc::new(Float32Array::from_iter_values(starts.iter().copied())),
        );
    drop_column(&mut small.episodes, "videos/cam/to_timestamp");
    let metadata = small.metadata().unwrap();
    assert_eq!(metadata.warnings(), []);
    assert_eq!(
        metadata.episodes()[199]
            .video("cam")
            .unwrap()
            .from_timestamp_s(),
        f64::from(starts[199])
    );
}

#[test]
fn left_over_frames_are_warned_of_once_for_each_camera() {
    // 2 episodes of 20 rows; the second video has 15 foreign frames first.
    let small = Small::new(&[20, 20]).with_camera("cam", &[(0, 0.0, 2.0), (1, 0.0, 3.5)]);
    let metadata = small.metadata().unwrap();
    let [warning] = metadata.warnings() else {
        panic!("{:?}", metadata.warnings());
    };
    assert!(
        matches!(warning, Warning::VideoLength { camera, path, episode_index: 1, length: 20, count: 1, .. }
            if camera == "cam" && path.ends_with("file-001.mp4")),
        "{warning:?}"
    );
    assert!(warning.to_string().contains("20 rows"), "{warning}");
}

#[test]
fn gaps_and_overlaps_between_neighbours_are_warned_of_with_their_number() {
    let small = Small::new(&[10; 5]).with_camera(
        "cam",
        &[
            (0, 0.0, 1.0),
            (0, 1.0, 2.0),
            (0, 2.3, 3.3),
            (0, 3.5, 4.5),
            (0, 4.3, 5.3),
        ],
    );
    let metadata = small.metadata().unwrap();
    let [gap, overlap] = metadata.warnings() else {
        panic!("{:?}", metadata.warnings());
    };
    assert!(
        matches!(gap, Warning::VideoGap { episode_index: 1, next_episode_index: 2, gap_s, count: 2, .. }
            if (gap_s - 0.3).abs() < 1e-9),
        "{gap:?}"
    );
    assert!(
        matches!(overlap, Warning::VideoOverlap { episode_index: 3, next_episode_index: 4, overlap_s, count: 1, .. }
            if (overlap_s - 0.2).abs() < 1e-9),
        "{overlap:?}"
    );
}

#[test]
fn a_camera_that_was_off_for_an_episode_has_no_place_in_it() {
    let off: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), None, Some(0)]));
    let small = Small::default()
        .with_camera("cam", &[(0, 0.0, 0.3), (0, 0.0, 0.0), (0, 0.3, 0.5)])
        .with_episodes("videos/cam/chunk_index", off)
        .with_episodes("videos/cam/file_index", doubles([0.0, f64::NAN, 0.0]));
    let metadata = small.metadata().unwrap();
    assert!(metadata.episodes()[1].video("cam").is_none());
    assert_eq!(metadata.episodes()[2].videos().count(), 1);
}

#[test]
fn a_start_that_is_no_time_and_a_camera_without_columns_are_errors() {
    let small = Small::new(&[3]).with_camera("cam", &[(0, f64::INFINITY, 0.3)]);
    let error = small.metadata().unwrap_err();
    assert!(
        matches!(&error, Error::Value { column, row: 0, .. } if column == "videos/cam/from_timestamp"),
        "{error}"
    );
    let mut small = Small::new(&[3]).with_camera("cam", &[(0, 0.0, 0.3)]);
    drop_column(&mut small.episodes, "videos/cam/file_index");
    let error = small.metadata().unwrap_err();
    assert!(
        matches!(&error, Error::MissingColumn { column, .. } if column == "videos/cam/file_index"),
        "{error}"
    );
}

#[test]
fn missing_files_are_found_before_they_are_needed() {
    let small = Small::default().with_camera("cam", &[(0, 0.0, 0.3), (1, 0.0, 0.5), (1, 0.5, 0.7)]);
    let mut storage = small.storage();
    storage.insert("videos/cam/chunk-000/file-000.mp4", *b"");
    let metadata = Metadata::read(&storage).unwrap();
    let error = metadata
        .check_files(&storage, metadata.episodes())
        .unwrap_err();
    let Error::Missing { path, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(path, "videos/cam/chunk-000/file-001.mp4");
    for part in ["videos/cam/file_index", "episode 1", "`cam`"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    // Of the first episode, all is there.
    metadata
        .check_files(&storage, &metadata.episodes()[..1])
        .unwrap();
    storage.insert("videos/cam/chunk-000/file-001.mp4", *b"");
    metadata.check_files(&storage, metadata.episodes()).unwrap();
    storage.remove(crate::small::DATA);
    let error = metadata
        .check_files(&storage, metadata.episodes())
        .unwrap_err();
    assert!(error.is_missing_file(), "{error}");
    assert!(error.to_string().contains("data/file_index"), "{error}");
}
