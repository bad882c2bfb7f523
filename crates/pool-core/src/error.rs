//! What can be wrong with a topology, a filter, a sharding or a plan's options.

use std::fmt;

use crate::limits::{MAX_EPISODE_FRAMES, MAX_EPISODES, MAX_FLEET, MAX_POOL_FRAMES};

/// Why an epoch cannot be planned. Everything here is known before any data is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no ranks.
    #[error("world_size is 0: a run has at least one rank")]
    NoRanks,

    /// A rank lies outside the world.
    #[error("rank {rank} is not below world_size {world_size}: ranks count from 0")]
    RankOutOfRange {
        /// The rank given.
        rank: usize,
        /// The number of ranks.
        world_size: usize,
    },

    /// A worker lies outside its rank's workers.
    #[error(
        "worker {worker} is not one of num_workers {num_workers}: workers count from 0, and without workers \
         the main process is worker 0"
    )]
    WorkerOutOfRange {
        /// The worker given.
        worker: usize,
        /// The number of workers of each rank.
        num_workers: usize,
    },

    /// The number of consumers cannot be counted.
    #[error(
        "world_size {world_size} times num_workers {num_workers} is more consumers than can be counted"
    )]
    TooManyConsumers {
        /// The number of ranks.
        world_size: usize,
        /// The number of workers of each rank.
        num_workers: usize,
    },

    /// There are too many consumers to work out what each owns.
    #[error(
        "there are {num_consumers} consumers; what each owns can be worked out for at most {MAX_FLEET}"
    )]
    FleetTooLarge {
        /// The number of consumers.
        num_consumers: usize,
    },

    /// What was emitted is not told for each consumer.
    #[error(
        "the frames emitted are given for {found} consumers, and there are {expected}: world_size times workers"
    )]
    ProgressOfOthers {
        /// The number of consumers they are given for.
        found: usize,
        /// The number of consumers.
        expected: usize,
    },

    /// One of two environment variables that belong together is missing.
    #[error(
        "the environment sets {set}={value} but not {missing}: set both, or neither, or give rank and world_size \
         explicitly"
    )]
    HalfSetEnvironment {
        /// The variable that is set.
        set: &'static str,
        /// Its value.
        value: String,
        /// The variable that is missing.
        missing: &'static str,
    },

    /// An environment variable should be a whole number and is not.
    #[error("the environment variable {variable} should be a whole number, found `{value}`")]
    NotANumber {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },

    /// The environment's rank lies outside the environment's world.
    #[error(
        "the environment sets {rank_variable}={rank} and {world_size_variable}={world_size}: the rank must be below \
         the world size"
    )]
    EnvironmentOutOfRange {
        /// The variable that holds the rank.
        rank_variable: &'static str,
        /// Its value.
        rank: usize,
        /// The variable that holds the number of ranks.
        world_size_variable: &'static str,
        /// Its value.
        world_size: usize,
    },

    /// Two parts of the environment tell different stories.
    #[error(
        "the environment contradicts itself: {one}, but {other}; set RANK and WORLD_SIZE, or give rank and world_size \
         explicitly"
    )]
    ContradictoryEnvironment {
        /// What one set of variables says.
        one: String,
        /// What the other set says.
        other: String,
    },

    /// The dataset lists an episode twice.
    #[error("the dataset lists episode {episode_index} more than once")]
    DuplicateEpisode {
        /// The episode.
        episode_index: usize,
    },

    /// The dataset has too many episodes.
    #[error("the dataset lists {num_episodes} episodes; at most {MAX_EPISODES} can be planned")]
    TooManyEpisodes {
        /// The number of episodes listed.
        num_episodes: usize,
    },

    /// An episode has too many frames.
    #[error(
        "episode {episode_index} has {length} frames; at most {MAX_EPISODE_FRAMES} can be planned"
    )]
    EpisodeTooLong {
        /// The episode.
        episode_index: usize,
        /// Its length in frames.
        length: usize,
    },

    /// A filter names an episode that the dataset does not have.
    #[error(
        "{option} names episode {episode_index}, which the dataset does not have: it has {known}"
    )]
    UnknownEpisode {
        /// The option of the filter: `episodes`, `exclude_episodes` or `keep_ranges`.
        option: &'static str,
        /// The episode named.
        episode_index: usize,
        /// The episodes that can be named.
        known: KnownEpisodes,
    },

    /// A filter names an episode twice.
    #[error(
        "{option} names episode {episode_index} more than once: name each episode once; the dataset has {known}"
    )]
    RepeatedEpisode {
        /// The option of the filter: `episodes` or `exclude_episodes`.
        option: &'static str,
        /// The episode named twice.
        episode_index: usize,
        /// The episodes that can be named.
        known: KnownEpisodes,
    },

    /// A range of frames to keep does not lie in its episode, or holds no frame.
    #[error(
        "keep_ranges of episode {episode_index} hold {start}..{end}, which is no part of its frames 0..{length}: a \
         range starts below its end, and ends at {length} or before"
    )]
    InvalidRange {
        /// The episode.
        episode_index: usize,
        /// The first frame to keep.
        start: usize,
        /// One past the last frame to keep.
        end: usize,
        /// The episode's length in frames.
        length: usize,
    },

    /// No frame is left to emit.
    #[error(
        "no frame is selected: of {num_episodes} episodes {num_chosen} pass `episodes` and `exclude_episodes`, and \
         drop_n_first_frames, drop_n_last_frames and keep_ranges leave none of their frames; loosen the filter"
    )]
    NothingSelected {
        /// The number of episodes in the dataset.
        num_episodes: usize,
        /// The number that the choice of episodes lets pass.
        num_chosen: usize,
    },

    /// Files should be grouped into no shards.
    #[error("max_num_shards is 0: give 1 or more, or leave it out to make every data file a shard")]
    NoShards,

    /// The pool should hold no episodes.
    #[error("episode_pool_size is 0: the pool has to hold at least one episode")]
    EmptyPool,

    /// The pool could hold too many frames.
    #[error(
        "a pool of {num_episodes} episodes could hold {num_frames} frames; at most {MAX_POOL_FRAMES} are possible, so \
         lower episode_pool_size"
    )]
    PoolTooLarge {
        /// The number of episodes that the pool would hold.
        num_episodes: usize,
        /// The frames of the longest that many episodes.
        num_frames: u64,
    },
}

/// The episode numbers that a dataset has, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownEpisodes {
    /// The number of episodes.
    pub count: usize,
    /// The lowest episode number.
    pub first: usize,
    /// The highest episode number.
    pub last: usize,
}

impl fmt::Display for KnownEpisodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, first, last } = *self;
        if count == 0 {
            return f.write_str("no episodes");
        }
        let gaps = if last - first == count - 1 {
            ""
        } else {
            ", with gaps"
        };
        write!(
            f,
            "{count} episode{}, numbered {first} to {last}{gaps}",
            plural(count)
        )
    }
}

/// The ending that makes a regular noun agree with a count.
pub(crate) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
