//! The bundled datasets are where they are said to be.

use testkit::fixtures::{copy_dataset, dataset};
use testkit::{FIXTURES, Truth};

#[test]
fn every_fixture_has_a_dataset_and_its_truth() {
    for name in FIXTURES {
        assert!(dataset(name).join("meta/info.json").exists(), "{name}");
        let truth = Truth::read(name);
        assert!(
            truth.fps > 0.0 && !truth.plain.is_empty() && !truth.windowed.is_empty(),
            "{name}"
        );
        for item in &truth.windowed {
            for (key, deltas_s) in &truth.delta_timestamps {
                let mask = item.item[&format!("{key}_is_pad")].as_array();
                assert_eq!(mask.map(Vec::len), Some(deltas_s.len()), "{name} {key}");
            }
        }
    }
}

#[test]
fn a_copy_may_be_damaged() {
    let copy = copy_dataset("no_camera");
    let file = copy.path().join("data/chunk-000/file-000.parquet");
    let original = std::fs::read(dataset("no_camera").join("data/chunk-000/file-000.parquet"));
    let original = original.expect("the fixture can be read");
    assert_eq!(
        std::fs::read(&file).expect("the copy can be read"),
        original
    );
    std::fs::write(&file, &original[..100]).expect("the copy can be written");
}
