//! The command line: the commands, and the options that several of them share.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Parser, ValueEnum};
use episode_pool::pool_core::{Admission, ShardUnit, Topology};
use episode_pool::{Builder, EpisodePool};

use crate::cmd::Command;
use crate::error::Error;
use crate::remote::RemoteArgs;

/// Streams LeRobotDataset v3, shuffled across a pool of whole episodes.
///
/// Results go to standard output; progress, warnings and errors to standard error. RUST_LOG=error silences warnings.
#[derive(Debug, Parser)]
#[command(name = "episode-pool", version, max_term_width = 100)]
#[command(after_help = "Exit status: 0 on success, 1 on failure, 2 for a wrong command line.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What a loader emits, in what order, and for whom.
#[derive(Debug, Args)]
pub(crate) struct LoaderArgs {
    /// The dataset: its root directory, or a URL: hf://datasets/OWNER/NAME[@REVISION], hf://buckets/OWNER/NAME, s3://BUCKET/PREFIX,
    /// gs://BUCKET/PREFIX, https://HOST/PATH.
    pub(crate) path: String,

    /// Emit only these episodes, by number, such as 0,3,5-9 (ends included). [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Frames")]
    episodes: Option<EpisodeList>,

    /// Emit no frame of these episodes, such as 0,3,5-9. [default: none]
    #[arg(long, value_name = "LIST", help_heading = "Frames")]
    exclude_episodes: Option<EpisodeList>,

    /// Emit none of the first so many frames of every episode; windows may still look into them.
    #[arg(
        long,
        value_name = "FRAMES",
        default_value_t = 0,
        help_heading = "Frames"
    )]
    drop_n_first_frames: usize,

    /// Emit none of the last so many frames of every episode; windows may still look into them.
    #[arg(
        long,
        value_name = "FRAMES",
        default_value_t = 0,
        help_heading = "Frames"
    )]
    drop_n_last_frames: usize,

    /// Emit only the frames that this JSON file names: {"3": [[0, 40], [60, 90]]}, half-open ranges of frames by episode;
    /// episodes that it does not name are emitted whole. [default: every frame]
    #[arg(long, value_name = "FILE.json", help_heading = "Frames")]
    keep_ranges: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) windows: WindowArgs,

    /// The number of whole episodes in memory, across which frames are drawn.
    #[arg(
        long,
        value_name = "EPISODES",
        default_value = "64",
        help_heading = "Order"
    )]
    episode_pool_size: NonZeroUsize,

    /// The seed of every order.
    #[arg(long, default_value_t = 0, help_heading = "Order")]
    seed: u64,

    /// The epoch, from 0: each has an order of its own.
    #[arg(long, default_value_t = 0, help_heading = "Order")]
    pub(crate) epoch: u64,

    /// Keep the dataset's order. [default: draw at random]
    #[arg(long, help_heading = "Order")]
    no_shuffle: bool,

    /// In what order episodes come into the pool.
    #[arg(
        long,
        value_enum,
        value_name = "ORDER",
        default_value = "shuffled",
        conflicts_with = "no_shuffle",
        help_heading = "Order"
    )]
    admission: AdmissionArg,

    /// Accepted for those who come from a shuffle buffer, and ignored with a warning: see --episode-pool-size.
    #[arg(long, value_name = "FRAMES", help_heading = "Order")]
    buffer_size: Option<usize>,

    /// This process's rank, from 0. [default: RANK, SLURM_PROCID or OMPI_COMM_WORLD_RANK, else 0]
    #[arg(long, requires = "world_size", help_heading = "Consumer")]
    rank: Option<usize>,

    /// The number of ranks. [default: WORLD_SIZE, SLURM_NTASKS or OMPI_COMM_WORLD_SIZE, else 1]
    #[arg(
        long,
        value_name = "RANKS",
        requires = "rank",
        help_heading = "Consumer"
    )]
    world_size: Option<usize>,

    /// One of the rank's workers, from 0. [default: stream runs them all; look and plan take worker 0]
    #[arg(long, help_heading = "Consumer")]
    pub(crate) worker: Option<usize>,

    /// The number of workers of each rank; as in PyTorch, 0 is the main process alone.
    #[arg(
        long,
        value_name = "WORKERS",
        default_value_t = 0,
        help_heading = "Consumer"
    )]
    num_workers: usize,

    /// What ranks and workers share out among themselves.
    #[arg(
        long,
        value_enum,
        value_name = "UNIT",
        default_value = "episode",
        help_heading = "Consumer"
    )]
    shard_unit: ShardUnitArg,

    /// With --shard-unit file: the number of groups that data files are put in. [default: each file is one]
    #[arg(long, value_name = "SHARDS", help_heading = "Consumer")]
    max_num_shards: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

impl LoaderArgs {
    /// A builder with all these options set.
    pub(crate) fn builder(&self) -> Result<Builder, Error> {
        let mut builder = self
            .windows
            .apply(EpisodePool::builder(&self.path))?
            .drop_n_first_frames(self.drop_n_first_frames)
            .drop_n_last_frames(self.drop_n_last_frames)
            .episode_pool_size(self.episode_pool_size.get())
            .seed(self.seed)
            .shuffle(!self.no_shuffle)
            .admission(self.admission.into())
            .topology(self.topology()?)
            .shard_unit(self.shard_unit.into());
        if let Some(EpisodeList(episodes)) = &self.episodes {
            builder = builder.episodes(episodes.iter().copied());
        }
        if let Some(EpisodeList(episodes)) = &self.exclude_episodes {
            builder = builder.exclude_episodes(episodes.iter().copied());
        }
        if let Some(path) = &self.keep_ranges {
            builder = builder.keep_ranges_file(path);
        }
        if let Some(frames) = self.buffer_size {
            builder = builder.buffer_size(frames);
        }
        if let Some(shards) = self.max_num_shards {
            builder = builder.max_num_shards(shards.get());
        }
        Ok(self.remote.apply(builder))
    }

    /// The ranks as the options say, else as the environment does.
    fn topology(&self) -> Result<Topology, Error> {
        let ranks = match (self.rank, self.world_size) {
            (Some(rank), Some(world_size)) => Topology::new(rank, world_size, 0, 0),
            // One without the other is refused when the command line is parsed.
            _ => Topology::from_vars(|name| std::env::var(name).ok()),
        };
        ranks
            .and_then(|ranks| ranks.with_worker(self.worker.unwrap_or(0), self.num_workers))
            .map_err(Error::Topology)
    }
}

/// A part of a file's name.
#[derive(Debug, Clone)]
pub(crate) struct Label(pub(crate) String);

impl FromStr for Label {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if text.is_empty() || text.len() > 64 || !text.chars().all(is_plain) {
            return Err(
                "expected 1 to 64 letters, digits, `.`, `_` or `-`: it becomes part of file names",
            );
        }
        Ok(Self(text.to_owned()))
    }
}

/// How far a sample looks around its frame.
#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    /// Windows, from a JSON file that maps feature keys to seconds relative to the emitted frame:
    /// {"action": [0.0, 0.1, 0.2]}. [default: none, each feature at its own frame]
    #[arg(long, value_name = "FILE.json", help_heading = "Windows")]
    delta_timestamps: Option<PathBuf>,

    /// How far, in seconds, a delta may lie from a whole number of frames, and a video frame from its time.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1e-4,
        allow_negative_numbers = true,
        help_heading = "Windows"
    )]
    tolerance_s: f64,
}

impl WindowArgs {
    /// Sets these options.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, Error> {
        let builder = builder.tolerance_s(self.tolerance_s);
        Ok(match &self.delta_timestamps {
            Some(path) => builder.delta_timestamps(read_deltas(path)?),
            None => builder,
        })
    }
}

fn read_deltas(path: &Path) -> Result<BTreeMap<String, Vec<f64>>, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::ReadFile {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|source| Error::Deltas {
        path: path.to_owned(),
        source,
    })
}

/// Samples in a batch, the same default wherever batches are made.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// The number of samples in a batch.
    #[arg(long, value_name = "SAMPLES", default_value = "16")]
    batch_size: NonZeroUsize,
}

impl BatchArgs {
    pub(crate) fn size(&self) -> usize {
        self.batch_size.get()
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AdmissionArg {
    /// At random.
    Shuffled,
    /// Data file by data file, for --fetch files: the files at random, and at random within each.
    FileGrouped,
}

impl From<AdmissionArg> for Admission {
    fn from(admission: AdmissionArg) -> Self {
        match admission {
            AdmissionArg::Shuffled => Self::Shuffled,
            AdmissionArg::FileGrouped => Self::FileGrouped,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShardUnitArg {
    /// Whole episodes, in contiguous runs that are balanced by frames.
    Episode,
    /// Whole parquet files.
    File,
}

impl From<ShardUnitArg> for ShardUnit {
    fn from(unit: ShardUnitArg) -> Self {
        match unit {
            ShardUnitArg::Episode => Self::Episode,
            ShardUnitArg::File => Self::File,
        }
    }
}

/// No dataset has as many episodes: a longer list is a slip of the hand, and would only fill the memory.
const MAX_LISTED_EPISODES: usize = 10_000_000;

/// Episode numbers as a person writes them: `0,3,5-9`, ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EpisodeList(Vec<usize>);

impl FromStr for EpisodeList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut episodes = Vec::new();
        for part in text.split(',') {
            let number = |digits: &str| {
                digits.trim().parse::<usize>().map_err(|_error| {
                    format!("`{part}` is neither an episode's number nor a range such as 5-9")
                })
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(format!("the range `{part}` ends before it begins"));
            }
            if last - first >= MAX_LISTED_EPISODES - episodes.len() {
                return Err(format!(
                    "more than {MAX_LISTED_EPISODES} episodes are listed"
                ));
            }
            episodes.extend(first..=last);
        }
        Ok(Self(episodes))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn episode_lists_hold_numbers_and_ranges() {
        for (text, episodes) in [
            ("7", vec![7]),
            ("0,3,5-9", vec![0, 3, 5, 6, 7, 8, 9]),
            ("4-4", vec![4]),
            ("9, 2 - 3", vec![9, 2, 3]),
        ] {
            assert_eq!(text.parse(), Ok(EpisodeList(episodes)), "{text}");
        }
    }

    #[test]
    fn faulty_episode_lists_are_refused() {
        for (text, message) in [
            ("", "`` is neither an episode's number nor a range"),
            ("1,,2", "`` is neither"),
            ("one", "`one` is neither"),
            ("-3", "`-3` is neither"),
            ("9-5", "the range `9-5` ends before it begins"),
            ("0-18446744073709551615", "more than 10000000 episodes"),
            ("0-9999999,1", "more than 10000000 episodes"),
        ] {
            let error = text.parse::<EpisodeList>().unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn labels_fit_in_file_names() {
        for label in ["hub", "warmed_bucket", "s3-eu.1"] {
            assert_eq!(label.parse::<Label>().unwrap().0, label);
        }
        for label in ["", "a/b", "a b", "\u{e9}", "$x", &"x".repeat(65)] {
            assert!(label.parse::<Label>().is_err(), "{label}");
        }
    }
}
