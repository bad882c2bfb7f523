//! What fuzzing has found, again: every input that is kept in `fuzz/artifacts/`.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/src/tables.rs"]
#[expect(
    unreachable_pub,
    reason = "the file belongs to fuzz/, where its functions are public"
)]
mod harness;

/// Feeds a target's finds to its harness, after a good input, which has to get through.
fn replay(target: &str, harness: fn(&[u8]) -> usize, good: &[u8]) {
    assert!(harness(good) > 0, "the good input is refused");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kept = root.join("fuzz/artifacts").join(target);
    for entry in kept.read_dir().into_iter().flatten() {
        let path = entry.unwrap().path();
        eprintln!("replaying {}", path.display());
        harness(&fs::read(path).unwrap());
    }
}

macro_rules! fixture {
    ($file:literal) => {
        include_bytes!(concat!("../../../../fixtures/no_camera/dataset/", $file))
    };
}

#[test]
fn dataset_info() {
    replay("dataset_info", harness::info, fixture!("meta/info.json"));
}

#[test]
fn dataset_tables() {
    let episodes: &[u8] = fixture!("meta/episodes/chunk-000/file-000.parquet");
    let length = u32::try_from(episodes.len()).unwrap().to_le_bytes();
    let good = [&length, episodes, fixture!("meta/tasks.parquet")].concat();
    replay("dataset_tables", harness::tables, &good);
}

#[test]
fn dataset_rows() {
    let good = [&[0], &fixture!("data/chunk-000/file-000.parquet")[..]].concat();
    replay("dataset_rows", harness::rows, &good);
}
