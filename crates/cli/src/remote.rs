//! The options for datasets that lie elsewhere.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use episode_pool::prefetch::SourceOptions;
use episode_pool::{Builder, EpochReport, Fetch, FetchTotals, OnFetchError};
use serde::Serialize;

/// How a dataset is read that lies elsewhere. Nothing of it matters for a directory of this machine.
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// Where rows and videos lie, if not beside the metadata: a directory or a URL with the same layout.
    #[arg(long, value_name = "URL", help_heading = "Remote sources")]
    data_root: Option<String>,

    /// An index of the dataset's files. [default: what `episode-pool index` has made, else meta/episode-pool.index of the dataset]
    #[arg(long, value_name = "FILE", help_heading = "Remote sources")]
    index: Option<PathBuf>,

    /// The folder in which fetched video is kept while it is needed, on a disk of this machine. [default: EPISODE_POOL_CACHE, else
    /// ~/.cache/episode-pool]
    #[arg(long, value_name = "DIR", help_heading = "Remote sources")]
    cache_dir: Option<PathBuf>,

    /// The most bytes in that folder, for all processes that share it.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 32 << 30,
        help_heading = "Remote sources"
    )]
    cache_bytes: u64,

    /// Keep what nobody needs until the room is needed, for later epochs and runs. [default: delete it]
    #[arg(long, help_heading = "Remote sources")]
    warm_cache: bool,

    /// How many episodes each worker fetches before they are admitted.
    #[arg(
        long,
        value_name = "EPISODES",
        default_value_t = 8,
        help_heading = "Remote sources"
    )]
    prefetch_episodes: usize,

    /// How much of a video file is fetched.
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "ranges",
        help_heading = "Remote sources"
    )]
    fetch: FetchArg,

    /// What to do when an episode cannot be fetched.
    #[arg(
        long,
        value_enum,
        value_name = "ACTION",
        default_value = "fail",
        help_heading = "Remote sources"
    )]
    on_fetch_error: OnFetchErrorArg,

    /// How often a request is made before it counts as failed.
    #[arg(
        long,
        value_name = "TIMES",
        default_value = "6",
        help_heading = "Remote sources"
    )]
    max_attempts: NonZeroU32,

    /// The most requests at once, up to 1024.
    #[arg(
        long,
        value_name = "REQUESTS",
        default_value = "16",
        help_heading = "Remote sources"
    )]
    max_requests: NonZeroUsize,

    /// How long a server may send nothing, in seconds.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "30",
        help_heading = "Remote sources"
    )]
    request_timeout_s: NonZeroU32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FetchArg {
    /// Of each camera, the packets of the episode's own frames.
    Ranges,
    /// All of the file.
    Files,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OnFetchErrorArg {
    /// End with the error.
    Fail,
    /// Leave out the episode's frames, and report it.
    SkipEpisode,
}

impl RemoteArgs {
    /// Sets these options.
    pub(crate) fn apply(&self, builder: Builder) -> Builder {
        let mut source = SourceOptions::default();
        source.max_attempts = self.max_attempts.get();
        source.max_requests = self.max_requests.get();
        source.timeout = Duration::from_secs(self.request_timeout_s.get().into());
        let mut builder = builder
            .source_options(source)
            .cache_bytes(self.cache_bytes)
            .warm_cache(self.warm_cache)
            .prefetch_episodes(self.prefetch_episodes)
            .fetch(match self.fetch {
                FetchArg::Ranges => Fetch::Ranges,
                FetchArg::Files => Fetch::Files,
            })
            .on_fetch_error(match self.on_fetch_error {
                OnFetchErrorArg::Fail => OnFetchError::Fail,
                OnFetchErrorArg::SkipEpisode => OnFetchError::SkipEpisode,
            });
        if let Some(url) = &self.data_root {
            builder = builder.data_root(url);
        }
        if let Some(path) = &self.index {
            builder = builder.index(path);
        }
        if let Some(dir) = &self.cache_dir {
            builder = builder.cache_dir(dir);
        }
        builder
    }

    /// Whether an epoch may leave out what cannot be fetched.
    pub(crate) fn may_leave_out(&self) -> bool {
        matches!(self.on_fetch_error, OnFetchErrorArg::SkipEpisode)
    }
}

/// What fetching has cost.
#[derive(Debug, Serialize)]
pub(crate) struct FetchSummary {
    pub(crate) requests: u64,
    pub(crate) retries: u64,
    pub(crate) bytes_fetched: u64,
    pub(crate) bytes_needed: u64,
    pub(crate) amplification: f64,
    pub(crate) cache_hit_rate: f64,
    pub(crate) bytes_not_kept: u64,
    pub(crate) stalls: Stalls,
    pub(crate) episodes_left_out: Vec<LeftOutSummary>,
}

/// Waits for bytes from a network, over all workers.
#[derive(Debug, Serialize)]
pub(crate) struct Stalls {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct LeftOutSummary {
    pub(crate) episode_index: usize,
    pub(crate) frames: u64,
    pub(crate) reason: String,
}

impl FetchSummary {
    pub(crate) fn new(totals: FetchTotals, reports: &[EpochReport]) -> Self {
        let left_out = reports.iter().flat_map(|report| &report.fetch.left_out);
        let left_out = left_out.map(|left_out| LeftOutSummary {
            episode_index: left_out.episode_index,
            frames: left_out.frames,
            reason: left_out.reason.clone(),
        });
        let stalled_s = reports
            .iter()
            .map(|report| report.fetch.stalled.as_secs_f64());
        Self {
            requests: totals.requests,
            retries: totals.retries,
            bytes_fetched: totals.bytes_fetched,
            bytes_needed: totals.bytes_needed,
            amplification: totals.amplification(),
            cache_hit_rate: totals.hit_rate(),
            bytes_not_kept: totals.bytes_not_kept,
            stalls: Stalls {
                count: reports.iter().map(|report| report.fetch.stalls).sum(),
                seconds: stalled_s.sum(),
            },
            episodes_left_out: left_out.collect(),
        }
    }
}
