//! The promises, over random wishes and budgets.

use std::collections::BTreeSet;

use lookahead::{FrameId, Gop, Pass, Scheduler, Wanted};
use proptest::prelude::*;

const BYTES: u32 = 10;

fn wanted(gop: u32, frame: u32) -> Wanted {
    let gop = Gop {
        video: gop / 4,
        start: gop % 4,
    };
    Wanted {
        frame: FrameId { gop, frame },
        bytes: BYTES,
    }
}

/// Samples of up to five frames, of up to 12 GOPs of up to 6 frames.
fn samples() -> impl Strategy<Value = Vec<Vec<Wanted>>> {
    let sample = prop::collection::vec((0..12_u32, 0..6_u32), 0..5);
    prop::collection::vec(sample, 0..60).prop_map(|samples| {
        samples
            .iter()
            .map(|sample| {
                sample
                    .iter()
                    .map(|&(gop, frame)| wanted(gop, frame))
                    .collect()
            })
            .collect()
    })
}

fn frames(pass: &Pass) -> impl Iterator<Item = FrameId> + '_ {
    let gop = pass.gop;
    pass.frames.iter().map(move |&frame| FrameId { gop, frame })
}

/// Runs all samples through a scheduler, at most `depth` under way at once and at most `horizon` known ahead, and checks every promise.
/// Returns the number of frames that the passes decode.
fn run(samples: &[Vec<Wanted>], budget_frames: u64, depth: usize, horizon: usize) -> usize {
    let budget_bytes = budget_frames * u64::from(BYTES);
    let mut scheduler = Scheduler::new(budget_bytes);
    // What a caller has: frames decoded for somebody and not dropped.
    let mut have = BTreeSet::new();
    let (mut pushed, mut scheduled, mut released, mut decoded) = (0, 0, 0, 0);
    while released < samples.len() {
        while pushed < samples.len() && pushed < scheduled + horizon.max(1) {
            scheduler.push(&samples[pushed]);
            pushed += 1;
        }
        let step = (scheduled - released < depth)
            .then(|| scheduler.schedule())
            .flatten();
        if let Some(step) = step {
            for pass in &step.passes {
                assert!(pass.frames.is_sorted_by(|a, b| a < b), "{pass:?}");
                for frame in frames(pass) {
                    decoded += 1;
                    assert!(have.insert(frame), "{frame:?} is there already");
                }
            }
            for frame in &step.dropped {
                assert!(have.remove(frame), "{frame:?} was never there");
            }
            scheduled += 1;
        } else {
            assert!(
                scheduled > released,
                "a sample alone can always be scheduled"
            );
            for frame in scheduler.release() {
                assert!(have.remove(&frame), "{frame:?} was never there");
            }
            released += 1;
        }
        for sample in &samples[released..scheduled] {
            for wanted in sample {
                assert!(have.contains(&wanted.frame), "{wanted:?} is missing");
            }
        }
        assert_eq!(scheduler.num_scheduled(), scheduled - released);
        assert_eq!(scheduler.held_bytes(), have.len() as u64 * u64::from(BYTES));
        let one_sample = (scheduled - released == 1)
            .then(|| distinct(&samples[released..scheduled]).len() as u64 * u64::from(BYTES));
        let limit = budget_bytes.max(one_sample.unwrap_or(0));
        assert!(
            scheduler.held_bytes() <= limit,
            "{} held",
            scheduler.held_bytes()
        );
    }
    assert!(have.is_empty(), "{have:?} are left");
    assert_eq!(scheduler.num_waiting_uses(), 0);
    decoded
}

fn distinct(samples: &[Vec<Wanted>]) -> BTreeSet<FrameId> {
    samples
        .iter()
        .flatten()
        .map(|wanted| wanted.frame)
        .collect()
}

proptest! {
    #[test]
    fn every_frame_is_there_in_time_and_memory_is_bounded(
        samples in samples(), budget in 0..40_u64, depth in 1..8_usize, horizon in 1..70_usize,
    ) {
        run(&samples, budget, depth, horizon);
    }

    #[test]
    fn with_room_for_all_each_frame_is_decoded_once(samples in samples(), depth in 1..8_usize) {
        prop_assert_eq!(run(&samples, 1_000, depth, samples.len()), distinct(&samples).len());
    }

    #[test]
    fn without_foresight_each_sample_pays_for_what_was_not_kept(samples in samples()) {
        // A horizon of one sample: nothing is known to be wanted again, so nothing is kept.
        let each: usize = samples.iter().map(|sample| distinct(std::slice::from_ref(sample)).len()).sum();
        prop_assert_eq!(run(&samples, 1_000, 1, 1), each);
    }

    #[test]
    fn pairs_are_shared_as_often_as_any_policy_could(gaps in prop::collection::vec(0..20_usize, 1..12), room in 0..6_u64) {
        // GOPs of two frames, each wanted by one sample of its own. A pair that shares a pass takes up one place from its first sample to its
        // second; the most pairs that fit into `room` places is what taking the one that ends first gives.
        let mut order: Vec<(usize, u32, u32)> = Vec::new();
        for (pair, &gap) in gaps.iter().enumerate() {
            order.push((3 * pair, pair as u32, 0));
            order.push((3 * pair + gap + 1, pair as u32, 1));
        }
        order.sort_unstable();
        let samples: Vec<Vec<Wanted>> = order.iter().map(|&(_, pair, frame)| vec![wanted(pair, frame)]).collect();
        let place = |pair: u32, frame: u32| order.iter().position(|&(_, p, f)| (p, f) == (pair, frame)).unwrap();
        let pairs: Vec<(usize, usize)> =
            (0..gaps.len() as u32).map(|pair| (place(pair, 0), place(pair, 1))).map(|(a, b)| (a.min(b), a.max(b))).collect();
        let best = (0_u32..1 << pairs.len())
            .filter(|chosen| {
                (0..order.len()).all(|now| {
                    let kept = (0..pairs.len()).filter(|&pair| chosen >> pair & 1 == 1 && pairs[pair].0 <= now && now < pairs[pair].1);
                    kept.count() as u64 <= room
                })
            })
            .map(u32::count_ones)
            .max()
            .unwrap();

        let mut scheduler = Scheduler::new((room + 1) * u64::from(BYTES));
        samples.iter().for_each(|sample| scheduler.push(sample));
        let mut shared = 0;
        for _ in &samples {
            shared += u32::from(scheduler.schedule().unwrap().passes.is_empty());
            scheduler.release();
        }
        prop_assert_eq!(shared, best);
    }
}
