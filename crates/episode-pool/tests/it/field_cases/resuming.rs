//! Resuming a run that was resumed before.

use episode_pool::pool_core::Topology;
use episode_pool::resume::State;
use episode_pool::{Batch, Loader, LoaderEpoch, LoaderOptions, StateDict};
use testkit::{Camera, Spec};

use crate::support::builder;

fn take(epoch: &mut LoaderEpoch, batches: usize) -> Vec<Batch> {
    epoch
        .by_ref()
        .take(batches)
        .collect::<Result<_, _>>()
        .unwrap()
}

/// A second resume began at the start again; one in a shuffled epoch lost a buffer or repeated a sample.
#[test]
fn a_run_resumed_three_times_is_the_uninterrupted_run() {
    let dataset = Spec {
        cameras: vec![Camera::video("observation.images.front")],
        ..Spec::new(10, &[9, 14, 5, 11, 8, 13, 6])
    }
    .write();
    for num_workers in [0, 1, 4] {
        let build = || {
            let topology = Topology::new(0, 1, 0, num_workers).unwrap();
            let pool = builder(dataset.root())
                .episode_pool_size(3)
                .seed(9)
                .topology(topology)
                .build()
                .unwrap();
            Loader::new(
                &pool,
                LoaderOptions {
                    batch_size: 3,
                    ..LoaderOptions::default()
                },
            )
            .unwrap()
        };
        let uninterrupted: Vec<Batch> = [0, 1]
            .into_iter()
            .flat_map(|epoch| take(&mut build().epoch(epoch).unwrap(), usize::MAX))
            .collect();
        assert!(
            uninterrupted.len() >= 2 * 22,
            "batch 14 lies in the first epoch"
        );

        let mut batches = take(&mut build().epoch(0).unwrap(), 5);
        for stop in [9, 14, usize::MAX] {
            // A new process each time: nothing is known but the state.
            let state = State {
                batches_consumed: batches.len() as u64,
                batch_size: 3,
            };
            let mut epoch = build().resume(&state).unwrap();
            assert_eq!(epoch.epoch(), 0);
            batches.extend(take(&mut epoch, stop - batches.len()));
        }
        batches.extend(take(&mut build().epoch(1).unwrap(), usize::MAX));
        assert_eq!(batches, uninterrupted, "{num_workers} workers");
    }
}

/// The same, with another number of workers after each stop.
#[test]
fn a_run_resumed_three_times_on_other_workers_is_the_uninterrupted_run() {
    let lengths = [9, 14, 5, 11, 8, 13, 6];
    let dataset = Spec {
        cameras: vec![Camera::video("observation.images.front")],
        ..Spec::new(10, &lengths)
    }
    .write();
    let build = |num_workers, canonical_consumers| {
        let topology = Topology::new(0, 1, 0, num_workers).unwrap();
        let pool = builder(dataset.root())
            .episode_pool_size(3)
            .seed(9)
            .topology(topology)
            .build()
            .unwrap();
        let options = LoaderOptions {
            batch_size: 3,
            canonical_consumers,
            ..LoaderOptions::default()
        };
        Loader::new(&pool, options).unwrap()
    };
    let run = |canonical| {
        let mut epoch = build(0, canonical).epoch(1).unwrap();
        let mut batches = take(&mut epoch, 5);
        let mut state = epoch.state_dict();
        for (num_workers, stop) in [(1, 9), (4, 14), (0, usize::MAX)] {
            // A new process each time: nothing is known but the state, as text.
            state = StateDict::from_json(&state.to_json()).unwrap();
            let before = state.batches_consumed();
            let mut epoch = build(num_workers, canonical)
                .load_state_dict(&state, true)
                .unwrap();
            assert_eq!(epoch.epoch(), 1);
            let taken = take(&mut epoch, stop - batches.len());
            state = epoch.state_dict();
            assert_eq!(state.batches_consumed(), before + taken.len() as u64);
            batches.extend(taken);
        }
        (batches, state)
    };

    // With an order for four consumers, sample by sample.
    let uninterrupted = take(&mut build(2, Some(4)).epoch(1).unwrap(), usize::MAX);
    let (resumed, state) = run(Some(4));
    assert_eq!(resumed, uninterrupted);
    assert_eq!(
        (state.epoch(), state.batches_consumed()),
        (Some(2), 2 * uninterrupted.len() as u64)
    );

    // Without, the order is that of the workers there are; every frame comes once all the same.
    let (resumed, _) = run(None);
    let mut frames: Vec<(usize, usize)> = resumed
        .iter()
        .flat_map(|batch| {
            batch
                .episode_indices
                .iter()
                .copied()
                .zip(batch.frame_indices.iter().copied())
        })
        .collect();
    frames.sort_unstable();
    let every = (0..)
        .zip(lengths)
        .flat_map(|(episode, length)| (0..length).map(move |frame| (episode, frame)));
    assert_eq!(frames, every.collect::<Vec<_>>());
}
