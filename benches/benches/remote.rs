//! A dataset behind a slow line: what comes when, and what it costs. One table; every row is measured in the same run.
//!
//! The line takes 50 ms a request and carries 100 MB/s, for all connections together. A trainer takes 100 samples a second, in batches of 16.

#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use episode_pool::{EpisodePool, Fetch, Loader, LoaderOptions};
use testkit::server::Server;

const DELAY: Duration = Duration::from_millis(50);
const BYTES_PER_S: f64 = 100e6;
const SAMPLES_PER_S: f64 = 100.0;
const BATCH_SIZE: usize = 16;
/// As many as fit in a coffee break.
const MAX_BATCHES: usize = 250;

struct Row {
    name: &'static str,
    fetch: Fetch,
    prefetch_episodes: usize,
    num_workers: usize,
    has_index: bool,
}

fn main() {
    let root = dataset();
    println!("dataset: {}", root.display());
    println!(
        "| how | open | first batch | samples/s | waited | stalls | stalled | fetched | needed | ratio | requests |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    let row = |name, fetch, prefetch_episodes, num_workers, has_index| Row {
        name,
        fetch,
        prefetch_episodes,
        num_workers,
        has_index,
    };
    for row in [
        row("ranges, with an index", Fetch::Ranges, 8, 0, true),
        row(
            "ranges, with an index, 2 workers",
            Fetch::Ranges,
            8,
            2,
            true,
        ),
        row("ranges", Fetch::Ranges, 8, 0, false),
        row(
            "ranges, only the next episode ahead",
            Fetch::Ranges,
            1,
            0,
            false,
        ),
        row("whole files", Fetch::Files, 8, 0, false),
    ] {
        row.measure(&root);
    }
}

/// The dataset for speed where there is one, or else a small one.
fn dataset() -> PathBuf {
    match std::env::var_os("EPISODE_POOL_BENCH_DATA") {
        Some(data) => PathBuf::from(data).join("bench_robocasa_like"),
        None => testkit::fixtures::dataset("aloha_like"),
    }
}

impl Row {
    fn measure(&self, root: &std::path::Path) {
        let server = Server::start(root);
        let cache = tempfile::tempdir().expect("a folder for the cache");
        if self.has_index {
            let pool = EpisodePool::builder(server.files_url()).cache_dir(cache.path());
            let pool = pool.build().expect("the dataset is whole");
            pool.write_index(None, &|_, _| {})
                .expect("every file opens");
        }
        server.set_line(DELAY, BYTES_PER_S);
        let started = Instant::now();
        let topology = episode_pool::pool_core::Topology::new(0, 1, 0, self.num_workers);
        let pool = EpisodePool::builder(server.files_url())
            .cache_dir(cache.path())
            .fetch(self.fetch)
            .prefetch_episodes(self.prefetch_episodes)
            .topology(topology.expect("a rank of one"))
            .build()
            .expect("the dataset is whole");
        let open_s = started.elapsed().as_secs_f64();

        let options = LoaderOptions {
            batch_size: BATCH_SIZE,
            ..LoaderOptions::default()
        };
        let loader = Loader::new(&pool, options).expect("the options are valid");
        let started = Instant::now();
        let mut batches = loader.epoch(0).expect("workers start");
        let mut first_batch_s = None;
        let (mut samples, mut waited) = (0, Duration::ZERO);
        let mut begun = started;
        for _ in 0..MAX_BATCHES {
            let asked = Instant::now();
            let Some(batch) = batches.next() else {
                break;
            };
            samples += batch.expect("every frame comes").len();
            if first_batch_s.is_none() {
                first_batch_s = Some(started.elapsed().as_secs_f64());
                begun = Instant::now();
            } else {
                waited += asked.elapsed();
            }
            // What a trainer does meanwhile.
            let due = begun + Duration::from_secs_f64(samples as f64 / SAMPLES_PER_S) + waited;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let elapsed_s = begun.elapsed().as_secs_f64();
        let reports = batches.finish();
        let fetched = loader.fetch_totals();
        let stalled_s: f64 = reports
            .iter()
            .map(|report| report.fetch.stalled.as_secs_f64())
            .sum();
        println!(
            "| {} | {open_s:.2} s | {:.2} s | {:.0} | {:.1} % | {} | {:.1} % | {:.1} MB | {:.1} MB | {:.3} | {} |",
            self.name,
            first_batch_s.unwrap_or(f64::NAN),
            samples as f64 / elapsed_s,
            waited.as_secs_f64() / elapsed_s * 100.0,
            reports
                .iter()
                .map(|report| report.fetch.stalls)
                .sum::<u64>(),
            stalled_s / self.num_workers.max(1) as f64 / elapsed_s * 100.0,
            fetched.bytes_fetched as f64 / 1e6,
            fetched.bytes_needed as f64 / 1e6,
            fetched.amplification(),
            fetched.requests,
        );
    }
}
