//! Indices, masks and runs equal a naive clamped reference.

use proptest::prelude::*;
use window::{DEFAULT_TOLERANCE_S, Offsets};

/// Offsets in whole frames, through the only door there is: seconds at 1 fps.
fn offsets(frames: &[i64]) -> Offsets {
    let deltas_s: Vec<f64> = frames.iter().map(|&n| n as f64).collect();
    Offsets::from_seconds("key", &deltas_s, 1.0, 0.0).unwrap()
}

#[test]
fn the_first_step_out_of_the_episode_is_marked() {
    let window = offsets(&[-2, -1, 0, 1, 2]);
    let check = |frame, indices: [usize; 5], is_pad: [bool; 5]| {
        assert_eq!(
            window.indices(frame, 5).collect::<Vec<_>>(),
            indices,
            "frame {frame}"
        );
        assert_eq!(
            window.is_pad(frame, 5).collect::<Vec<_>>(),
            is_pad,
            "frame {frame}"
        );
    };
    check(0, [0, 0, 0, 1, 2], [true, true, false, false, false]);
    check(1, [0, 0, 1, 2, 3], [true, false, false, false, false]);
    check(2, [0, 1, 2, 3, 4], [false; 5]);
    check(3, [1, 2, 3, 4, 4], [false, false, false, false, true]);
    check(4, [2, 3, 4, 4, 4], [false, false, false, true, true]);
}

#[test]
fn an_episode_of_one_frame_repeats_it() {
    let window = offsets(&[-1, 0, 1]);
    assert_eq!(window.indices(0, 1).collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(window.is_pad(0, 1).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(window.runs(0, 1).count(), 1);
}

#[test]
fn there_is_no_ceiling_but_the_episode() {
    // 3.5 s at 30 fps are 105 frames.
    let window = Offsets::from_seconds("key", &[-3.5, 3.5], 30.0, DEFAULT_TOLERANCE_S).unwrap();
    assert_eq!(window.as_slice(), [-105, 105]);
    assert_eq!(window.indices(150, 300).collect::<Vec<_>>(), [45, 255]);
    assert_eq!(window.is_pad(150, 300).collect::<Vec<_>>(), [false, false]);
    assert_eq!(window.indices(104, 300).collect::<Vec<_>>(), [0, 209]);
    assert_eq!(window.is_pad(104, 300).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn consecutive_steps_are_one_run() {
    let window = offsets(&(0..50).collect::<Vec<_>>());
    assert_eq!(window.runs(10, 100).count(), 1);
    // 10 rows are left, the last of them begins the padding's repeats.
    assert_eq!(window.runs(90, 100).count(), 2);
}

#[test]
#[should_panic(expected = "frame 3 is outside an episode of 3 frames")]
fn a_frame_outside_its_episode_is_a_broken_promise() {
    let _ = offsets(&[0]).indices(3, 3);
}

/// A frame and the length of its episode.
fn places() -> impl Strategy<Value = (usize, usize)> {
    prop_oneof![1_usize..40, 1_usize..(1 << 40)].prop_flat_map(|length| (0..length, Just(length)))
}

fn steps() -> impl Strategy<Value = Vec<i64>> {
    let far = -(1_i64 << 53)..=(1 << 53);
    prop::collection::vec(prop_oneof![4 => -20_i64..=20, 1 => far], 1..40)
}

proptest! {
    #[test]
    fn equals_the_naive_reference(frames in steps(), (frame, length) in places()) {
        let window = offsets(&frames);
        // Wide enough that nothing can overflow.
        let wanted: Vec<i128> = frames.iter().map(|&n| frame as i128 + i128::from(n)).collect();
        let last = length as i128 - 1;
        let indices: Vec<usize> = wanted.iter().map(|&i| i.clamp(0, last) as usize).collect();
        let is_pad: Vec<bool> = wanted.iter().map(|&i| i < 0 || i > last).collect();
        prop_assert_eq!(window.indices(frame, length).collect::<Vec<_>>(), indices);
        prop_assert_eq!(window.is_pad(frame, length).collect::<Vec<_>>(), is_pad);
        prop_assert_eq!(window.len(), frames.len());
    }

    #[test]
    fn runs_concatenate_to_the_indices(frames in steps(), (frame, length) in places()) {
        let window = offsets(&frames);
        let mut rows = Vec::new();
        for run in window.runs(frame, length) {
            prop_assert!(run.len > 0);
            rows.extend((0..run.len).map(|k| if run.repeat { run.first } else { run.first + k }));
        }
        prop_assert_eq!(rows, window.indices(frame, length).collect::<Vec<_>>());
    }

    #[test]
    fn every_whole_frame_is_found_again(n in -100_000_i64..=100_000, fps in prop_oneof![Just(30.0), Just(30_000.0 / 1001.0), 1.0..240.0]) {
        let window = Offsets::from_seconds("key", &[n as f64 / fps], fps, DEFAULT_TOLERANCE_S).unwrap();
        prop_assert_eq!(window.as_slice(), [n]);
    }
}
