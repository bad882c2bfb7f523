//! `episode-pool bench`: how fast data comes, with nothing behind it that trains.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use clap::{Args, ValueEnum};
use episode_pool::dataset::Metadata;
use episode_pool::pool_core::Topology;
use episode_pool::{
    Batch, EpisodePool, EpochReport, FetchTotals, Loader, LoaderEpoch, LoaderOptions,
};
use serde::Serialize;

use crate::args::{BatchArgs, Label};
use crate::error::Error;
use crate::files;
use crate::frames::FrameArgs;
use crate::host::{Host, Versions, utc};
use crate::json;
use crate::measure::{self, DecodeSummary, Measured, VideoCacheSummary};
use crate::memory;
use crate::percentiles::Percentiles;
use crate::remote::{FetchSummary, RemoteArgs, Stalls};
use crate::table::count;

/// The version of the JSON's layout: raised when a member changes its meaning or goes.
const SCHEMA_VERSION: u32 = 1;

/// The rows of an action window in the mode `sarm`.
const ACTION_WINDOW: usize = 16;

/// What to measure, and with what.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes DIR/SOURCE_MODE_bBATCH_wWORKERS_DEVICE.json, and the same as one row of a .csv. Throughput is samples over the wall clock of \
the measured batches, from the last warm-up batch to the last measured one; where the dataset has fewer batches, further epochs follow. \
A sample's latency is the time from batch to batch, divided by the samples in the batch. Reading the metadata is told apart, as open_s.

Fails if there is nothing to measure, such as a dataset without cameras: no file then, and no zeros.")]
pub(crate) struct BenchArgs {
    /// The dataset: its root directory, or a URL (hf://, s3://, gs://, https://).
    path: String,

    /// What the source is called in file names and tables.
    #[arg(long, value_name = "LABEL", default_value = "local")]
    source: Label,

    /// What a sample is.
    #[arg(long, value_enum, default_value = "single")]
    mode: Mode,

    /// What decodes the video.
    #[arg(long, value_enum, value_name = "DEVICE", default_value = "cpu")]
    decode: Device,

    #[command(flatten)]
    batch: BatchArgs,

    /// The number of workers; 0 is the main process alone.
    #[arg(long, value_name = "WORKERS", default_value_t = 0)]
    num_workers: usize,

    /// The batches that each worker makes ahead.
    #[arg(long, value_name = "BATCHES", default_value = "2")]
    prefetch_batches: NonZeroUsize,

    /// The number of whole episodes in memory, across which frames are drawn.
    #[arg(long, value_name = "EPISODES", default_value = "64")]
    episode_pool_size: NonZeroUsize,

    /// The seed of the order.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Take so many batches before the measured ones.
    #[arg(long, value_name = "BATCHES", default_value_t = 10)]
    warmup_batches: usize,

    /// Measure so many batches.
    #[arg(long, value_name = "BATCHES", default_value = "100")]
    batches: NonZeroUsize,

    /// Where the two files are written; made if it is not there.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out_dir: PathBuf,

    #[command(flatten)]
    frames: FrameArgs,

    #[command(flatten)]
    remote: RemoteArgs,

    /// Print the JSON as well, in place of the summary.
    #[arg(long)]
    json: bool,
}

/// What a policy reads at once.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// One frame of every camera.
    Single,
    /// Eight frames of every camera, a second apart, the last one the sample's own; and 16 rows of `action` from it on.
    Sarm,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Sarm => "sarm",
        }
    }

    fn delta_timestamps(self, metadata: &Metadata) -> BTreeMap<String, Vec<f64>> {
        let mut deltas = BTreeMap::new();
        if matches!(self, Self::Sarm) {
            let info = metadata.info();
            for feature in info.features() {
                if feature.is_camera() {
                    let seconds = (-7..=0).map(f64::from).collect();
                    deltas.insert(feature.key().to_owned(), seconds);
                } else if feature.key() == "action" {
                    let rows = 0..ACTION_WINDOW;
                    let seconds = rows.map(|row| row as f64 / info.fps()).collect();
                    deltas.insert(feature.key().to_owned(), seconds);
                }
            }
        }
        deltas
    }
}

#[derive(Debug, Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Device {
    /// The processor's cores, with FFmpeg.
    Cpu,
    /// An NVIDIA GPU's video decoder.
    Cuda,
}

impl Device {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

pub(crate) fn run(args: &BenchArgs, out: &mut impl Write) -> Result<(), Error> {
    if matches!(args.decode, Device::Cuda) {
        return Err(Error::NoCuda);
    }
    std::fs::create_dir_all(&args.out_dir).map_err(|source| Error::MakeDirectory {
        path: args.out_dir.clone(),
        source,
    })?;
    let opening = Instant::now();
    let pool = args.pool()?;
    let open_s = opening.elapsed().as_secs_f64();
    let camera_frames_per_sample = measure::frames_per_sample(&pool);
    if camera_frames_per_sample == 0 {
        return Err(Error::NothingToDecode {
            dataset: args.path.clone(),
        });
    }

    let started_at = utc(SystemTime::now());
    let run = Run::measure(&pool, args)?;
    let report = Report {
        schema_version: SCHEMA_VERSION,
        source: &args.source.0,
        url: &args.path,
        mode: args.mode,
        decode_device: args.decode,
        batch_size: args.batch.size(),
        num_workers: args.num_workers,
        episode_pool_size: args.episode_pool_size.get(),
        started_at,
        results: Results::new(run, open_s, camera_frames_per_sample as u64),
        config: Config::new(&pool, args),
        versions: Versions::these(),
        host: Host::this(),
    };

    let stem = args.stem();
    let file = |ending: &str| args.out_dir.join(format!("{stem}.{ending}"));
    let json = serde_json::to_string_pretty(&report).expect("a report becomes JSON") + "\n";
    write(&file("json"), json.as_bytes())?;
    write(&file("csv"), &Row::new(&report).csv())?;
    if args.json {
        json::write_pretty(out, &report)
    } else {
        report.write_text(&file("json"), out).map_err(Error::Output)
    }
}

impl BenchArgs {
    fn pool(&self) -> Result<EpisodePool, Error> {
        // Ranks would measure parts of a dataset, and write into each other's files.
        let ranks =
            Topology::from_vars(|name| std::env::var(name).ok()).map_err(Error::Topology)?;
        if ranks.world_size() > 1 {
            return Err(Error::BenchOfRanks {
                rank: ranks.rank(),
                world_size: ranks.world_size(),
            });
        }
        let topology = ranks
            .with_worker(0, self.num_workers)
            .map_err(Error::Topology)?;
        let builder = || {
            self.remote
                .apply(self.frames.apply(EpisodePool::builder(&self.path)))
                .topology(topology)
                .episode_pool_size(self.episode_pool_size.get())
                .seed(self.seed)
        };
        let pool = builder().build()?;
        let deltas = self.mode.delta_timestamps(pool.metadata());
        if deltas.is_empty() {
            return Ok(pool);
        }
        Ok(builder().delta_timestamps(deltas).build()?)
    }

    /// The name of the files, without an ending.
    fn stem(&self) -> String {
        format!(
            "{}_{}_b{}_w{}_{}",
            self.source.0,
            self.mode.name(),
            self.batch.size(),
            self.num_workers,
            self.decode.name()
        )
    }
}

fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    files::replace(path, contents).map_err(|source| Error::WriteFile {
        path: path.to_owned(),
        source,
    })
}

/// What was measured.
#[derive(Debug)]
struct Run {
    /// From the start of the workers to the first batch.
    first_batch_latency_s: f64,
    measured: Measured,
    /// The epochs that were begun.
    epochs: u64,
    reports: Vec<EpochReport>,
    fetched: FetchTotals,
}

impl Run {
    fn measure(pool: &EpisodePool, args: &BenchArgs) -> Result<Self, Error> {
        let options = LoaderOptions {
            batch_size: args.batch.size(),
            prefetch_batches: args.prefetch_batches.get(),
            ..LoaderOptions::default()
        };
        let loader = Loader::new(pool, options)?;
        let mut stream = Epochs {
            loader: &loader,
            current: None,
            begun: 0,
            reports: Vec::new(),
        };

        let started = Instant::now();
        let mut last = started;
        let mut first_batch_latency_s = None;
        let mut window_start = started;
        let mut measured = Measured::default();
        for number in 0..args.warmup_batches.saturating_add(args.batches.get()) {
            let Some(batch) = stream.next()? else {
                return Err(Error::NothingStreamed {
                    frames: pool.num_frames(),
                    batch_size: args.batch.size(),
                });
            };
            let received = Instant::now();
            first_batch_latency_s.get_or_insert((received - started).as_secs_f64());
            if number < args.warmup_batches {
                window_start = received;
            } else {
                measured.record(&batch, (received - last).as_secs_f64());
                measured.elapsed = received - window_start;
            }
            last = received;
            touch(&batch);
        }
        let (epochs, reports) = stream.finish();
        Ok(Self {
            first_batch_latency_s: first_batch_latency_s.expect("at least one batch is taken"),
            measured,
            epochs,
            reports,
            fetched: loader.fetch_totals(),
        })
    }
}

/// Epoch after epoch.
struct Epochs<'a> {
    loader: &'a Loader,
    current: Option<LoaderEpoch>,
    begun: u64,
    reports: Vec<EpochReport>,
}

impl Epochs<'_> {
    /// `None` where an epoch is empty.
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        if let Some(current) = &mut self.current
            && let Some(batch) = current.next()
        {
            return Ok(Some(batch?));
        }
        self.reports.extend(
            self.current
                .take()
                .map(LoaderEpoch::finish)
                .into_iter()
                .flatten(),
        );
        let next = self.current.insert(self.loader.epoch(self.begun)?);
        self.begun += 1;
        Ok(next.next().transpose()?)
    }

    fn finish(mut self) -> (u64, Vec<EpochReport>) {
        self.reports.extend(
            self.current
                .take()
                .map(LoaderEpoch::finish)
                .into_iter()
                .flatten(),
        );
        (self.begun, self.reports)
    }
}

/// Reads every array as a consumer would: something of each of a processor's cache lines, of 64 bytes.
fn touch(batch: &Batch) {
    use episode_pool::ArrayData;
    for (_, array) in batch.fields.iter() {
        let sum: u64 = match array.data() {
            ArrayData::U8(values) => values
                .iter()
                .step_by(64)
                .map(|&value| u64::from(value))
                .sum(),
            ArrayData::U16(values) => values
                .iter()
                .step_by(32)
                .map(|&value| u64::from(value))
                .sum(),
            ArrayData::F32(values) => values
                .iter()
                .step_by(16)
                .map(|value| u64::from(value.to_bits()))
                .sum(),
            // A few numbers for each sample.
            other => other.len() as u64,
        };
        std::hint::black_box(sum);
    }
}

/// A run: what it was, and what came of it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    source: &'a str,
    url: &'a str,
    mode: Mode,
    decode_device: Device,
    batch_size: usize,
    num_workers: usize,
    episode_pool_size: usize,
    started_at: String,
    results: Results,
    config: Config,
    versions: Versions,
    host: Host,
}

#[derive(Debug, Serialize)]
struct Results {
    batches: u64,
    samples: u64,
    camera_frames: u64,
    wallclock_s: f64,
    samples_per_s: f64,
    frames_per_s_node: f64,
    open_s: f64,
    first_batch_latency_s: f64,
    p50_sample_latency_ms: Option<f64>,
    p95_sample_latency_ms: Option<f64>,
    p99_sample_latency_ms: Option<f64>,
    peak_rss_bytes: Option<u64>,
    /// Over a network, and over the whole run, warm-up batches and those made ahead included; so are all that follow.
    bytes_fetched: u64,
    stalls: Stalls,
    requests: u64,
    retries: u64,
    bytes_needed: u64,
    amplification: f64,
    cache_hit_rate: f64,
    bytes_not_kept: u64,
    video_decoder_cache: VideoCacheSummary,
    decode: DecodeSummary,
    epochs_begun: u64,
}

impl Results {
    fn new(run: Run, open_s: f64, camera_frames_per_sample: u64) -> Self {
        let Run {
            first_batch_latency_s,
            measured,
            epochs,
            reports,
            fetched,
        } = run;
        let fetch = FetchSummary::new(fetched, &reports);
        let wallclock_s = measured.elapsed.as_secs_f64();
        let camera_frames = measured.samples * camera_frames_per_sample;
        let latencies_ms = Percentiles::new(measured.sample_latencies_ms);
        Self {
            batches: measured.waits_s.len() as u64,
            samples: measured.samples,
            camera_frames,
            wallclock_s,
            samples_per_s: measured.samples as f64 / wallclock_s,
            frames_per_s_node: camera_frames as f64 / wallclock_s,
            open_s,
            first_batch_latency_s,
            p50_sample_latency_ms: latencies_ms.at(50),
            p95_sample_latency_ms: latencies_ms.at(95),
            p99_sample_latency_ms: latencies_ms.at(99),
            peak_rss_bytes: memory::peak_rss_bytes(),
            bytes_fetched: fetch.bytes_fetched,
            stalls: fetch.stalls,
            requests: fetch.requests,
            retries: fetch.retries,
            bytes_needed: fetch.bytes_needed,
            amplification: fetch.amplification,
            cache_hit_rate: fetch.cache_hit_rate,
            bytes_not_kept: fetch.bytes_not_kept,
            video_decoder_cache: VideoCacheSummary::new(&reports),
            decode: DecodeSummary::new(&reports),
            epochs_begun: epochs,
        }
    }
}

/// Every option in force that the report does not name beside it.
#[derive(Debug, Serialize)]
struct Config {
    warmup_batches: usize,
    prefetch_batches: usize,
    seed: u64,
    delta_timestamps: BTreeMap<String, Vec<f64>>,
    tolerance_s: f64,
    frame_layout: String,
    frame_type: String,
    resize: Option<[usize; 2]>,
    video_decoder_cache_size: usize,
    num_threads: usize,
    decode_ahead_bytes: u64,
    shuffle: bool,
}

impl Config {
    fn new(pool: &EpisodePool, args: &BenchArgs) -> Self {
        let options = pool.options();
        Self {
            warmup_batches: args.warmup_batches,
            prefetch_batches: args.prefetch_batches.get(),
            seed: options.seed,
            delta_timestamps: options.delta_timestamps.clone(),
            tolerance_s: options.tolerance_s,
            frame_layout: format!("{:?}", options.frame_layout).to_lowercase(),
            frame_type: format!("{:?}", options.frame_type).to_lowercase(),
            resize: options.resize.map(|size| [size.height, size.width]),
            video_decoder_cache_size: options.video_decoder_cache_size,
            num_threads: options.num_threads,
            decode_ahead_bytes: options.decode_ahead_bytes,
            shuffle: options.shuffle,
        }
    }
}

/// The report as one row of a table; the columns are in this order.
#[derive(Debug, Serialize)]
struct Row<'a> {
    source: &'a str,
    mode: Mode,
    batch_size: usize,
    num_workers: usize,
    decode_device: Device,
    episode_pool_size: usize,
    batches: u64,
    samples: u64,
    samples_per_s: f64,
    frames_per_s_node: f64,
    open_s: f64,
    first_batch_latency_s: f64,
    p50_sample_latency_ms: Option<f64>,
    p95_sample_latency_ms: Option<f64>,
    p99_sample_latency_ms: Option<f64>,
    wallclock_s: f64,
    video_decoder_cache_hits: u64,
    video_decoder_cache_misses: u64,
    video_decoder_cache_evictions: u64,
    video_decoder_cache_hit_rate: f64,
    bytes_fetched: u64,
    stalls: u64,
    stalled_s: f64,
    peak_rss_bytes: Option<u64>,
    started_at: &'a str,
    host: &'a str,
    episode_pool: &'static str,
    ffmpeg: &'static str,
    url: &'a str,
}

impl<'a> Row<'a> {
    fn new(report: &'a Report<'a>) -> Self {
        let results = &report.results;
        let cache = &results.video_decoder_cache;
        Self {
            source: report.source,
            mode: report.mode,
            batch_size: report.batch_size,
            num_workers: report.num_workers,
            decode_device: report.decode_device,
            episode_pool_size: report.episode_pool_size,
            batches: results.batches,
            samples: results.samples,
            samples_per_s: results.samples_per_s,
            frames_per_s_node: results.frames_per_s_node,
            open_s: results.open_s,
            first_batch_latency_s: results.first_batch_latency_s,
            p50_sample_latency_ms: results.p50_sample_latency_ms,
            p95_sample_latency_ms: results.p95_sample_latency_ms,
            p99_sample_latency_ms: results.p99_sample_latency_ms,
            wallclock_s: results.wallclock_s,
            video_decoder_cache_hits: cache.hits,
            video_decoder_cache_misses: cache.misses,
            video_decoder_cache_evictions: cache.evictions,
            video_decoder_cache_hit_rate: cache.hit_rate,
            bytes_fetched: results.bytes_fetched,
            stalls: results.stalls.count,
            stalled_s: results.stalls.seconds,
            peak_rss_bytes: results.peak_rss_bytes,
            started_at: &report.started_at,
            host: &report.host.name,
            episode_pool: report.versions.episode_pool,
            ffmpeg: report.versions.ffmpeg,
            url: report.url,
        }
    }

    /// A heading and the row.
    fn csv(&self) -> Vec<u8> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer
            .serialize(self)
            .expect("a row of numbers and texts becomes CSV");
        writer
            .into_inner()
            .expect("memory takes all that is written")
    }
}

impl Report<'_> {
    fn write_text(&self, json: &Path, out: &mut impl Write) -> io::Result<()> {
        let results = &self.results;
        writeln!(
            out,
            "{}, {}, decoded by {}: {} in {}, {:.3} s",
            self.source,
            self.mode.name(),
            self.decode_device.name(),
            count(results.samples, "sample"),
            count(results.batches, "batch"),
            results.wallclock_s,
        )?;
        writeln!(
            out,
            "  throughput      {:.1} samples/s, {:.1} camera frames/s",
            results.samples_per_s, results.frames_per_s_node
        )?;
        writeln!(
            out,
            "  first batch     after {:.3} s, and {:.3} s before it to read the metadata",
            results.first_batch_latency_s, results.open_s
        )?;
        if let (Some(p50), Some(p95), Some(p99)) = (
            results.p50_sample_latency_ms,
            results.p95_sample_latency_ms,
            results.p99_sample_latency_ms,
        ) {
            writeln!(
                out,
                "  sample latency  {p50:.3} ms (p50), {p95:.3} ms (p95), {p99:.3} ms (p99)"
            )?;
        }
        if let Some(bytes) = results.peak_rss_bytes {
            writeln!(out, "  peak memory     {:.1} MB", bytes as f64 / 1e6)?;
        }
        if results.bytes_fetched > 0 {
            writeln!(
                out,
                "  fetched         {:.1} MB in {}, {:.3} times what was needed; {} of {:.3} s in all",
                results.bytes_fetched as f64 / 1e6,
                count(results.requests, "request"),
                results.amplification,
                count(results.stalls.count, "stall"),
                results.stalls.seconds,
            )?;
        }
        writeln!(out, "  written to      {}, and .csv", json.display())
    }
}
