//! Resuming a run that was resumed before.

use episode_pool::pool_core::Topology;
use episode_pool::resume::State;
use episode_pool::{Batch, Loader, LoaderEpoch, LoaderOptions};
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
