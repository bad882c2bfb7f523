//! Oddities of published datasets that the whole way to a sample has to bear. (`dataset` shows the others.)

use std::path::Path;

use episode_pool::Sample;
use serde_json::json;
use testkit::{Camera, Declared, Dtype, Feature, FromTimestamp, Spec, Storage, ToTimestamp};

use super::{CAMERA, camera, codes, field, own_code};
use crate::support::{builder, samples};

/// All samples of an epoch in the dataset's order.
fn in_order(root: &Path) -> Vec<Sample> {
    samples(&builder(root).shuffle(false).build().unwrap(), 0)
}

fn assert_pictures_are_own(spec: Spec) {
    let dataset = spec.write();
    let emitted = in_order(dataset.root());
    assert_eq!(emitted.len(), dataset.spec().rows().count());
    for sample in &emitted {
        assert_eq!(codes(sample, CAMERA), [own_code(sample)]);
    }
}

#[test]
fn an_episodes_length_does_not_come_from_its_interval() {
    for to_timestamp in [ToTimestamp::LastFrame, ToTimestamp::Missing] {
        let cameras = vec![Camera {
            to_timestamp,
            ..camera()
        }];
        assert_pictures_are_own(Spec {
            cameras,
            ..Spec::new(10, &[3, 1, 4])
        });
    }
}

#[test]
fn offsets_may_be_off_by_the_rounding_of_a_running_sum() {
    for shift in [|_| 1e-13, |_| -1e-13, |_| 9e-4] as [fn(testkit::Segment) -> f64; 3] {
        let cameras = vec![Camera {
            from_timestamp: FromTimestamp::Shifted(shift),
            ..camera()
        }];
        assert_pictures_are_own(Spec {
            cameras,
            ..Spec::new(10, &[3, 1, 4])
        });
    }
}

#[test]
fn image_features_may_have_any_name() {
    let dataset = Spec {
        cameras: vec![Camera::image("wrist")],
        ..Spec::new(10, &[3, 4])
    }
    .write();
    for sample in in_order(dataset.root()) {
        assert_eq!(codes(&sample, "wrist"), [own_code(&sample)]);
    }
}

#[test]
fn names_of_a_feature_may_have_any_form() {
    let dataset = Spec::new(10, &[3, 4]).write();
    dataset.edit_info(|_| {});
    let expected = in_order(dataset.root());
    for names in [
        json!(["x", "y"]),
        json!({ "motors": ["x", "y"] }),
        json!([["x"], ["y"]]),
        json!({ "x": 0, "y": 1 }),
    ] {
        dataset.edit_info(|info| info["features"]["action"]["names"] = names.clone());
        assert_eq!(in_order(dataset.root()), expected, "{names}");
        let pool = builder(dataset.root()).build().unwrap();
        assert_eq!(
            pool.metadata().info().feature("action").unwrap().names(),
            ["x", "y"]
        );
    }
    dataset.edit_info(|info| {
        info["features"]["action"]
            .as_object_mut()
            .unwrap()
            .remove("names");
    });
    assert_eq!(in_order(dataset.root()), expected);
}

#[test]
fn what_is_known_of_a_camera_may_stand_under_its_older_key() {
    let dataset = Spec {
        cameras: vec![camera()],
        ..Spec::new(10, &[3, 4])
    }
    .write();
    dataset.edit_info(|info| {
        let camera = info["features"][CAMERA].as_object_mut().unwrap();
        let details = camera.remove("info").unwrap();
        camera.insert("video_info".to_owned(), details);
    });
    let pool = builder(dataset.root()).build().unwrap();
    let feature = pool.metadata().info().feature(CAMERA).unwrap();
    assert_eq!(feature.info_text("codec"), Some("h264"));
    for sample in samples(&pool, 0) {
        assert_eq!(codes(&sample, CAMERA), [own_code(&sample)]);
    }
}

#[test]
fn columns_that_are_not_declared_are_left_out() {
    let mut spec = Spec::new(10, &[3, 4]);
    for storage in [
        Storage::FixedSizeList,
        Storage::Ragged(|row| row.frame_index % 3),
    ] {
        let key = format!("extra.{}", spec.features.len());
        let feature = Feature::new(&key, Dtype::Float32, &[2], |_, _| 0.0);
        spec.features.push(Feature {
            storage,
            declared: Declared::Not,
            ..feature
        });
    }
    let emitted = in_order(spec.write().root());
    assert_eq!(emitted.len(), 7);
    for sample in &emitted {
        assert!(
            sample
                .fields
                .iter()
                .all(|(key, _)| !key.starts_with("extra"))
        );
        assert_eq!(
            field(sample, "observation.state").as_f32().unwrap()[0],
            field(sample, "index").as_i64().unwrap()[0] as f32
        );
    }
}
