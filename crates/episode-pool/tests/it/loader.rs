//! The loader: the batches of a rank's workers, in a `DataLoader`'s order.

use std::collections::VecDeque;
use std::time::Duration;

use episode_pool::pool_core::Topology;
use episode_pool::resume::State;
use episode_pool::{Batch, EpisodePool, Error, Loader, LoaderOptions, NotYet, StateDict};

use crate::support::fixture;

fn pool(num_workers: usize) -> EpisodePool {
    let topology = Topology::new(0, 1, 0, num_workers).unwrap();
    fixture("no_camera")
        .seed(3)
        .episode_pool_size(4)
        .topology(topology)
        .build()
        .unwrap()
}

fn options(batch_size: usize, drop_last: bool) -> LoaderOptions {
    LoaderOptions {
        batch_size,
        drop_last,
        ..LoaderOptions::default()
    }
}

/// The batches of an epoch by the definition: each worker alone, then in turn.
fn by_hand(pool: &EpisodePool, options: LoaderOptions, epoch: u64) -> Vec<Batch> {
    let topology = pool.topology();
    let mut queue: VecDeque<_> = (0..topology.consumers_per_rank())
        .map(|worker| {
            let worker = topology
                .with_worker(worker, topology.num_workers())
                .unwrap();
            let epoch = pool.with_topology(worker).unwrap().epoch(epoch).unwrap();
            epoch
                .batches(options.batch_size, options.drop_last)
                .unwrap()
        })
        .collect();
    let mut batches = Vec::new();
    while let Some(mut worker) = queue.pop_front() {
        if let Some(batch) = worker.next() {
            batches.push(batch.unwrap());
            queue.push_back(worker);
        }
    }
    batches
}

#[test]
fn batches_come_in_turn_and_a_dry_worker_drops_out() {
    for num_workers in [0, 1, 2, 3, 5] {
        for drop_last in [false, true] {
            let (pool, options) = (pool(num_workers), options(32, drop_last));
            let mut epoch = Loader::new(&pool, options).unwrap().epoch(1).unwrap();
            let batches: Vec<Batch> = epoch.by_ref().collect::<Result<_, _>>().unwrap();
            assert_eq!(batches, by_hand(&pool, options, 1), "{num_workers} workers");
            let promised = pool.num_batches(options.batch_size, drop_last).unwrap();
            assert_eq!(batches.len() as u64, promised);
            assert_eq!(epoch.coverage().exactly_once, !drop_last);
            assert_eq!(epoch.reports().len(), num_workers.max(1));
        }
    }
}

#[test]
fn resume_is_exact_at_every_batch_and_across_epochs() {
    for num_workers in [0, 1, 3] {
        for drop_last in [false, true] {
            let (pool, options) = (pool(num_workers), options(100, drop_last));
            let loader = Loader::new(&pool, options).unwrap();
            let epochs = [0, 1].map(|epoch| {
                loader
                    .epoch(epoch)
                    .unwrap()
                    .collect::<Result<Vec<Batch>, _>>()
                    .unwrap()
            });
            let per_epoch = epochs[0].len();
            for consumed in 0..2 * per_epoch {
                let state = State {
                    batches_consumed: consumed as u64,
                    batch_size: 100,
                };
                let resumed = loader.resume(&state).unwrap();
                assert_eq!(resumed.epoch() as usize, consumed / per_epoch);
                let rest: Vec<Batch> = resumed.collect::<Result<_, _>>().unwrap();
                let expected = &epochs[consumed / per_epoch][consumed % per_epoch..];
                assert_eq!(
                    rest, expected,
                    "{num_workers} workers, after {consumed} batches"
                );
            }
        }
    }
}

#[test]
fn another_batch_size_than_the_states_is_an_error() {
    let loader = Loader::new(&pool(0), options(8, false)).unwrap();
    let error = loader
        .resume(&State {
            batches_consumed: 1,
            batch_size: 16,
        })
        .unwrap_err();
    assert!(
        matches!(error, Error::StateDiffers { .. })
            && error.to_string().contains("batch_size was 16 and is 8"),
        "{error}"
    );
}

#[test]
fn an_epoch_dropped_early_stops_its_workers() {
    // The drop joins the threads: were they to wait for a reader, this would not end.
    let mut epoch = Loader::new(&pool(3), options(1, false))
        .unwrap()
        .epoch(0)
        .unwrap();
    assert!(epoch.next().unwrap().is_ok());
    drop(epoch);
}

#[test]
fn a_run_cut_short_still_tells_what_its_workers_did() {
    let mut epoch = Loader::new(&pool(3), options(10, false))
        .unwrap()
        .epoch(0)
        .unwrap();
    for _ in 0..6 {
        assert!(epoch.next().unwrap().is_ok());
    }
    assert!(epoch.reports().is_empty());
    let reports = epoch.finish();
    assert_eq!(reports.len(), 3);
    for report in reports {
        // Two batches were taken; those made ahead count, too.
        assert!(report.emitted.num_frames() >= 20 && !report.coverage.exactly_once);
    }
}

#[test]
fn idle_workers_are_no_error_while_one_has_frames() {
    let topology = Topology::new(0, 1, 0, 4).unwrap();
    let pool = fixture("no_camera")
        .episodes([3, 8])
        .topology(topology)
        .build()
        .unwrap();
    assert!(!pool.warnings().is_empty());
    let mut epoch = Loader::new(&pool, options(4, false))
        .unwrap()
        .epoch(0)
        .unwrap();
    epoch.by_ref().for_each(|batch| assert!(batch.is_ok()));
    assert!(epoch.coverage().exactly_once);
}

#[test]
fn a_rank_without_frames_is_an_error() {
    let topology = Topology::new(2, 3, 0, 2).unwrap();
    let pool = fixture("no_camera")
        .episodes([3])
        .topology(topology)
        .build()
        .unwrap();
    let error = Loader::new(&pool, options(4, false)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NothingToEmit {
                rank: 2,
                world_size: 3,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn waiting_a_little_at_a_time_loses_nothing() {
    let loader = Loader::new(&pool(2), options(16, false)).unwrap();
    let expected: Vec<Batch> = loader.epoch(1).unwrap().collect::<Result<_, _>>().unwrap();
    let mut epoch = loader.epoch(1).unwrap();
    let mut batches = Vec::new();
    loop {
        match epoch.next_within(Duration::from_nanos(1)) {
            Ok(Some(batch)) => batches.push(batch.unwrap()),
            Ok(None) => break,
            Err(NotYet) => std::thread::yield_now(),
        }
    }
    assert_eq!(batches, expected);
    assert!(epoch.coverage().exactly_once);
    let times = epoch.worker_times();
    assert_eq!(times.iter().map(|t| t.worker).collect::<Vec<_>>(), [0, 1]);
    assert!(times.iter().all(|times| !times.loading.is_zero()));
}

#[test]
fn samples_after_a_state_are_collated_to_the_batches_after_it() {
    for num_workers in [0, 1, 3] {
        let pool = pool(num_workers);
        let loader = Loader::new(&pool, options(32, false)).unwrap();
        let batches: Vec<Batch> = loader.epoch(1).unwrap().collect::<Result<_, _>>().unwrap();
        for consumed in 0..batches.len() {
            let state = StateDict::from(State {
                batches_consumed: (loader.num_batches() as usize + consumed) as u64,
                batch_size: 32,
            });
            assert_eq!(loader.epoch_after(&state, true).unwrap(), 1);
            // What a `DataLoader` does: its first worker is the first in turn.
            let mut queue: VecDeque<_> = (0..num_workers.max(1))
                .filter_map(|turn| loader.samples_after(&state, true, turn).unwrap())
                .map(|samples| samples.batches(32, false).unwrap())
                .collect();
            let mut rest = Vec::new();
            while let Some(mut worker) = queue.pop_front() {
                if let Some(batch) = worker.next() {
                    rest.push(batch.unwrap());
                    queue.push_back(worker);
                }
            }
            assert_eq!(
                rest,
                batches[consumed..],
                "{num_workers} workers, {consumed}"
            );
        }
    }
}
