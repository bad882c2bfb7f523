//! `episode-pool stream`: runs an epoch, or some batches of it, and measures that.

use std::fs::File;
use std::io::{self, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use episode_pool::pool_core::{Coverage, CoverageReport};
use episode_pool::resume::{EpochEnd, State};
use episode_pool::{
    Batch, Batches, EpisodePool, EpochReport, Loader, LoaderEpoch, LoaderOptions, StateDict,
};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;

use crate::args::{BatchArgs, LoaderArgs};
use crate::distributed::{DistributedArgs, FleetSummary, Rank};
use crate::error::Error;
use crate::files;
use crate::frames::FrameArgs;
use crate::json;
use crate::measure::{self, DecodeSummary, Measured, VideoCacheSummary};
use crate::memory;
use crate::percentiles::Percentiles;
use crate::remote::FetchSummary;
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

    #[command(flatten)]
    progress: ProgressArgs,

    #[command(flatten)]
    distributed: DistributedArgs,

    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// How epochs end, and where a run begins and is saved.
#[derive(Debug, Args)]
struct ProgressArgs {
    /// Run so many epochs, one after the other; a run that goes on from a state counts those before. [default: one, or what is left of
    /// it]
    #[arg(long, value_name = "EPOCHS", help_heading = "Progress")]
    epochs: Option<NonZeroU64>,

    /// How ranks end an epoch in which they have different numbers of batches.
    #[arg(
        long,
        value_enum,
        value_name = "END",
        default_value = "exact",
        help_heading = "Progress"
    )]
    epoch_end: EpochEndArg,

    /// Define the order for so many logical consumers, so that it is the same on any number of ranks and workers that divides
    /// this one, or is a multiple of it. [default: ranks and workers are part of the order]
    #[arg(long, value_name = "CONSUMERS", help_heading = "Progress")]
    canonical_consumers: Option<NonZeroUsize>,

    /// Go on after so many batches of this size, counted over all epochs of a run. [default: start the epoch]
    #[arg(
        long,
        value_name = "BATCHES",
        conflicts_with_all = ["epoch", "resume"],
        help_heading = "Progress"
    )]
    resume_batches: Option<u64>,

    /// Go on from a state that --save-state wrote, or a trainer: {"batches_consumed": 1200, "batch_size": 16}. The number of ranks
    /// and workers may be another by now. [default: start the epoch]
    #[arg(
        long,
        value_name = "FILE.json",
        conflicts_with = "epoch",
        help_heading = "Progress"
    )]
    resume: Option<PathBuf>,

    /// Go on even if the state was saved with other options: what is left of the epoch is shared out anew. [default: refuse, and name
    /// each difference]
    #[arg(long, requires = "resume", help_heading = "Progress")]
    no_strict: bool,

    /// Keep the state in this file. [default: none is kept]
    #[arg(
        long,
        value_name = "FILE.json",
        conflicts_with = "worker",
        group = "saved",
        help_heading = "Progress"
    )]
    save_state: Option<PathBuf>,

    /// Save the state after so many batches each, and at the end.
    #[arg(
        long,
        value_name = "BATCHES",
        default_value = "100",
        requires = "saved",
        help_heading = "Progress"
    )]
    save_every: NonZeroU64,

    /// Write the frames of every batch to this file, a line each: {"epoch": 0, "frames": [[episode, frame], ...]}. [default: none
    /// are written]
    #[arg(long, value_name = "FILE.jsonl", help_heading = "Progress")]
    frames_out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EpochEndArg {
    /// Every frame comes once, and ranks may take different numbers of batches.
    Exact,
    /// All ranks end with the shortest: frames are left out.
    #[value(name = "drop_tail")]
    DropTail,
    /// All ranks go on until the longest ends: samples come again.
    Wrap,
}

impl From<EpochEndArg> for EpochEnd {
    fn from(end: EpochEndArg) -> Self {
        match end {
            EpochEndArg::Exact => Self::Exact,
            EpochEndArg::DropTail => Self::DropTail,
            EpochEndArg::Wrap => Self::Wrap,
        }
    }
}

impl ProgressArgs {
    /// The state to go on from.
    fn state(&self, batch_size: usize) -> Result<Option<StateDict>, Error> {
        if let Some(path) = &self.resume {
            let text = std::fs::read_to_string(path).map_err(|source| Error::ReadFile {
                path: path.clone(),
                source,
            })?;
            let state = StateDict::from_json(&text).map_err(|source| Error::StateFile {
                path: path.clone(),
                source,
            })?;
            return Ok(Some(state));
        }
        let state = self.resume_batches.map(|batches_consumed| State {
            batches_consumed,
            batch_size: batch_size as u64,
        });
        Ok(state.map(StateDict::from))
    }
}

pub(crate) fn run(args: &StreamArgs, out: &mut impl Write) -> Result<(), Error> {
    let pool = args.frames.apply(args.loader.builder()?).build()?;
    let mut run = Run::new(&pool, args)?;
    let bar = progress_bar();
    let started = Instant::now();
    let mut stream = run.first()?;
    let mut is_at_the_end = true;
    while let Some(epoch) = stream.take() {
        bar.inc_length(run.expected(&epoch));
        is_at_the_end = run.take_batches(epoch, started, &bar)?;
        if is_at_the_end {
            stream = run.next()?;
        }
    }
    bar.finish_and_clear();

    let is_exact = matches!(args.progress.epoch_end, EpochEndArg::Exact) && !args.drop_last;
    let (owned, skipped) = (run.done.owned.num_frames(), run.done.skipped);
    let rank = run.rank.take();
    let samples = run.measured.samples;
    let camera_frames = samples * measure::frames_per_sample(&pool) as u64;
    let wallclock_s = run.measured.elapsed.as_secs_f64();
    let summary = run.summary();
    if summary.is_none() && rank.is_none() {
        return Err(Error::NothingStreamed {
            frames: owned.saturating_sub(skipped),
            batch_size: args.batch.size(),
        });
    }
    if let Some(summary) = &summary
        && !args.json
    {
        summary.write_text(&pool, out).map_err(Error::Output)?;
        // Rank 0 may have to wait for the others.
        out.flush().map_err(Error::Output)?;
    }
    if let Some(summary) = &summary {
        // Fewer frames than selected are meant when the run was cut short, and when last batches were dropped.
        let coverage = summary.coverage_report;
        let is_as_selected =
            coverage.exactly_once || (skipped > 0 && coverage.emitted + skipped == owned);
        let left_out = summary.fetch.episodes_left_out.iter();
        let left_out: u64 = left_out.map(|left_out| left_out.frames).sum();
        let is_as_selected = is_as_selected
            || (args.loader.remote.may_leave_out()
                && coverage.emitted + skipped + left_out == owned);
        if is_at_the_end && is_exact && !is_as_selected {
            return Err(Error::Coverage { coverage });
        }
    }
    let fleet = rank.map(|rank| rank.finish(samples, camera_frames, wallclock_s, is_exact));
    let fleet = fleet.transpose()?.flatten();
    if args.json {
        return json::write_pretty(out, &Printed { summary, fleet });
    }
    fleet
        .map_or(Ok(()), |fleet| fleet.write_text(out))
        .map_err(Error::Output)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Printed {
    #[serde(flatten)]
    summary: Option<Summary>,
    /// Of all ranks, told by rank 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<FleetSummary>,
}

/// A run under way: what is to be done, and what was done.
#[derive(Debug)]
struct Run<'a> {
    args: &'a StreamArgs,
    pool: &'a EpisodePool,
    loader: Loader,
    /// The state that is resumed.
    state: Option<StateDict>,
    /// The epochs to run.
    epochs: Range<u64>,
    /// How many of them are over.
    epochs_run: u64,
    frames_out: Option<FramesOut>,
    /// With --distributed.
    rank: Option<Rank>,
    measured: Measured,
    done: Done,
}

/// What the epochs that are over, or were left, add up to.
#[derive(Debug, Default)]
struct Done {
    /// The frames to be emitted in them, those passed over included.
    owned: Coverage,
    /// The frames passed over at the start.
    skipped: u64,
    reports: Vec<EpochReport>,
}

impl<'a> Run<'a> {
    fn new(pool: &'a EpisodePool, args: &'a StreamArgs) -> Result<Self, Error> {
        let progress = &args.progress;
        let options = LoaderOptions {
            batch_size: args.batch.size(),
            drop_last: args.drop_last,
            prefetch_batches: args.prefetch_batches.get(),
            epoch_end: progress.epoch_end.into(),
            canonical_consumers: progress.canonical_consumers.map(NonZeroUsize::get),
        };
        let first = args.loader.epoch;
        let rank = Rank::new(&args.distributed, pool.topology(), pool.fleet_coverage())?;
        let (rank, state) = match rank {
            Some((rank, Some(state))) => (Some(rank), Some(state)),
            Some((mut rank, None)) => {
                let state = progress.state(args.batch.size())?;
                if state.is_some() {
                    rank.pass_over();
                }
                (Some(rank), state)
            }
            None => (None, progress.state(args.batch.size())?),
        };
        Ok(Self {
            args,
            pool,
            loader: Loader::new(pool, options)?,
            state,
            rank,
            epochs: first..first.saturating_add(progress.epochs.map_or(1, NonZeroU64::get)),
            epochs_run: 0,
            frames_out: progress
                .frames_out
                .as_deref()
                .map(FramesOut::create)
                .transpose()?,
            measured: Measured::default(),
            done: Done::default(),
        })
    }

    /// The first epoch, or what is left of it; None where a rank of several had come to its end before.
    fn first(&mut self) -> Result<Option<Stream>, Error> {
        let Some(state) = &self.state else {
            return self.epoch(self.epochs.start).map(Some);
        };
        let strict = !self.args.progress.no_strict;
        let stream = match self.args.loader.worker {
            None => Stream::Rank(Box::new(self.loader.load_state_dict(state, strict)?)),
            Some(worker) => {
                let batches = self.loader.worker_load_state_dict(state, strict, worker)?;
                Stream::Worker(Box::new(batches))
            }
        };
        let epoch = stream.epoch();
        if let Some(rank) = &mut self.rank {
            // Started again, it does what is left of what it was started for.
            rank.complete_before(epoch);
            self.epochs.start = epoch;
            return Ok((!self.epochs.is_empty()).then_some(stream));
        }
        let end = match self.args.progress.epochs {
            Some(epochs) => epochs.get(),
            None => epoch.saturating_add(1),
        };
        if epoch >= end {
            return Err(Error::RunIsOver { epoch, epochs: end });
        }
        self.epochs = epoch..end;
        Ok(Some(stream))
    }

    /// The next epoch, if there is one.
    fn next(&mut self) -> Result<Option<Stream>, Error> {
        self.epochs_run += 1;
        let epoch = self.epochs.start.saturating_add(self.epochs_run);
        if !self.epochs.contains(&epoch) {
            return Ok(None);
        }
        self.epoch(epoch).map(Some)
    }

    fn epoch(&self, epoch: u64) -> Result<Stream, Error> {
        Ok(match self.args.loader.worker {
            None => Stream::Rank(Box::new(self.loader.epoch(epoch)?)),
            Some(worker) => Stream::Worker(Box::new(self.loader.worker_epoch(epoch, worker)?)),
        })
    }

    /// The frames of an epoch that the progress bar counts.
    fn expected(&self, stream: &Stream) -> u64 {
        let batches = self.args.batches.map_or(u64::MAX, |limit| {
            (limit.get() - self.measured.batches()) as u64
        });
        let limit = batches.saturating_mul(self.args.batch.size() as u64);
        stream.num_samples().min(limit)
    }

    /// Takes an epoch's batches, as many as there are or as are asked for, and keeps the time. Whether it came to the epoch's end.
    fn take_batches(
        &mut self,
        mut stream: Stream,
        started: Instant,
        bar: &ProgressBar,
    ) -> Result<bool, Error> {
        let epoch = stream.epoch();
        let mut last = started + self.measured.elapsed;
        let mut is_at_the_end = false;
        while self
            .args
            .batches
            .is_none_or(|limit| self.measured.batches() < limit.get())
        {
            let Some(batch) = stream.next_batch() else {
                is_at_the_end = true;
                break;
            };
            let batch = batch?;
            let received = Instant::now();
            self.measured
                .record(&batch, (received - last).as_secs_f64());
            bar.inc(batch.len() as u64);
            if let Some(out) = &mut self.frames_out {
                out.write(epoch, &batch)?;
            }
            if let Some(rank) = &mut self.rank {
                let episodes = batch.episode_indices.iter().copied();
                rank.record(epoch, episodes.zip(batch.frame_indices.iter().copied()));
            }
            let batches = self.measured.batches() as u64;
            if batches.is_multiple_of(self.args.progress.save_every.get()) {
                self.save(&stream)?;
            }
            // Freeing the batch costs time as well: the next wait starts before it.
            last = received;
            self.measured.elapsed = received - started;
        }
        if let Some(rank) = &mut self.rank
            && is_at_the_end
        {
            rank.complete(epoch);
        }
        self.save(&stream)?;
        self.done.owned.merge(stream.owned());
        self.done.skipped += stream.num_skipped();
        self.done.reports.extend(stream.finish());
        Ok(is_at_the_end)
    }

    /// Keeps the state, where one is to be kept.
    fn save(&mut self, stream: &Stream) -> Result<(), Error> {
        let Stream::Rank(epoch) = stream else {
            return Ok(());
        };
        if let Some(rank) = &mut self.rank {
            return rank.save(&epoch.state_dict(), epoch.epoch(), self.measured.samples);
        }
        let Some(path) = &self.args.progress.save_state else {
            return Ok(());
        };
        files::replace(path, epoch.state_dict().to_json().as_bytes()).map_err(|source| {
            Error::WriteFile {
                path: path.clone(),
                source,
            }
        })
    }

    /// `None` if there was no batch.
    fn summary(self) -> Option<Summary> {
        Summary::new(self)
    }
}

/// Where batches come from.
#[derive(Debug)]
enum Stream {
    /// All workers of the rank, on threads.
    Rank(Box<LoaderEpoch>),
    /// One worker, on this thread.
    Worker(Box<Batches>),
}

impl Stream {
    fn epoch(&self) -> u64 {
        match self {
            Self::Rank(epoch) => epoch.epoch(),
            Self::Worker(batches) => batches.epoch(),
        }
    }

    fn num_samples(&self) -> u64 {
        match self {
            Self::Rank(epoch) => epoch.num_samples(),
            Self::Worker(batches) => batches.remaining(),
        }
    }

    fn num_skipped(&self) -> u64 {
        match self {
            Self::Rank(epoch) => epoch.num_skipped(),
            Self::Worker(batches) => batches.report().skipped,
        }
    }

    fn owned(&self) -> Coverage {
        match self {
            Self::Rank(epoch) => epoch.owned(),
            Self::Worker(batches) => batches.owned(),
        }
    }

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

/// The file that the frames of every batch are written to.
#[derive(Debug)]
struct FramesOut {
    path: PathBuf,
    file: File,
}

/// A line of that file.
#[derive(Debug, Serialize)]
struct FramesLine {
    epoch: u64,
    frames: Vec<(usize, usize)>,
}

impl FramesOut {
    fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|source| Error::WriteFile {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Writes a batch's line, all at once: who kills the program finds whole lines.
    fn write(&mut self, epoch: u64, batch: &Batch) -> Result<(), Error> {
        let episodes = batch.episode_indices.iter().copied();
        let line = FramesLine {
            epoch,
            frames: episodes.zip(batch.frame_indices.iter().copied()).collect(),
        };
        let mut text = serde_json::to_string(&line).expect("numbers become JSON");
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .map_err(|source| Error::WriteFile {
                path: self.path.clone(),
                source,
            })
    }
}

/// Shows nothing where standard error is no terminal.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:32} {human_pos} of {human_len} frames, {per_sec}, {eta} left",
    )
    .expect("the template is valid");
    ProgressBar::new(0)
        .with_style(style)
        .with_finish(ProgressFinish::AndClear)
}

/// The summary of a run. The names are those of the benchmarks.
#[derive(Debug, Serialize)]
struct Summary {
    epoch: u64,
    epochs_completed: u64,
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
    fetch: FetchSummary,
    epoch_end: EpochEndSummary,
    coverage: CoverageSummary,
    #[serde(skip)]
    coverage_report: CoverageReport,
}

/// What one epoch leaves out and repeats, over all ranks.
#[derive(Debug, Serialize)]
struct EpochEndSummary {
    mode: String,
    frames_dropped: u64,
    samples_repeated: u64,
}

#[derive(Debug, Serialize)]
struct CoverageSummary {
    selected: u64,
    emitted: u64,
    exactly_once: bool,
}

impl Summary {
    /// `None` if there was no batch.
    fn new(run: Run<'_>) -> Option<Self> {
        let Run {
            pool,
            loader,
            epochs,
            epochs_run,
            measured,
            done,
            args,
            ..
        } = run;
        let frames_per_sample = measure::frames_per_sample(pool);
        let wallclock_s = measured.elapsed.as_secs_f64();
        let samples_per_s = measured.samples as f64 / wallclock_s;
        let coverage = CoverageReport::new(done.owned, measured.received);
        let first_batch_latency_s = *measured.waits_s.first()?;
        let batches = measured.batches() as u64;
        let reports = done.reports;
        let latencies_ms = Percentiles::new(measured.sample_latencies_ms);
        Some(Self {
            epoch: epochs.start,
            epochs_completed: epochs_run,
            batches,
            samples: measured.samples,
            samples_per_s,
            frames_per_s_node: samples_per_s * frames_per_sample as f64,
            first_batch_latency_s,
            p50_sample_latency_ms: latencies_ms.at(50)?,
            p95_sample_latency_ms: latencies_ms.at(95)?,
            p99_sample_latency_ms: latencies_ms.at(99)?,
            wallclock_s,
            peak_rss_bytes: memory::peak_rss_bytes(),
            video_decoder_cache: VideoCacheSummary::new(&reports),
            decode: DecodeSummary::new(&reports),
            fetch: FetchSummary::new(loader.fetch_totals(), &reports),
            epoch_end: EpochEndSummary {
                mode: EpochEnd::from(args.progress.epoch_end).to_string(),
                frames_dropped: loader.num_dropped(),
                samples_repeated: loader.num_repeated(),
            },
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
        let fetch = &self.fetch;
        if fetch.bytes_fetched > 0 {
            writeln!(
                out,
                "  fetched         {:.1} MB in {}, {:.3} times what was needed; {} of {:.3} s in all",
                fetch.bytes_fetched as f64 / 1e6,
                count(fetch.requests, "request"),
                fetch.amplification,
                count(fetch.stalls.count, "stall"),
                fetch.stalls.seconds,
            )?;
        }
        for left_out in &fetch.episodes_left_out {
            writeln!(
                out,
                "  left out        {} of episode {}: {}",
                count(left_out.frames, "frame"),
                left_out.episode_index,
                left_out.reason,
            )?;
        }
        writeln!(out, "  coverage        {}", self.coverage_report)
    }
}
