//! The contracts of ARCHITECTURE.md that need the whole: rows, windows, batches.

use std::collections::BTreeMap;

use episode_pool::pool_core::{Coverage, ShardUnit};
use episode_pool::{ArrayData, EpisodePool};
use proptest::prelude::*;
use testkit::Spec;

use crate::support::{builder, fleet, order, samples, windows};

fn index(pool: &EpisodePool, episode: usize, frame: usize) -> usize {
    pool.metadata().episode(episode).unwrap().from_index() + frame
}

proptest! {
    // Each case writes a dataset to disk.
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn exactly_once(
        lengths in proptest::collection::vec(1_usize..20, 1..12),
        (world_size, num_workers) in (1_usize..4, 0_usize..4),
        (pool_size, seed, by_file) in (1_usize..6, any::<u64>(), any::<bool>()),
    ) {
        let dataset = Spec { data_files: testkit::Split::Every(2), ..Spec::new(10, &lengths) }.write();
        let unit = if by_file { ShardUnit::File } else { ShardUnit::Episode };
        let pool = builder(dataset.root()).episode_pool_size(pool_size).seed(seed).shard_unit(unit).build().unwrap();
        let mut coverage = Coverage::default();
        let mut indices = Vec::new();
        for topology in fleet(world_size, num_workers) {
            let consumer = pool.with_topology(topology).unwrap();
            if consumer.num_frames() == 0 {
                continue;
            }
            let mut epoch = consumer.epoch(0).unwrap();
            for sample in epoch.by_ref() {
                let sample = sample.unwrap();
                // The state holds the row's global number, so it proves that the row is the frame's own.
                let expected = index(&pool, sample.episode_index, sample.frame_index);
                let state = sample.fields.get("observation.state").unwrap().as_f32().unwrap();
                prop_assert_eq!(state, [expected as f32; 2]);
                indices.push(expected);
            }
            let report = epoch.report();
            prop_assert!(report.coverage.exactly_once);
            prop_assert!(report.peak_resident_episodes <= pool_size);
            coverage.merge(report.emitted);
        }
        indices.sort_unstable();
        prop_assert_eq!(indices, (0..lengths.iter().sum()).collect::<Vec<_>>());
        prop_assert_eq!(coverage, pool.fleet_coverage());
    }

    #[test]
    fn window_equals_map_style(
        lengths in proptest::collection::vec(1_usize..30, 1..6),
        offsets in proptest::collection::vec(-40_i64..40, 1..8),
    ) {
        let dataset = Spec::new(10, &lengths).write();
        let deltas: Vec<f64> = offsets.iter().map(|&offset| offset as f64 / 10.0).collect();
        let pool = builder(dataset.root()).delta_timestamps(windows(&[("index", &deltas)])).build().unwrap();
        for sample in samples(&pool, 0) {
            let length = lengths[sample.episode_index] as i64;
            let first = index(&pool, sample.episode_index, 0) as i64;
            let wanted = offsets.iter().map(|offset| sample.frame_index as i64 + offset);
            let rows: Vec<i64> = wanted.clone().map(|row| first + row.clamp(0, length - 1)).collect();
            let masks: Vec<bool> = wanted.map(|row| row < 0 || row >= length).collect();
            prop_assert_eq!(sample.fields.get("index").unwrap().as_i64().unwrap(), rows);
            prop_assert_eq!(sample.fields.get("index_is_pad").unwrap().as_bool().unwrap(), masks);
        }
    }

    #[test]
    fn order_is_a_function(seed in any::<u64>(), epoch in any::<u64>(), start in 0_usize..40) {
        let dataset = Spec::new(10, &[7, 9, 11, 13]).write();
        let build = |seed| builder(dataset.root()).episode_pool_size(2).seed(seed).build().unwrap();
        let whole = order(&build(seed), epoch);
        prop_assert_eq!(&whole, &order(&build(seed), epoch));
        prop_assert_ne!(&whole, &order(&build(seed.wrapping_add(1)), epoch));
        let rest: Vec<_> = build(seed)
            .epoch_from(epoch, start as u64)
            .unwrap()
            .map(|sample| sample.unwrap())
            .map(|sample| (sample.episode_index, sample.frame_index))
            .collect();
        prop_assert_eq!(&whole[start..], rest);
    }
}

#[test]
fn a_batch_is_its_samples_collated() {
    let dataset = Spec::new(10, &[4, 6, 5]).write();
    let pool = builder(dataset.root())
        .delta_timestamps(windows(&[("action", &[-0.1, 0.0, 0.1])]))
        .build()
        .unwrap();
    let samples = samples(&pool, 0);
    let batches: Vec<_> = pool
        .epoch(0)
        .unwrap()
        .batches(4, false)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(
        batches.iter().map(|batch| batch.len()).collect::<Vec<_>>(),
        [4, 4, 4, 3]
    );
    for (batch, samples) in batches.iter().zip(samples.chunks(4)) {
        assert_eq!(
            batch.seeds,
            samples.iter().map(|sample| sample.seed).collect::<Vec<_>>()
        );
        let collated: BTreeMap<&str, Vec<f32>> = ["action", "observation.state"]
            .map(|key| {
                let values = samples
                    .iter()
                    .flat_map(|sample| sample.fields.get(key).unwrap().as_f32().unwrap());
                (key, values.copied().collect())
            })
            .into();
        for (key, values) in collated {
            assert_eq!(
                batch.fields.get(key).unwrap().data(),
                &ArrayData::F32(values),
                "{key}"
            );
        }
        assert_eq!(
            batch.fields.get("action").unwrap().shape(),
            [samples.len(), 3, 2]
        );
        assert_eq!(
            batch.fields.get("timestamp").unwrap().shape(),
            [samples.len()]
        );
    }
    let full = pool.epoch(0).unwrap().batches(4, true).unwrap().count();
    assert_eq!(full, 3);
}

#[test]
fn without_shuffle_frames_come_in_the_datasets_order() {
    let dataset = Spec::new(10, &[3, 1, 4]).write();
    let pool = builder(dataset.root()).shuffle(false).build().unwrap();
    let expected = [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (2, 0),
        (2, 1),
        (2, 2),
        (2, 3),
    ];
    assert_eq!(order(&pool, 4), expected);
}

#[test]
fn a_samples_seed_depends_on_seed_epoch_and_frame_alone() {
    let dataset = Spec::new(10, &[7, 9, 11, 13]).write();
    let seeds = |pool: &EpisodePool, epoch| -> BTreeMap<(usize, usize), u64> {
        samples(pool, epoch)
            .iter()
            .map(|s| ((s.episode_index, s.frame_index), s.seed))
            .collect()
    };
    let alone = builder(dataset.root()).build().unwrap();
    let mut together = BTreeMap::new();
    for topology in fleet(2, 2) {
        let consumer = builder(dataset.root())
            .episode_pool_size(1)
            .topology(topology)
            .build()
            .unwrap();
        together.extend(seeds(&consumer, 0));
    }
    assert_eq!(seeds(&alone, 0), together);
    assert_ne!(seeds(&alone, 0), seeds(&alone, 1));
}
