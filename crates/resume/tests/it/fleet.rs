//! A fleet's batches, against what they should be when they are listed one by one.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use resume::{Batching, EpochEnd, Error, Fleet, Turn};

fn shares(count: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![1 => 0_u64..3, 4 => 0_u64..60], count)
}

fn batchings() -> impl Strategy<Value = Batching> {
    let ends = prop_oneof![
        Just(EpochEnd::Exact),
        Just(EpochEnd::DropTail),
        Just(EpochEnd::Wrap)
    ];
    (1_u64..9, any::<bool>(), ends).prop_map(|(batch_size, drop_last, epoch_end)| Batching {
        batch_size,
        drop_last,
        epoch_end,
    })
}

/// Ranks, workers of each, and a fleet of either kind.
fn fleets() -> impl Strategy<Value = (usize, usize, Vec<u64>, Batching, Arc<Fleet>)> {
    let topologies = (1_usize..5, 1_usize..4, any::<bool>(), 0_usize..4);
    let parts = topologies.prop_flat_map(|(world_size, workers, is_canonical, scale)| {
        let consumers = world_size * workers;
        // A multiple of the consumers, or, as 1 divides every number, what divides them.
        let logical = match scale {
            0 => 1,
            1 => world_size,
            scale => consumers * (scale - 1),
        };
        let count = if is_canonical { logical } else { consumers };
        (
            Just((world_size, workers, is_canonical)),
            shares(count),
            batchings(),
        )
    });
    parts.prop_filter_map(
        "a fleet that can end as it should",
        |((world_size, workers, is_canonical), shares, batching)| {
            let fleet = if is_canonical {
                Fleet::canonical(&shares, world_size, workers, batching)
            } else {
                Fleet::new(&shares, world_size, workers, batching)
            };
            Some((world_size, workers, shares, batching, Arc::new(fleet.ok()?)))
        },
    )
}

/// All batches of a rank, from one of them on.
fn rank_turns(fleet: &Fleet, rank: usize, first: u64) -> Vec<Turn> {
    (first..fleet.num_batches(rank))
        .map(|batch| fleet.turn(rank, batch).unwrap())
        .collect()
}

/// The batches of all ranks, step by step, and rank by rank in each.
fn global(fleet: &Fleet, world_size: usize) -> Vec<Turn> {
    let steps = (0..world_size).map(|rank| fleet.num_batches(rank)).max();
    let places = (0..steps.unwrap()).flat_map(|step| (0..world_size).map(move |rank| (rank, step)));
    places
        .filter_map(|(rank, step)| fleet.turn(rank, step))
        .collect()
}

/// How often each sample of each consumer comes.
fn counts(turns: &[Turn], shares: &[u64]) -> Vec<Vec<u64>> {
    let mut counts: Vec<_> = shares
        .iter()
        .map(|&share| vec![0; share as usize])
        .collect();
    for turn in turns {
        for sample in turn.start..turn.start + turn.len {
            counts[turn.consumer][(sample % shares[turn.consumer]) as usize] += 1;
        }
    }
    counts
}

proptest! {
    #[test]
    fn even_ranks_are_even((world_size, _, shares, batching, fleet) in fleets()) {
        let turns = global(&fleet, world_size);
        let sizes: Vec<u64> = (0..world_size).map(|rank| fleet.num_batches(rank)).collect();
        let counts = counts(&turns, &shares);
        let all = || counts.iter().flatten();
        let (dropped, repeated) = (
            all().filter(|&&n| n == 0).count() as u64,
            all().map(|&n: &u64| n.saturating_sub(1)).sum::<u64>(),
        );
        prop_assert_eq!((fleet.num_dropped(), fleet.num_repeated()), (dropped, repeated));
        if batching.epoch_end != EpochEnd::Exact {
            prop_assert!(sizes.iter().all(|&size| size == sizes[0] && size > 0), "{:?}", sizes);
        }
        match batching.epoch_end {
            EpochEnd::Exact if !batching.drop_last => prop_assert_eq!((dropped, repeated), (0, 0)),
            EpochEnd::Exact | EpochEnd::DropTail => prop_assert_eq!(repeated, 0),
            EpochEnd::Wrap if !batching.drop_last => prop_assert_eq!(dropped, 0),
            EpochEnd::Wrap => {}
        }
        for (counts, &share) in counts.iter().zip(&shares) {
            // What comes is the start of the consumer's samples, over and over.
            prop_assert!(counts.windows(2).all(|pair| pair[0] >= pair[1]) || batching.drop_last);
            prop_assert_eq!(counts.len() as u64, share);
        }
        for consumer in 0..shares.len() {
            let ends = turns.iter().filter(|turn| turn.consumer == consumer).map(|turn| turn.start + turn.len);
            prop_assert_eq!(fleet.reach(consumer), ends.max().unwrap_or(0));
        }
        for turn in &turns {
            prop_assert!(turn.len == batching.batch_size || !batching.drop_last);
            prop_assert!((1..=batching.batch_size).contains(&turn.len));
        }
    }

    #[test]
    fn resume_is_exact((world_size, workers, _, _, fleet) in fleets(), first in 0_u64..40) {
        for rank in 0..world_size {
            let first = first.min(fleet.num_batches(rank));
            // As a loader does: workers give batches in turn, and one that has no more drops out.
            let mut queue: VecDeque<_> = (0..workers).map(|worker| fleet.worker_turns(rank, worker, first)).collect();
            queue.rotate_left(fleet.worker_of(rank, first));
            let mut batches = Vec::new();
            while let Some(mut worker) = queue.pop_front() {
                if let Some(turn) = worker.next() {
                    batches.push(turn);
                    queue.push_back(worker);
                }
            }
            prop_assert_eq!(batches, rank_turns(&fleet, rank, first));
            prop_assert_eq!(fleet.turn(rank, fleet.num_batches(rank)), None);
            for worker in 0..workers {
                let samples: u64 = fleet.worker_turns(rank, worker, first).map(|turn| turn.len).sum();
                prop_assert_eq!(fleet.num_samples(rank, worker, first), samples);
            }
        }
    }

    #[test]
    fn what_was_emitted_is_what_the_batches_hold((world_size, _, shares, batching, fleet) in fleets(), steps in 0_u64..40) {
        let taken = (0..world_size).flat_map(|rank| (0..steps).map(move |step| (rank, step)));
        let turns: Vec<_> = taken.filter_map(|(rank, step)| fleet.turn(rank, step)).collect();
        for ((emitted, counts), share) in fleet.emitted(steps).into_iter().zip(counts(&turns, &shares)).zip(shares) {
            prop_assert!(emitted <= share || batching.epoch_end == EpochEnd::Wrap);
            // What is repeated was emitted before.
            prop_assert_eq!(emitted.min(share), counts.iter().filter(|&&n| n > 0).count() as u64);
        }
    }

    #[test]
    fn canonical_order_is_topology_free(
        (canonical, batching, shares) in (1_usize..13).prop_flat_map(|count| (Just(count), batchings(), shares(count))),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u64..6), 1..5),
    ) {
        let Ok(alone) = Fleet::canonical(&shares, 1, 1, batching) else { return Ok(()) };
        let expected = global(&alone, 1);
        let is_even = batching.epoch_end != EpochEnd::Exact;
        let mut topologies = Vec::new();
        for world_size in 1..=canonical * 3 {
            for workers in 1..=canonical * 3 {
                let consumers = world_size * workers;
                let fits = consumers.is_multiple_of(canonical) || canonical.is_multiple_of(consumers);
                let fleet = Fleet::canonical(&shares, world_size, workers, batching);
                if !fits {
                    let is_refused = matches!(fleet, Err(Error::NotCanonical { .. }));
                    prop_assert!(is_refused);
                    continue;
                }
                // More ranks than logical consumers may end evenly at another place only.
                if is_even && !canonical.is_multiple_of(world_size) {
                    continue;
                }
                prop_assert_eq!(&global(&fleet.unwrap(), world_size), &expected, "{} x {}", world_size, workers);
                topologies.push((world_size, workers));
            }
        }
        // One topology after the other goes on where the last one stood.
        let (mut turns, mut taken) = (Vec::new(), 0);
        for (topology, steps) in changes {
            let (world_size, workers) = topologies[topology.index(topologies.len())];
            let fleet = Fleet::canonical(&shares, world_size, workers, batching).unwrap().after(taken, batching.epoch_end);
            for step in 0..steps {
                turns.extend((0..world_size).filter_map(|rank| fleet.turn(rank, step)));
            }
            taken = fleet.global_batches(steps);
            // An even end may come earlier or later by less than a batch for each rank.
            let common = turns.len().min(expected.len());
            prop_assert_eq!(&turns[..common], &expected[..common]);
            prop_assert_eq!(taken.min(expected.len() as u64), common as u64);
        }
        let rest = Fleet::canonical(&shares, 1, 1, batching).unwrap().after(taken, batching.epoch_end);
        turns.extend(global(&rest, 1));
        prop_assert!(turns.len() >= expected.len() || is_even);
        let common = turns.len().min(expected.len());
        prop_assert_eq!(&turns[..common], &expected[..common]);
    }
}

fn batching(epoch_end: EpochEnd) -> Batching {
    Batching {
        batch_size: 2,
        drop_last: false,
        epoch_end,
    }
}

fn turns(fleet: &Fleet, rank: usize) -> Vec<(usize, u64, u64)> {
    rank_turns(fleet, rank, 0)
        .iter()
        .map(|turn| (turn.consumer, turn.start, turn.len))
        .collect()
}

#[test]
fn the_worked_examples() {
    // Two ranks of two workers, with 6 + 3 and 2 + 2 samples: 5 batches and 2.
    let shares = [6, 3, 2, 2];
    let exact = Fleet::new(&shares, 2, 2, batching(EpochEnd::Exact)).unwrap();
    assert_eq!(
        turns(&exact, 0),
        [(0, 0, 2), (1, 0, 2), (0, 2, 2), (1, 2, 1), (0, 4, 2)]
    );
    assert_eq!(turns(&exact, 1), [(2, 0, 2), (3, 0, 2)]);

    let dropped = Fleet::new(&shares, 2, 2, batching(EpochEnd::DropTail)).unwrap();
    assert_eq!(turns(&dropped, 0), [(0, 0, 2), (1, 0, 2)]);
    assert_eq!(turns(&dropped, 1), [(2, 0, 2), (3, 0, 2)]);
    assert_eq!((dropped.num_dropped(), dropped.num_repeated()), (5, 0));

    let wrapped = Fleet::new(&shares, 2, 2, batching(EpochEnd::Wrap)).unwrap();
    assert_eq!(turns(&wrapped, 0), turns(&exact, 0));
    assert_eq!(
        turns(&wrapped, 1),
        [(2, 0, 2), (3, 0, 2), (2, 2, 2), (3, 2, 2), (2, 4, 2)]
    );
    assert_eq!((wrapped.num_dropped(), wrapped.num_repeated()), (0, 6));
}

#[test]
fn shares_without_a_full_batch_are_not_repeated_either() {
    let batching = Batching {
        batch_size: 5,
        drop_last: true,
        epoch_end: EpochEnd::Wrap,
    };
    let fleet = Fleet::canonical(&[8, 1], 2, 2, batching).unwrap();
    assert_eq!(
        global(&fleet, 2)
            .iter()
            .map(|turn| turn.consumer)
            .collect::<Vec<_>>(),
        [0, 0]
    );
    assert_eq!([fleet.reach(0), fleet.reach(1)], [13, 0]);
}

#[test]
fn what_cannot_be_dealt_out_is_an_error() {
    let fleet =
        |shares: &[u64], epoch_end| Fleet::new(shares, 2, 1, batching(epoch_end)).unwrap_err();
    assert!(matches!(
        fleet(&[1, 2, 3], EpochEnd::Exact),
        Error::WrongShares { found: 3, .. }
    ));
    assert_eq!(
        fleet(&[4, 0], EpochEnd::Wrap).to_string(),
        "the epoch cannot end evenly (epoch_end wrap): rank 1 yields no batch or too few; use a smaller batch size, fewer \
         ranks or workers, or epoch_end exact"
    );
    let exact = Fleet::new(&[4, 0], 2, 1, batching(EpochEnd::Exact)).unwrap();
    assert_eq!(exact.locate(1, 0), Err(Error::EmptyRank { rank: 1 }));
    assert_eq!(exact.locate(0, 5), Ok((2, 1)));

    let canonical = |shares: &[u64], world_size, epoch_end| {
        Fleet::canonical(shares, world_size, 2, batching(epoch_end)).unwrap_err()
    };
    assert_eq!(
        canonical(&[9, 9, 9], 2, EpochEnd::Exact).to_string(),
        "2 rank(s) of 2 worker(s) cannot serve canonical_consumers 3: one of the numbers has to divide the other, and 4 does not"
    );
    assert_eq!(canonical(&[9], 0, EpochEnd::Exact), Error::NoWorkers);
    assert_eq!(canonical(&[], 1, EpochEnd::Exact), Error::NoWorkers);
    assert!(matches!(
        canonical(&[1, 1, 0, 0], 2, EpochEnd::DropTail),
        Error::NoEvenEpoch { .. }
    ));
}

#[test]
fn a_trillion_batches_take_no_longer_than_ten() {
    let share = 16_000_000_000_000;
    let fleet = Fleet::canonical(&[share; 6], 2, 3, batching(EpochEnd::Wrap)).unwrap();
    assert_eq!(fleet.num_batches(1), share * 6 / 4);
    let turn = fleet.turn(1, share).unwrap();
    assert_eq!(
        turn,
        Turn {
            consumer: 3,
            start: share / 3 * 2,
            len: 2
        }
    );
    assert_eq!(
        fleet.num_samples(0, 0, 1_000_000_000_000 * 3),
        share - 2_000_000_000_000
    );
}
