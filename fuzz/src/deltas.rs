//! Hostile numbers for `window`.

use std::collections::BTreeMap;

use window::{DeltaTimestamps, Offsets};

/// A window longer than this tests nothing that a shorter one does not.
const MAX_DELTAS: usize = 256;

/// `bytes` as little-endian doubles: the frames per second, the tolerance, then the deltas of one key.
///
/// Returns the number of steps in the window, 0 if it was refused.
pub fn delta_timestamps(bytes: &[u8]) -> usize {
    let mut numbers = bytes
        .chunks_exact(8)
        .map(|chunk| f64::from_le_bytes(chunk.try_into().expect("chunks_exact gives eight bytes")));
    let (Some(fps), Some(tolerance_s)) = (numbers.next(), numbers.next()) else {
        return 0;
    };
    let deltas_s: Vec<f64> = numbers.take(MAX_DELTAS).collect();

    let deltas = BTreeMap::from([("action".to_owned(), deltas_s.clone())]);
    match DeltaTimestamps::new(&deltas, fps, tolerance_s, &["action"]) {
        Ok(windows) => {
            let offsets = windows
                .get("action")
                .expect("every key that was given has a window");
            assert_eq!(offsets.len(), deltas_s.len());
            for (frame, length) in [(0, 1), (0, 10), (9, 10), (usize::MAX - 1, usize::MAX)] {
                check_window(offsets, frame, length);
            }
            offsets.len()
        }
        // The message is what a user reads: it must come out, whatever the numbers.
        Err(error) => {
            assert!(!error.to_string().is_empty());
            0
        }
    }
}

/// The three views of a window agree with each other and stay within the episode.
fn check_window(offsets: &Offsets, frame: usize, length: usize) {
    let indices: Vec<usize> = offsets.indices(frame, length).collect();
    let is_pad: Vec<bool> = offsets.is_pad(frame, length).collect();
    assert_eq!(
        (indices.len(), is_pad.len()),
        (offsets.len(), offsets.len())
    );
    assert!(indices.iter().all(|&index| index < length));

    let mut from_runs = Vec::with_capacity(indices.len());
    for run in offsets.runs(frame, length) {
        from_runs.extend((0..run.len).map(|step| {
            if run.repeat {
                run.first
            } else {
                run.first + step
            }
        }));
    }
    assert_eq!(from_runs, indices);

    for ((&offset, &index), &pad) in offsets.as_slice().iter().zip(&indices).zip(&is_pad) {
        let wanted = frame as i128 + i128::from(offset);
        assert_eq!(pad, wanted < 0 || wanted >= length as i128);
        assert!(pad || wanted == index as i128);
    }
}
