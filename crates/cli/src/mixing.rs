//! How well an order mixes a dataset: against a global shuffle, and against no shuffle at all.

use std::collections::{BTreeMap, BTreeSet};

/// The share of the batches that each of the parts at the start, in the middle and at the end holds: one in so many.
const PARTS: usize = 20;

/// One frame of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedFrame {
    pub(crate) episode_index: usize,
    /// The frame's number in the dataset.
    pub(crate) index: u64,
}

/// How well an order mixes its frames.
///
/// Only full batches count, since one that is not full has fewer episodes for its size alone; an order too short for one
/// counts as a batch of its own length.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mixing {
    /// The samples in the batches that were counted.
    pub(crate) batch_size: usize,
    /// The distinct episodes that a batch of as many frames has on average, when a global shuffle of the same frames is cut
    /// into batches.
    pub(crate) global_shuffle: f64,
    /// The first, middle and last twentieth of the batches, and all of them.
    pub(crate) parts: [Part; 4],
}

/// How well the batches of a part of the order are mixed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) batches: usize,
    /// The distinct episodes in a batch, on average.
    pub(crate) mean: f64,
    /// The distinct episodes in the batch that has the fewest.
    pub(crate) min: usize,
    /// Spearman's rank correlation between a frame's position in the order and its number in the dataset: 1 when the part
    /// follows the dataset, about 0 when it is shuffled. `None` of fewer than two frames.
    pub(crate) correlation: Option<f64>,
}

impl Mixing {
    /// Measures an order in batches of `batch_size`, at least 1; `None` if it has no frame.
    pub(crate) fn of(order: &[PlannedFrame], batch_size: usize) -> Option<Self> {
        let batch_size = batch_size.min(order.len());
        if batch_size == 0 {
            return None;
        }
        let batches = order.len() / batch_size;
        let size = batches.div_ceil(PARTS);
        let middle = (batches - size) / 2;
        let part = |name, first: usize, batches: usize| {
            let frames = &order[first * batch_size..(first + batches) * batch_size];
            Part::of(name, frames, batch_size)
        };
        Some(Self {
            batch_size,
            global_shuffle: distinct_when_shuffled(order, batch_size),
            parts: [
                part("first 5 %", 0, size),
                part("middle 5 %", middle, size),
                part("last 5 %", batches - size, size),
                part("all", 0, batches),
            ],
        })
    }
}

impl Part {
    /// `frames` are full batches, at least one.
    fn of(name: &'static str, frames: &[PlannedFrame], batch_size: usize) -> Self {
        let batches = frames.len() / batch_size;
        let distinct = |batch: &[PlannedFrame]| {
            batch
                .iter()
                .map(|frame| frame.episode_index)
                .collect::<BTreeSet<_>>()
                .len()
        };
        let (sum, min) = frames
            .chunks_exact(batch_size)
            .map(distinct)
            .fold((0, usize::MAX), |(sum, min), distinct| {
                (sum + distinct, min.min(distinct))
            });
        Self {
            name,
            batches,
            mean: sum as f64 / batches as f64,
            min,
            correlation: rank_correlation(frames),
        }
    }
}

/// The expected number of distinct episodes among `batch_size` frames drawn from `order` without replacement.
///
/// Of `N` frames, `n` belong to an episode; a batch of `B` has none of them with probability `C(N - n, B) / C(N, B)`,
/// the product over `i < B` of `(N - n - i) / (N - i)`. What remains of 1 is the episode's part in the sum.
///
/// Two episodes of 2 frames each, in batches of 2: each is absent with probability 2/4 * 1/3 = 1/6, so a batch has
/// 2 * 5/6 = 1.67 episodes on average.
fn distinct_when_shuffled(order: &[PlannedFrame], batch_size: usize) -> f64 {
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for frame in order {
        *lengths.entry(frame.episode_index).or_default() += 1;
    }
    let frames = order.len();
    let absent = |length: usize| -> f64 {
        let others = frames - length;
        (0..batch_size)
            .map(|i| others.saturating_sub(i) as f64 / (frames - i) as f64)
            .product()
    };
    lengths.values().map(|&length| 1.0 - absent(length)).sum()
}

/// Spearman's rank correlation of position and dataset number: `1 - 6 * sum(d^2) / (n * (n^2 - 1))`, `d` being how far a
/// frame stands from where the dataset's order would put it.
fn rank_correlation(frames: &[PlannedFrame]) -> Option<f64> {
    if frames.len() < 2 {
        return None;
    }
    let mut positions: Vec<usize> = (0..frames.len()).collect();
    positions.sort_unstable_by_key(|&position| frames[position].index);
    let squares: f64 = positions
        .iter()
        .enumerate()
        .map(|(rank, &position)| (rank.abs_diff(position) as f64).powi(2))
        .sum();
    let n = frames.len() as f64;
    Some(1.0 - 6.0 * squares / (n * (n * n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Episodes of 2 frames each, in the given order of dataset numbers.
    fn order(indices: impl IntoIterator<Item = u64>) -> Vec<PlannedFrame> {
        let frame = |index| PlannedFrame {
            episode_index: usize::try_from(index / 2).unwrap(),
            index,
        };
        indices.into_iter().map(frame).collect()
    }

    #[test]
    fn a_global_shuffle_is_expected_exactly() {
        // Worked out by hand in the function's docs, and for batches of 3: nothing of an episode in 0 of 4 cases.
        for (batch_size, expected) in [(1, 1.0), (2, 5.0 / 3.0), (3, 2.0), (4, 2.0)] {
            let found = distinct_when_shuffled(&order(0..4), batch_size);
            assert!((found - expected).abs() < 1e-12, "{batch_size}: {found}");
        }
    }

    #[test]
    fn the_datasets_order_mixes_nothing() {
        let mixing = Mixing::of(&order(0..400), 2).unwrap();
        let [first, middle, last, all] = mixing.parts;
        for (part, batches) in [(&first, 10), (&middle, 10), (&last, 10), (&all, 200)] {
            assert_eq!(
                (part.batches, part.mean, part.min),
                (batches, 1.0, 1),
                "{}",
                part.name
            );
            assert_eq!(part.correlation, Some(1.0), "{}", part.name);
        }
        assert!((mixing.global_shuffle - (2.0 - 2.0 / 399.0 * 0.5 * 1.0)).abs() < 0.01);
    }

    #[test]
    fn parts_are_of_the_batches_where_they_stand() {
        // The first batch of 20 has two episodes, each of the others one.
        let mixing = Mixing::of(&order([0, 2, 1, 3].into_iter().chain(4..40)), 2).unwrap();
        let [first, middle, last, all] = mixing.parts;
        assert_eq!(
            (first.mean, middle.mean, last.mean, all.min),
            (2.0, 1.0, 1.0, 1)
        );
        assert!((all.mean - 22.0 / 20.0).abs() < 1e-12, "{all:?}");
    }

    #[test]
    fn the_opposite_order_has_the_opposite_correlation() {
        assert_eq!(rank_correlation(&order((0..9).rev())), Some(-1.0));
        assert_eq!(rank_correlation(&order([5])), None);
    }

    #[test]
    fn a_last_batch_that_is_not_full_counts_only_alone() {
        assert_eq!(Mixing::of(&order(0..5), 2).unwrap().parts[3].batches, 2);
        let alone = Mixing::of(&order(0..5), 16).unwrap();
        assert_eq!(
            (alone.batch_size, alone.parts[3].batches, alone.parts[3].min),
            (5, 1, 3)
        );
        assert_eq!(Mixing::of(&[], 16), None);
    }
}
