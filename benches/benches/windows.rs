//! Windows: from a frame to rows and masks, by number of deltas and by where the frame lies.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use window::Offsets;

const LENGTH: usize = 300;

fn windows(c: &mut Criterion) {
    let mut group = c.benchmark_group("window");
    for num_deltas in [2_usize, 16, 64] {
        let deltas: Vec<f64> = (0..num_deltas).map(|step| step as f64 / 20.0).collect();
        let offsets =
            Offsets::from_seconds("action", &deltas, 20.0, 1e-4).expect("whole frames at 20 fps");
        group.throughput(Throughput::Elements(num_deltas as u64));
        for (place, frame) in [("middle", LENGTH / 2), ("end", LENGTH - 1)] {
            group.bench_with_input(
                BenchmarkId::new(format!("runs/{place}"), num_deltas),
                &offsets,
                |b, offsets| {
                    b.iter(|| {
                        offsets
                            .runs(black_box(frame), LENGTH)
                            .map(|run| run.len)
                            .sum::<usize>()
                    });
                },
            );
            group.bench_with_input(
                BenchmarkId::new(format!("is_pad/{place}"), num_deltas),
                &offsets,
                |b, offsets| {
                    b.iter(|| {
                        offsets
                            .is_pad(black_box(frame), LENGTH)
                            .filter(|&pad| pad)
                            .count()
                    });
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, windows);
criterion_main!(benches);
