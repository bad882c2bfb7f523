//! Whole epochs of the bundled datasets, from rows and video to batches, in two modes.
//!
//! `single` is one frame of all cameras; `sarm` is eight frames of all cameras, and an action chunk of 16.

use std::collections::BTreeMap;
use std::path::Path;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use episode_pool::{EpisodePool, Field, Loader, LoaderOptions, pool_core::Topology};

/// Bundled datasets: tabular only; AV1 with a keyframe every second frame; H.264 with B-frames.
const DATASETS: [&str; 3] = ["no_camera", "pusht_like", "h264_gop30"];

fn pool(name: &str, sarm: bool, num_workers: usize) -> EpisodePool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures")
        .join(name)
        .join("dataset");
    let builder = EpisodePool::builder(root.display().to_string())
        .topology(Topology::new(0, 1, 0, num_workers).expect("rank 0 of 1"));
    let plain = builder.clone().build().expect("a bundled dataset");
    if !sarm {
        return plain;
    }
    let fps = plain.metadata().info().fps();
    let steps = |count: usize, stride: f64| (0..count).map(|k| k as f64 * stride / fps).collect();
    let mut deltas: BTreeMap<String, Vec<f64>> = plain
        .fields()
        .iter()
        .filter(|field| field.is_camera())
        .map(|field| (field.key().to_owned(), steps(8, 5.0)))
        .collect();
    deltas.insert("action".to_owned(), steps(16, 1.0));
    builder
        .delta_timestamps(deltas)
        .build()
        .expect("whole frames")
}

/// Camera frames in a sample; of a dataset without cameras, 1: the sample itself.
fn frames_per_sample(pool: &EpisodePool) -> u64 {
    let cameras = pool.fields().iter().filter(|field| field.is_camera());
    let frames: usize = cameras
        .map(|field: &Field| field.window_len().unwrap_or(1))
        .sum();
    frames.max(1) as u64
}

fn epochs(c: &mut Criterion) {
    let mut group = c.benchmark_group("epoch");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for name in DATASETS {
        for (mode, sarm) in [("single", false), ("sarm", true)] {
            for num_workers in [1, 2] {
                let pool = pool(name, sarm, num_workers);
                let frames = pool.fleet_coverage().num_frames() * frames_per_sample(&pool);
                let options = LoaderOptions {
                    batch_size: 16,
                    ..LoaderOptions::default()
                };
                let loader = Loader::new(&pool, options).expect("a batch size above 0");
                group.throughput(Throughput::Elements(frames));
                group.bench_function(format!("{mode}/{name}/{num_workers}_workers"), |b| {
                    let mut epoch = 0;
                    b.iter(|| {
                        epoch += 1;
                        let batches = loader.epoch(epoch).expect("the dataset has frames");
                        batches
                            .map(|batch| batch.expect("a sound dataset").len())
                            .sum::<usize>()
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, epochs);
criterion_main!(benches);
