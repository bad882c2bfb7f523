//! The plan of an epoch: emissions and skipped emissions a second, and who owns what.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pool_core::{
    EpisodeInfo, Filter, Plan, PlanOptions, Selection, ShardUnit, Sharding, Share, Step, Topology,
};

/// Episodes in files of four, as in datasets with one data file for some hundred megabytes.
fn select(lengths: impl Iterator<Item = usize>) -> Selection {
    let episodes: Vec<_> = lengths
        .enumerate()
        .map(|(episode_index, length)| EpisodeInfo {
            episode_index,
            length,
            file: episode_index / 4,
        })
        .collect();
    Selection::new(&episodes, &Filter::default()).expect("valid episodes")
}

/// 64 episodes of 300 frames are resident while 4096 go through the pool.
fn plan() -> Plan {
    let selection = select(std::iter::repeat_n(300, 4096));
    let share =
        Share::new(&selection, &Topology::single(), &Sharding::default()).expect("valid sharding");
    Plan::new(&share, &PlanOptions::default()).expect("valid options")
}

fn emissions(c: &mut Criterion) {
    let plan = plan();
    let mut group = c.benchmark_group("plan");
    group.throughput(Throughput::Elements(plan.remaining()));
    group.sample_size(20);

    group.bench_function("emit/64x300", |b| {
        b.iter_batched(
            || plan.clone(),
            |plan| {
                for step in plan {
                    if let Step::Emit(emission) = step {
                        black_box(emission);
                    }
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("skip/64x300", |b| {
        b.iter_batched(
            || plan.clone(),
            |mut plan| black_box(plan.skip_emissions(plan.remaining() - 1)),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn ownership(c: &mut Criterion) {
    let selection = select((0..100_000).map(|episode_index| 100 + episode_index % 401));
    let topology = Topology::new(7, 8, 3, 4).expect("a valid topology");
    let mut group = c.benchmark_group("ownership");
    group.throughput(Throughput::Elements(100_000));
    for (name, unit) in [("episode", ShardUnit::Episode), ("file", ShardUnit::File)] {
        let sharding = Sharding {
            unit,
            max_num_shards: None,
        };
        group.bench_function(format!("100k_episodes/{name}"), |b| {
            b.iter(|| Share::new(black_box(&selection), &topology, &sharding));
        });
    }
    group.finish();
}

fn coverage(c: &mut Criterion) {
    let selection = select(std::iter::repeat_n(300, 1000));
    let mut group = c.benchmark_group("coverage");
    group.throughput(Throughput::Elements(selection.num_frames()));
    group.bench_function("selection/300k_frames", |b| {
        b.iter(|| black_box(&selection).coverage())
    });
    group.finish();
}

criterion_group!(benches, emissions, ownership, coverage);
criterion_main!(benches);
