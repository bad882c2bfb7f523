//! info.json: versions, fields, features, paths.

use dataset::{DType, Error, Warning};
use serde_json::{Value, json};

use crate::small::{DATA, INFO, Small};

/// The error for info.json with one change.
fn error(change: impl FnOnce(&mut Value)) -> Error {
    let mut small = Small::default();
    change(&mut small.info);
    small.metadata().map(|_| ()).unwrap_err()
}

#[test]
fn another_version_is_refused_with_the_way_to_convert() {
    for found in [
        json!("v2.1"),
        json!("v2.0"),
        json!("v1.6"),
        json!("v3.1"),
        json!("3.0"),
        Value::Null,
    ] {
        let error = error(|info| info["codebase_version"] = found.clone());
        assert!(matches!(error, Error::Version { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("v3.0"), "{message}");
        assert!(
            message.contains("python -m lerobot.scripts.convert_dataset_v21_to_v30 --repo-id="),
            "{message}"
        );
        assert!(
            found.as_str().is_none_or(|found| message.contains(found)),
            "{message}"
        );
    }
}

#[test]
fn the_version_is_judged_before_fields_that_it_changes() {
    let error = error(|info| {
        info["codebase_version"] = json!("v2.1");
        info["features"] = json!(["not", "an", "object"]);
    });
    assert!(matches!(error, Error::Version { .. }), "{error}");
}

#[test]
fn a_field_without_use_is_named() {
    for (field, value) in [("fps", json!(0)), ("fps", json!(-30.0))] {
        let error = error(|info| info[field] = value.clone());
        assert!(
            matches!(&error, Error::Info { field: found, .. } if found == field),
            "{error}"
        );
    }
    let error = error(|info| {
        info.as_object_mut().unwrap().remove("fps").unwrap();
    });
    assert!(matches!(error, Error::Json { .. }), "{error}");
    assert!(
        std::error::Error::source(&error)
            .unwrap()
            .to_string()
            .contains("fps")
    );
}

#[test]
fn info_json_that_is_no_json_says_what_it_is() {
    for (bytes, expected) in [
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
            "git lfs pull",
        ),
        ("<!DOCTYPE html><html></html>", "web page"),
        ("{\"codebase_version\": \"v3.0\", ", "meta/info.json"),
        ("", "empty"),
    ] {
        let mut storage = Small::default().storage();
        storage.insert(INFO, bytes);
        let error = dataset::Metadata::read(&storage).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn features_keep_the_order_of_the_file() {
    let mut small = Small::default();
    let text = small.info.to_string();
    small.info["features"] = json!({});
    // A map of JSON values sorts its keys: only a text has an order.
    let features = r#""features":{"timestamp":{"dtype":"float32","shape":[1]},"state":{"dtype":"float32","shape":[2],
        "names":{"motors":["x","y"]}},"frame_index":{"dtype":"int64","shape":[1],"names":[["i"]]},
        "episode_index":{"dtype":"int64","shape":[1],"names":null}}"#;
    let text_without = small.info.to_string();
    assert_ne!(text, text_without);
    let mut storage = small.storage();
    storage.insert(INFO, text_without.replace("\"features\":{}", features));
    let metadata = dataset::Metadata::read(&storage).unwrap();
    let keys: Vec<&str> = metadata
        .info()
        .features()
        .iter()
        .map(|feature| feature.key())
        .collect();
    assert_eq!(keys, ["timestamp", "state", "frame_index", "episode_index"]);
    assert_eq!(
        metadata.info().feature("state").unwrap().names(),
        ["x", "y"]
    );
    assert_eq!(metadata.info().robot_type(), Some("so100"));
}

#[test]
fn a_dtype_that_is_not_read_is_left_out_with_a_warning() {
    let mut small = Small::default();
    small.info["features"]["audio"] = json!({"dtype": "audio", "shape": [1]});
    small.info["features"]["half"] = json!({"dtype": "float16", "shape": [2]});
    let metadata = small.metadata().unwrap();
    assert!(metadata.info().feature("audio").is_none());
    let warned: Vec<&Warning> = metadata.warnings().iter().collect();
    assert!(
        matches!(warned[..], [Warning::UnreadFeature { key: a, .. }, Warning::UnreadFeature { key: b, .. }]
            if a == "audio" && b == "half"),
        "{warned:?}"
    );
    assert!(small.rows(0).unwrap().column("half").is_none());
}

#[test]
fn every_dtype_has_its_name() {
    let small = Small::default();
    let metadata = small.metadata().unwrap();
    assert_eq!(
        metadata.info().feature("state").unwrap().dtype(),
        DType::Float32
    );
    for dtype in [DType::UInt8, DType::Bool, DType::String, DType::Image] {
        assert_eq!(dtype.to_string(), dtype.name());
    }
}

#[test]
fn null_as_video_path_is_right_only_without_videos() {
    let error =
        error(|info| info["features"]["cam"] = json!({"dtype": "video", "shape": [4, 4, 3]}));
    assert!(
        matches!(&error, Error::Info { field, .. } if field == "video_path"),
        "{error}"
    );
    assert!(error.to_string().contains("`cam`"), "{error}");
    Small::default().metadata().unwrap();
}

#[test]
fn templates_other_than_the_usual_lead_to_the_files() {
    let mut small = Small::default();
    small.info["data_path"] = json!("rows/{chunk_index}-{file_index:05d}.parquet");
    let mut storage = small.storage();
    let bytes = storage.get(DATA).to_vec();
    storage.remove(DATA);
    storage.insert("rows/0-00000.parquet", bytes);
    assert_eq!(crate::small::read_rows(&storage, 1).unwrap().len(), 5);

    // Absent, it is lerobot's own.
    let mut small = Small::default();
    small
        .info
        .as_object_mut()
        .unwrap()
        .remove("data_path")
        .unwrap();
    assert_eq!(small.rows(1).unwrap().len(), 5);
}

#[test]
fn templates_of_version_2_and_paths_out_of_the_dataset_are_refused() {
    for (template, reason) in [
        (
            "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
            "episode_chunk",
        ),
        (
            "../{chunk_index}/{file_index}.parquet",
            "out of the dataset",
        ),
        ("/data/{file_index}.parquet", "absolute"),
    ] {
        let error = error(|info| info["data_path"] = json!(template));
        assert!(matches!(error, Error::Template { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let small = Small::new(&[3]).with_camera("../../../etc", &[(0, 0.0, 0.3)]);
    let error = small.metadata().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Template {
                field: "video_path",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn more_promised_than_there_is_says_both_numbers() {
    for (field, promised, found) in [("total_episodes", 50, 3), ("total_frames", 2600, 10)] {
        let error = error(|info| info[field] = json!(promised));
        assert!(matches!(error, Error::Totals { .. }), "{error}");
        let message = error.to_string();
        for part in [field.to_owned(), promised.to_string(), found.to_string()] {
            assert!(message.contains(&part), "{message}");
        }
    }
}

#[test]
fn less_promised_than_there_is_warns_and_reads_all() {
    let mut small = Small::default();
    small.info["total_frames"] = json!(9);
    let metadata = small.metadata().unwrap();
    assert_eq!(
        metadata.warnings(),
        [Warning::Totals {
            field: "total_frames",
            promised: 9,
            found: 10
        }]
    );
    assert_eq!(metadata.total_frames(), 10);
}

#[test]
fn an_enormous_shape_is_refused() {
    for shape in [
        json!([1 << 30]),
        json!([u64::MAX, u64::MAX]),
        json!([4096, 4097]),
    ] {
        let error = error(|info| info["features"]["state"]["shape"] = shape.clone());
        assert!(
            matches!(&error, Error::Info { field, .. } if field == "features.state.shape"),
            "{error}"
        );
    }
}
