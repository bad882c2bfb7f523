//! What fuzzing has found, again: every input that is kept in `fuzz/artifacts/`.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/src/deltas.rs"]
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

#[test]
fn delta_timestamps() {
    let good = [10.0_f64, 1e-4, -0.1, 0.0, 0.1].map(f64::to_le_bytes);
    replay(
        "delta_timestamps",
        harness::delta_timestamps,
        good.as_flattened(),
    );
}
