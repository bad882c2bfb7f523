//! Resuming equals never having stopped, against a simulation of torch's loader.

use std::collections::VecDeque;
use std::ops::Range;

use proptest::prelude::*;
use resume::{State, batches_per_epoch};

/// A batch: whose it is, and which of that worker's samples of the epoch.
type Batch = (usize, Range<u64>);

/// One epoch, batch by batch, of a loader whose `i`-th worker is `workers[i]`: a worker and what it has left to emit.
///
/// As torch does it: a queue of workers is cycled, and one that is asked for a batch and has none leaves it.
fn rotate(workers: Vec<Batch>, batch_size: u64, drop_last: bool) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut queue = VecDeque::from(workers);
    while let Some((worker, left)) = queue.pop_front() {
        let end = left.end.min(left.start + batch_size);
        let len = end - left.start;
        if len == 0 || (drop_last && len < batch_size) {
            continue;
        }
        batches.push((worker, left.start..end));
        queue.push_back((worker, end..left.end));
    }
    batches
}

fn fresh(shares: &[u64]) -> Vec<Batch> {
    shares
        .iter()
        .enumerate()
        .map(|(worker, &share)| (worker, 0..share))
        .collect()
}

proptest! {
    #[test]
    fn resume_is_exact(
        shares in prop::collection::vec(prop_oneof![0_u64..5, 0_u64..60], 1..8),
        batch_size in 1_u64..9,
        drop_last: bool,
        consumed in 0_usize..400,
    ) {
        let epoch = rotate(fresh(&shares), batch_size, drop_last);
        prop_assert_eq!(batches_per_epoch(&shares, batch_size, drop_last), Ok(epoch.len() as u64));
        prop_assume!(!epoch.is_empty());

        let state = State { batches_consumed: consumed as u64, batch_size };
        let position = state.position(&shares, drop_last).unwrap();
        prop_assert_eq!(position.epoch(), (consumed / epoch.len()) as u64);

        // A fresh loader over what is left yields the rest of the epoch, batch for batch.
        let resumed = (0..shares.len())
            .map(|i| {
                let worker = position.worker_for(i);
                (worker, position.samples_to_skip()[worker]..shares[worker])
            })
            .collect();
        let rest = rotate(resumed, batch_size, drop_last);
        prop_assert_eq!(&rest[..], &epoch[consumed % epoch.len()..]);
        prop_assert_eq!(rest[0].0, position.next_worker());
    }
}
