//! Kinds of datasets found in public, each with several oddities at once.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type};
use arrow_array::{Array, DictionaryArray, LargeStringArray};
use arrow_schema::DataType;
use dataset::Values;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::json;

use crate::small::{
    Small, Table, doubles, drop_column, fixed_lists, floats, ints, rename, set, table,
};

/// Turns every number of a table into a float64.
fn as_float64(table: &mut Table) {
    for (_, values) in table {
        *values = match values.data_type() {
            DataType::Int64 => doubles(
                values
                    .as_primitive::<Int64Type>()
                    .values()
                    .iter()
                    .map(|value| *value as f64),
            ),
            DataType::Float32 => doubles(
                values
                    .as_primitive::<Float32Type>()
                    .values()
                    .iter()
                    .map(|value| f64::from(*value)),
            ),
            _ => continue,
        };
    }
}

#[test]
fn written_in_rust_with_every_number_a_float64() {
    let mut small = Small::new(&[3, 3])
        .with_camera("observation.images.cam", &[(0, 0.0, 0.3), (1, 0.0, 0.3)])
        .with_feature(
            "joint",
            "float32",
            &[1],
            floats([0.5, 1.5, 2.5, 3.5, 4.5, 5.5]),
        );
    small.info["features"]["observation.images.cam"] = json!({
        "dtype": "video", "shape": [3, 64, 64], "names": null, "info": {"video.fps": 10, "video.codec": "h264"},
    });
    rename(&mut small.episodes, "data/chunk_index", "data_chunk_index");
    rename(&mut small.episodes, "data/file_index", "data_file_index");
    drop_column(&mut small.episodes, "tasks");
    as_float64(&mut small.episodes);
    as_float64(&mut small.data);
    let texts = Arc::new(
        ["pick cube"]
            .into_iter()
            .collect::<DictionaryArray<Int32Type>>(),
    );
    small.tasks = table([("task_index", doubles([0.0])), ("task", texts)]);
    small.data_properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .build();

    let metadata = small.metadata().unwrap();
    assert_eq!(metadata.warnings(), []);
    assert_eq!(metadata.tasks().get(0), Some("pick cube"));
    let camera = metadata.info().feature("observation.images.cam").unwrap();
    assert_eq!(
        camera.picture_size().map(|size| (size.height, size.width)),
        Some((64, 64))
    );
    assert_eq!(
        (camera.info_text("codec"), camera.info_number("fps")),
        (Some("h264"), Some(10.0))
    );
    let rows = small.rows(1).unwrap();
    assert_eq!(
        rows.column("joint").unwrap().values(),
        &Values::F32(vec![3.5, 4.5, 5.5])
    );
    assert_eq!(
        rows.column("index").unwrap().values(),
        &Values::I64(vec![3, 4, 5])
    );
}

#[test]
fn without_cameras_though_a_video_path_is_given() {
    let mut small = Small::new(&[871]);
    small.info["video_path"] =
        json!("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4");
    small
        .info
        .as_object_mut()
        .unwrap()
        .remove("robot_type")
        .unwrap();
    set(
        &mut small.data,
        "state",
        fixed_lists(floats((0..2 * 871).map(|value| value as f32)), 2),
    );
    let texts = Arc::new(LargeStringArray::from(vec!["pick and place"]));
    small.tasks = table([("task_index", ints([0])), ("__index_level_0__", texts)]);

    let metadata = small.metadata().unwrap();
    assert_eq!(metadata.info().camera_keys().count(), 0);
    assert_eq!(metadata.info().robot_type(), None);
    let rows = small.rows(0).unwrap();
    assert_eq!(rows.len(), 871);
    assert_eq!(metadata.tasks().get(0), Some("pick and place"));
}

#[test]
fn with_cameras_as_older_writers_describe_them_and_columns_that_nobody_declares() {
    let mut small =
        Small::default().with_camera("image", &[(0, 0.0, 0.3), (0, 0.3, 0.8), (0, 0.8, 1.0)]);
    small.info["features"]["image"] = json!({
        "dtype": "video", "shape": [48, 64, 3], "names": {"axes": ["height", "width", "channel"]},
        "video_info": {"video.fps": 10.0, "video.codec": "av1", "video.is_depth_map": false, "has_audio": false},
    });
    // Of changing length, too.
    let notes = crate::small::lists((0..10).map(|row| vec![0.5; row % 4]));
    small.data.push(("notes".to_owned(), notes));

    let metadata = small.metadata().unwrap();
    let camera = metadata.info().feature("image").unwrap();
    assert_eq!(camera.names(), ["height", "width", "channel"]);
    assert!(!camera.is_depth());
    assert_eq!(camera.info_text("codec"), Some("av1"));
    assert!(small.rows(2).unwrap().column("notes").is_none());
}
