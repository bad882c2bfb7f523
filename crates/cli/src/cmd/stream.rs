//! `episode-pool stream`: runs an epoch, or some batches of it, and measures that.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::time::Instant;

use clap::{Args, ValueEnum};
use episode_pool::decode::Layout;
use episode_pool::pool_core::{Coverage, CoverageReport};
use episode_pool::resume::State;
use episode_pool::{
    Batch, Batches, Builder, DecodeReport, EpisodePool, EpochReport, FrameType, Loader,
    LoaderEpoch, LoaderOptions,
};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;

use crate::args::{BatchArgs, LoaderArgs};
use crate::error::Error;
use crate::json;
use crate::memory;
use crate::percentiles::Percentiles;
use crate::table::{count, thousands};

/// What to run, and what to tell of it.
#[derive(Debug, Args)]
#[command(after_help = "\
The clock starts when the workers do; reading the metadata comes before. A sample's latency is the time spent waiting for \
its batch, divided by the samples in the batch; percentiles are over batches. frames_per_s_node counts the cameras' frames, \
each of a window's, over all workers of this process.

Fails if a whole epoch does not emit every selected frame exactly once.")]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    loader: LoaderArgs,

    #[command(flatten)]
    frames: FrameArgs,

    #[command(flatten)]
    batch: BatchArgs,

    /// Stop after so many batches. [default: the whole epoch]
    #[arg(long, value_name = "BATCHES")]
    batches: Option<NonZeroUsize>,

    /// Leave out each worker's last batch if it is not full.
    #[arg(long)]
    drop_last: bool,

    /// The batches that each worker makes ahead. Not used with --worker, which makes batches as they are taken.
    #[arg(long, value_name = "BATCHES", default_value = "2")]
    prefetch_batches: NonZeroUsize,

    /// Go on after so many batches of this size, counted over all epochs of a run. [default: start the epoch]
    #[arg(long, value_name = "BATCHES", conflicts_with = "epoch")]
    resume_batches: Option<u64>,

    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// How camera frames are made.
#[derive(Debug, Args)]
struct FrameArgs {
    /// The axes of a camera's frame.
    #[arg(
        long,
        value_enum,
        value_name = "LAYOUT",
        default_value = "hwc",
        help_heading = "Camera frames"
    )]
    frame_layout: LayoutArg,

    /// The numbers of a pixel. Depth is 16-bit codes whatever is chosen.
    #[arg(
        long,
        value_enum,
        value_name = "TYPE",
        default_value = "u8",
        help_heading = "Camera frames"
    )]
    frame_type: FrameTypeArg,

    /// The size of every camera's frames, in pixels, as in 96x128. [default: as stored]
    #[arg(long, value_name = "HEIGHTxWIDTH", value_parser = parse_size, help_heading = "Camera frames")]
    resize: Option<(usize, usize)>,

    /// The most video files that a worker keeps open. [default: (pool size + 1) x cameras, at most 128]
    #[arg(long, value_name = "FILES", help_heading = "Camera frames")]
    video_decoder_cache_size: Option<NonZeroUsize>,

    /// The threads that decode video, for all workers together. [default: the cores that the process may use]
    #[arg(long, value_name = "THREADS", help_heading = "Camera frames")]
    num_threads: Option<NonZeroUsize>,

    /// The most memory for frames decoded before they are emitted, for all workers together. [default: 536870912]
    #[arg(long, value_name = "BYTES", help_heading = "Camera frames")]
    decode_ahead_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LayoutArg {
    /// [height, width, channels]
    Hwc,
    /// [channels, height, width]
    Chw,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FrameTypeArg {
    /// 0 to 255
    U8,
    /// 0.0 to 1.0
    F32,
}

fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let sides = text
        .split_once('x')
        .and_then(|(height, width)| Some((height.parse().ok()?, width.parse().ok()?)));
    sides.ok_or_else(|| "expected a height and a width in pixels, as in 96x128".to_owned())
}

impl FrameArgs {
    fn apply(&self, builder: Builder) -> Builder {
        let mut builder = builder
            .frame_layout(match self.frame_layout {
                LayoutArg::Hwc => Layout::Hwc,
                LayoutArg::Chw => Layout::Chw,
            })
            .frame_type(match self.frame_type {
                FrameTypeArg::U8 => FrameType::U8,
                FrameTypeArg::F32 => FrameType::F32,
            });
        if let Some((height, width)) = self.resize {
            builder = builder.resize(height, width);
        }
        if let Some(files) = self.video_decoder_cache_size {
            builder = builder.video_decoder_cache_size(files.get());
        }
        if let Some(threads) = self.num_threads {
            builder = builder.num_threads(threads.get());
        }
        if let Some(bytes) = self.decode_ahead_bytes {
            builder = builder.decode_ahead_bytes(bytes);
        }
        builder
    }
}

pub(crate) fn run(args: &StreamArgs, out: &mut impl Write) -> Result<(), Error> {
    let pool = args.frames.apply(args.loader.builder()?).build()?;
    let run = Run::new(&pool, args)?;
    if run.selected == Coverage::default() {
        return Err(Error::no_frames(pool.topology()));
    }
    let started = Instant::now();
    let mut stream = run.start(args)?;
    let measured = take_batches(
        &mut stream,
        started,
        args.batches,
        &progress_bar(run.expected(args)),
    )?;

    let is_whole = measured.is_at_the_end && !args.drop_last;
    let summary = Summary::new(&pool, &run, stream, measured).ok_or(Error::NothingStreamed {
        frames: run.remaining(),
        batch_size: args.batch.size(),
    })?;
    if args.json {
        json::write_pretty(out, &summary)?;
    } else {
        summary.write_text(&pool, out).map_err(Error::Output)?;
    }
    // Fewer frames than selected are meant when the run was cut short, and when last batches were dropped.
    let coverage = summary.coverage_report;
    let is_as_selected =
        coverage.exactly_once || (run.skipped > 0 && coverage.emitted == run.remaining());
    if is_whole && !is_as_selected {
        return Err(Error::Coverage { coverage });
    }
    Ok(())
}

/// Takes all batches, or so many of them, and keeps the time.
fn take_batches(
    stream: &mut Stream,
    started: Instant,
    limit: Option<NonZeroUsize>,
    bar: &ProgressBar,
) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    let mut last = started;
    while limit.is_none_or(|limit| measured.batches() < limit.get()) {
        let Some(batch) = stream.next_batch() else {
            measured.is_at_the_end = true;
            break;
        };
        let batch = batch?;
        let received = Instant::now();
        measured.record(&batch, (received - last).as_secs_f64());
        bar.inc(batch.len() as u64);
        // Freeing the batch costs time as well: the next wait starts before it.
        last = received;
    }
    measured.wallclock_s = (last - started).as_secs_f64();
    Ok(measured)
}

/// Which part of which epoch is run, and by whom.
#[derive(Debug)]
struct Run {
    /// The consumers that run, at least one: all of the rank, or the one that `--worker` names.
    consumers: Vec<EpisodePool>,
    epoch: u64,
    /// The state that is resumed.
    state: Option<State>,
    /// The samples that each consumer passes over, when resuming.
    skips: Vec<u64>,
    skipped: u64,
    /// What the consumers own.
    selected: Coverage,
}

impl Run {
    fn new(pool: &EpisodePool, args: &StreamArgs) -> Result<Self, Error> {
        let topology = pool.topology();
        let workers = match args.loader.worker {
            Some(worker) => worker..worker + 1,
            None => 0..topology.consumers_per_rank(),
        };
        let consumers: Vec<EpisodePool> = workers
            .clone()
            .map(|worker| {
                let topology = topology
                    .with_worker(worker, topology.num_workers())
                    .map_err(Error::Topology)?;
                Ok(pool.with_topology(topology)?)
            })
            .collect::<Result<_, Error>>()?;
        let state = args.resume_batches.map(|batches_consumed| State {
            batches_consumed,
            batch_size: args.batch.size() as u64,
        });
        let (epoch, skips) = match &state {
            Some(state) => {
                let position = pool.position(state, args.drop_last)?;
                (
                    position.epoch(),
                    position.samples_to_skip()[workers].to_vec(),
                )
            }
            None => (args.loader.epoch, vec![0; consumers.len()]),
        };
        let mut selected = Coverage::default();
        for consumer in &consumers {
            selected.merge(consumer.coverage());
        }
        Ok(Self {
            consumers,
            epoch,
            state,
            skipped: skips.iter().sum(),
            skips,
            selected,
        })
    }

    /// The frames that are left to emit.
    fn remaining(&self) -> u64 {
        self.selected.num_frames().saturating_sub(self.skipped)
    }

    /// The frames that the progress bar counts to.
    fn expected(&self, args: &StreamArgs) -> u64 {
        let limit = args.batches.map_or(u64::MAX, |batches| {
            (batches.get() as u64).saturating_mul(args.batch.size() as u64)
        });
        self.remaining().min(limit)
    }

    fn start(&self, args: &StreamArgs) -> Result<Stream, Error> {
        if args.loader.worker.is_some() {
            let epoch = self.consumers[0].epoch_from(self.epoch, self.skips[0])?;
            let batches = epoch.batches(args.batch.size(), args.drop_last)?;
            return Ok(Stream::Worker(Box::new(batches)));
        }
        let options = LoaderOptions {
            batch_size: args.batch.size(),
            drop_last: args.drop_last,
            prefetch_batches: args.prefetch_batches.get(),
        };
        let loader = Loader::new(&self.consumers[0], options)?;
        Ok(Stream::Rank(match &self.state {
            Some(state) => loader.resume(state)?,
            None => loader.epoch(self.epoch)?,
        }))
    }
}

/// Where batches come from.
#[derive(Debug)]
enum Stream {
    /// All workers of the rank, on threads.
    Rank(LoaderEpoch),
    /// One worker, on this thread.
    Worker(Box<Batches>),
}

impl Stream {
    fn next_batch(&mut self) -> Option<Result<Batch, episode_pool::Error>> {
        match self {
            Self::Rank(batches) => batches.next(),
            Self::Worker(batches) => batches.next(),
        }
    }

    /// Stops the workers, and tells what each has done.
    fn finish(self) -> Vec<EpochReport> {
        match self {
            Self::Rank(batches) => batches.finish(),
            Self::Worker(batches) => vec![batches.report()],
        }
    }
}

/// Shows nothing where standard error is no terminal.
fn progress_bar(frames: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:32} {human_pos} of {human_len} frames, {per_sec}, {eta} left",
    )
    .expect("the template is valid");
    ProgressBar::new(frames)
        .with_style(style)
        .with_finish(ProgressFinish::AndClear)
}

/// What came, and when.
#[derive(Debug, Default)]
struct Measured {
    samples: u64,
    received: Coverage,
    /// The wait for every batch.
    waits_s: Vec<f64>,
    /// The same, for each sample of the batch.
    sample_latencies_ms: Vec<f64>,
    wallclock_s: f64,
    /// Whether there are no more batches.
    is_at_the_end: bool,
}

impl Measured {
    fn record(&mut self, batch: &Batch, wait_s: f64) {
        for (&episode_index, &frame_index) in batch.episode_indices.iter().zip(&batch.frame_indices)
        {
            self.received.record(episode_index, frame_index);
        }
        self.samples += batch.len() as u64;
        self.waits_s.push(wait_s);
        self.sample_latencies_ms
            .push(wait_s * 1e3 / batch.len() as f64);
    }

    fn batches(&self) -> usize {
        self.waits_s.len()
    }
}

/// The summary of a run. The names are those of the benchmarks.
#[derive(Debug, Serialize)]
struct Summary {
    epoch: u64,
    batches: u64,
    samples: u64,
    samples_per_s: f64,
    frames_per_s_node: f64,
    first_batch_latency_s: f64,
    p50_sample_latency_ms: f64,
    p95_sample_latency_ms: f64,
    p99_sample_latency_ms: f64,
    wallclock_s: f64,
    peak_rss_bytes: Option<u64>,
    video_decoder_cache: VideoCacheSummary,
    decode: DecodeSummary,
    coverage: CoverageSummary,
    #[serde(skip)]
    coverage_report: CoverageReport,
}

#[derive(Debug, Serialize)]
struct VideoCacheSummary {
    hits: u64,
    misses: u64,
    evictions: u64,
    hit_rate: f64,
}

#[derive(Debug, Serialize)]
struct DecodeSummary {
    gops_decoded: u64,
    frames_decoded: u64,
    frames_used: u64,
    reuse: f64,
    decoder_opens: u64,
    peak_held_bytes: u64,
}

#[derive(Debug, Serialize)]
struct CoverageSummary {
    selected: u64,
    emitted: u64,
    exactly_once: bool,
}

impl Summary {
    /// `None` if there was no batch.
    fn new(pool: &EpisodePool, run: &Run, stream: Stream, measured: Measured) -> Option<Self> {
        let frames_per_sample: usize = pool
            .fields()
            .iter()
            .filter(|field| field.is_camera())
            .map(|field| field.window_len().unwrap_or(1))
            .sum();
        let samples_per_s = measured.samples as f64 / measured.wallclock_s;
        let coverage = CoverageReport::new(run.selected, measured.received);
        let first_batch_latency_s = *measured.waits_s.first()?;
        let batches = measured.batches() as u64;
        let reports = stream.finish();
        let latencies_ms = Percentiles::new(measured.sample_latencies_ms);
        Some(Self {
            epoch: run.epoch,
            batches,
            samples: measured.samples,
            samples_per_s,
            frames_per_s_node: samples_per_s * frames_per_sample as f64,
            first_batch_latency_s,
            p50_sample_latency_ms: latencies_ms.at(50)?,
            p95_sample_latency_ms: latencies_ms.at(95)?,
            p99_sample_latency_ms: latencies_ms.at(99)?,
            wallclock_s: measured.wallclock_s,
            peak_rss_bytes: memory::peak_rss_bytes(),
            video_decoder_cache: VideoCacheSummary::new(&reports),
            decode: DecodeSummary::new(&reports),
            coverage: CoverageSummary {
                selected: coverage.selected,
                emitted: coverage.emitted,
                exactly_once: coverage.exactly_once,
            },
            coverage_report: coverage,
        })
    }

    fn write_text(&self, pool: &EpisodePool, out: &mut impl Write) -> io::Result<()> {
        let topology = pool.topology();
        writeln!(
            out,
            "epoch {}, rank {} of {}: {} in {}, {:.3} s",
            self.epoch,
            topology.rank(),
            topology.world_size(),
            count(self.samples, "sample"),
            count(self.batches, "batch"),
            self.wallclock_s,
        )?;
        writeln!(
            out,
            "  throughput      {:.1} samples/s, {:.1} camera frames/s",
            self.samples_per_s, self.frames_per_s_node
        )?;
        writeln!(
            out,
            "  first batch     after {:.3} s",
            self.first_batch_latency_s
        )?;
        writeln!(
            out,
            "  sample latency  {:.3} ms (p50), {:.3} ms (p95), {:.3} ms (p99)",
            self.p50_sample_latency_ms, self.p95_sample_latency_ms, self.p99_sample_latency_ms
        )?;
        if let Some(bytes) = self.peak_rss_bytes {
            writeln!(out, "  peak memory     {:.1} MB", bytes as f64 / 1e6)?;
        }
        let decode = &self.decode;
        if decode.frames_used > 0 {
            writeln!(
                out,
                "  video decoding  {} in {} for {} used",
                count(decode.frames_decoded, "frame"),
                count(decode.gops_decoded, "pass"),
                thousands(decode.frames_used),
            )?;
        }
        writeln!(out, "  coverage        {}", self.coverage_report)
    }
}

impl VideoCacheSummary {
    /// The sum over the workers' caches.
    fn new(reports: &[EpochReport]) -> Self {
        let sum = |counter: fn(&EpochReport) -> u64| reports.iter().map(counter).sum::<u64>();
        let hits = sum(|report| report.video_decoder_cache.hits);
        let misses = sum(|report| report.video_decoder_cache.misses);
        Self {
            hits,
            misses,
            evictions: sum(|report| report.video_decoder_cache.evictions),
            hit_rate: if hits + misses == 0 {
                0.0
            } else {
                hits as f64 / (hits + misses) as f64
            },
        }
    }
}

impl DecodeSummary {
    /// The sum over the workers.
    fn new(reports: &[EpochReport]) -> Self {
        let mut sum = DecodeReport::default();
        for report in reports {
            sum.merge(report.decode);
        }
        Self {
            gops_decoded: sum.gops_decoded,
            frames_decoded: sum.frames_decoded,
            frames_used: sum.frames_used,
            reuse: sum.reuse(),
            decoder_opens: sum.decoder_opens,
            peak_held_bytes: sum.peak_held_bytes,
        }
    }
}
