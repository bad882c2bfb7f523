//! Who reads what: no frame twice, none left out, nobody idle, and batches counted before the start.

use std::collections::BTreeSet;

use episode_pool::pool_core::{self, ShardUnit, Topology};
use episode_pool::resume::EpochEnd;
use episode_pool::{EpisodePool, Error, Loader, LoaderOptions, Warning, resume};
use testkit::{Spec, Split};

use crate::support::{builder, fleet, order};

fn idle_notice(pool: &EpisodePool) -> Option<usize> {
    pool.warnings().iter().find_map(|warning| match warning {
        Warning::Planning(pool_core::Warning::IdleConsumers { num_idle, .. }) => Some(*num_idle),
        _ => None,
    })
}

/// Files were divided twice, for shuffling and again for workers: one worker read 2,400 samples, the other none.
#[test]
fn every_frame_is_read_once_and_nobody_idles_while_there_is_something_to_share() {
    let lengths: Vec<usize> = (0..24).map(|episode| 4 + episode * 5 % 7).collect();
    let dataset = Spec {
        data_files: Split::Every(3),
        ..Spec::new(10, &lengths)
    }
    .write();
    let every: BTreeSet<(usize, usize)> = dataset
        .spec()
        .rows()
        .map(|row| (row.episode_index, row.frame_index))
        .collect();
    let base = builder(dataset.root()).build().unwrap();
    assert_eq!(base.metadata().data_files().len(), 8);
    for unit in [ShardUnit::Episode, ShardUnit::File] {
        for num_workers in [1, 2, 3, 8, 16] {
            let case = format!("{unit:?}, {num_workers} workers");
            let mut seen = BTreeSet::new();
            let mut idle = 0;
            let mut notices = BTreeSet::new();
            for topology in fleet(2, num_workers) {
                let pool = builder(dataset.root())
                    .shard_unit(unit)
                    .topology(topology)
                    .build()
                    .unwrap();
                notices.insert(idle_notice(&pool));
                idle += usize::from(pool.num_frames() == 0);
                for frame in order_or_nothing(&pool) {
                    assert!(seen.insert(frame), "{case}: {frame:?} twice");
                }
            }
            assert_eq!(seen, every, "{case}");
            let units = if unit == ShardUnit::Episode {
                lengths.len()
            } else {
                8
            };
            assert_eq!(idle, (2 * num_workers).saturating_sub(units), "{case}");
            // Every consumer is told the same, and the number is right.
            assert_eq!(
                notices,
                BTreeSet::from([(idle > 0).then_some(idle)]),
                "{case}"
            );
        }
    }
}

/// The frames of an epoch; none for a consumer that owns nothing.
fn order_or_nothing(pool: &EpisodePool) -> Vec<(usize, usize)> {
    if pool.num_frames() == 0 {
        Vec::new()
    } else {
        order(pool, 0)
    }
}

#[test]
fn shares_by_episode_differ_by_no_more_than_the_longest_episode() {
    let lengths: Vec<usize> = (0..24).map(|episode| 4 + episode * 5 % 7).collect();
    let dataset = Spec {
        data_files: Split::Every(3),
        ..Spec::new(10, &lengths)
    }
    .write();
    let total: usize = lengths.iter().sum();
    let pool = builder(dataset.root()).build().unwrap();
    for num_workers in [1, 2, 3, 8] {
        let ideal = total as f64 / (2 * num_workers) as f64;
        for topology in fleet(2, num_workers) {
            let frames = pool.with_topology(topology).unwrap().num_frames() as f64;
            assert!(
                (frames - ideal).abs() <= 10.0,
                "{topology:?}: {frames} of {ideal}"
            );
        }
    }
}

#[test]
fn an_idle_consumer_is_told_what_to_change() {
    let dataset = Spec::new(10, &[5, 5, 5]).write();
    let topology = Topology::new(0, 2, 0, 4).unwrap();
    let pool = builder(dataset.root()).topology(topology).build().unwrap();
    let message = pool.warnings()[0].to_string();
    assert!(
        message.contains("5 of 8 consumers") && message.contains("use fewer workers"),
        "{message}"
    );
}

/// The pools of all ranks.
fn ranks(pool: &EpisodePool, world_size: usize, num_workers: usize) -> Vec<EpisodePool> {
    let topologies =
        (0..world_size).map(|rank| Topology::new(rank, world_size, 0, num_workers).unwrap());
    topologies
        .map(|topology| pool.with_topology(topology).unwrap())
        .collect()
}

/// A rank had nothing, or a batch more than another, and training hung in an all-reduce.
#[test]
fn every_rank_knows_every_ranks_number_of_batches_before_the_start() {
    let cases: [(&[usize], usize, usize); 6] = [
        (&[5, 5, 5], 2, 4),
        (&[7], 4, 0),
        (&[1; 7], 4, 0),
        (&[1; 7], 4, 2),
        (&[4, 3], 2, 1),
        (&[9, 2, 6, 3, 3, 8], 3, 2),
    ];
    for (lengths, world_size, num_workers) in cases {
        let dataset = Spec::new(10, lengths).write();
        let pool = builder(dataset.root()).build().unwrap();
        for drop_last in [false, true] {
            let options = LoaderOptions {
                batch_size: 2,
                drop_last,
                ..LoaderOptions::default()
            };
            for pool in ranks(&pool, world_size, num_workers) {
                let frames = pool.worker_frames().unwrap();
                let promised = resume::batches_per_epoch(&frames, 2, drop_last).unwrap();
                let delivered = match Loader::new(&pool, options) {
                    Ok(loader) => {
                        let batches: Result<Vec<_>, _> = loader.epoch(0).unwrap().collect();
                        batches.unwrap().len()
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::NothingToEmit { .. }), "{error}");
                        0
                    }
                };
                let case = format!("{lengths:?}, {:?}, drop_last {drop_last}", pool.topology());
                assert_eq!(delivered as u64, promised, "{case}");
                // From any rank, the others' numbers are the same: so all can agree on the least without a word.
                let by_others: Vec<Vec<u64>> = ranks(&pool, world_size, num_workers)
                    .iter()
                    .map(|pool| pool.worker_frames().unwrap())
                    .collect();
                assert_eq!(by_others[pool.topology().rank()], frames, "{case}");
                assert_eq!(
                    by_others.iter().flatten().sum::<u64>(),
                    lengths.iter().sum::<usize>() as u64
                );
            }
        }
    }
}

/// The same, when all ranks are to end together.
#[test]
fn ranks_never_differ_when_asked_to_end_together() {
    let cases: [(&[usize], usize, usize, bool); 5] = [
        // Lengths, ranks, workers of each, whether every rank has something to do.
        (&[5, 5, 5], 2, 4, true),
        (&[7], 4, 0, false),
        (&[1; 7], 4, 0, true),
        (&[1; 7], 4, 2, true),
        (&[9, 2, 6, 3, 3, 8], 3, 2, true),
    ];
    for (lengths, world_size, num_workers, is_enough) in cases {
        let dataset = Spec::new(10, lengths).write();
        let pool = builder(dataset.root()).build().unwrap();
        for epoch_end in [EpochEnd::DropTail, EpochEnd::Wrap] {
            for drop_last in [false, true] {
                let options = LoaderOptions {
                    batch_size: 2,
                    drop_last,
                    epoch_end,
                    ..LoaderOptions::default()
                };
                let case = format!(
                    "{lengths:?}, {world_size} ranks of {num_workers}, {epoch_end}, drop_last {drop_last}"
                );
                let loaders: Result<Vec<Loader>, Error> = ranks(&pool, world_size, num_workers)
                    .iter()
                    .map(|pool| Loader::new(pool, options))
                    .collect();
                // Episodes of one frame make no full batch on a worker that has one of them.
                let is_enough = is_enough && !(drop_last && lengths.contains(&1));
                let loaders = match loaders {
                    Ok(loaders) => loaders,
                    Err(error) => {
                        assert!(!is_enough, "{case}: {error}");
                        let source = std::error::Error::source(&error).unwrap().to_string();
                        assert!(
                            source.contains("the epoch cannot end evenly")
                                && source.contains("use a smaller batch size"),
                            "{source}"
                        );
                        continue;
                    }
                };
                assert!(is_enough, "{case}");
                for loader in &loaders {
                    let batches: Vec<_> =
                        loader.epoch(0).unwrap().collect::<Result<_, _>>().unwrap();
                    assert_eq!(batches.len() as u64, loader.num_batches(), "{case}");
                    assert_eq!(loader.num_batches(), loaders[0].num_batches(), "{case}");
                }
            }
        }
    }
}
