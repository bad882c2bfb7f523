//! Tabular reads: metadata, and episodes' rows, with both Parquet readers.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dataset::{Folder, Metadata, Reader};
use testkit::{Dataset, ParquetOptions, RowGroups, Spec};

const READERS: [(&str, Reader); 2] = [("parquet", Reader::Parquet), ("arrow2", Reader::Arrow2)];

/// 1000 episodes of 200 frames.
fn write(row_groups: RowGroups) -> Dataset {
    let spec = Spec {
        row_groups,
        parquet: ParquetOptions {
            rows_per_page: Some(1000),
            ..ParquetOptions::default()
        },
        ..Spec::new(30, &[200; 1000])
    };
    spec.write()
}

/// `meta/` of 1000 episodes.
fn metadata(criterion: &mut Criterion) {
    let dataset = write(RowGroups::PerEpisode);
    let storage = Folder::new(dataset.root());
    let mut group = criterion.benchmark_group("rows/metadata");
    group.throughput(Throughput::Elements(1000));
    for (name, reader) in READERS {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                Metadata::read_with(black_box(&storage), reader).expect("the dataset is whole")
            });
        });
    }
}

/// One episode after the other, 200 rows of 7 columns each.
fn episode(criterion: &mut Criterion, case: &str, row_groups: RowGroups) {
    let dataset = write(row_groups);
    let storage = Folder::new(dataset.root());
    let mut group = criterion.benchmark_group(format!("rows/{case}"));
    group.throughput(Throughput::Elements(200));
    for (name, reader) in READERS {
        let metadata = Metadata::read_with(&storage, reader).expect("the dataset is whole");
        let mut file = metadata
            .open_data_file(&storage, 0)
            .expect("the data file is whole");
        let mut episodes = metadata.episodes().iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let episode = episodes.next().expect("the dataset has episodes");
                file.read_episode(black_box(episode))
                    .expect("the data file is whole")
            });
        });
    }
}

/// Today's writer: a row group for each episode.
fn own_row_group(criterion: &mut Criterion) {
    episode(
        criterion,
        "episode_of_its_own_row_group",
        RowGroups::PerEpisode,
    );
}

/// One row group of 200,000 rows, with an index of its pages, which only the default reader uses.
fn large_row_group(criterion: &mut Criterion) {
    episode(
        criterion,
        "episode_in_a_large_row_group",
        RowGroups::Rows(200_000),
    );
}

/// The footer of 1000 row groups.
fn footer(criterion: &mut Criterion) {
    let dataset = write(RowGroups::PerEpisode);
    let storage = Folder::new(dataset.root());
    let mut group = criterion.benchmark_group("rows/footer_of_1000_row_groups");
    for (name, reader) in READERS {
        let metadata = Metadata::read_with(&storage, reader).expect("the dataset is whole");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                metadata
                    .open_data_file(black_box(&storage), 0)
                    .expect("the data file is whole")
            });
        });
    }
}

criterion_group!(benches, metadata, own_row_group, large_row_group, footer);
criterion_main!(benches);
