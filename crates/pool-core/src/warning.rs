//! What is legal and yet probably not meant: typed, with the remedy in the message.

use std::fmt;

use crate::error::plural;
use crate::ownership::ShardUnit;

/// Something that a user should know before a run, and can change.
///
/// This crate only returns warnings. Whoever knows the user shows them, once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Some chosen episodes have no frame left once frames are dropped.
    EmptiedEpisodes {
        /// The episodes, in dataset order.
        episode_indices: Vec<usize>,
    },

    /// `max_num_shards` is given, and the shard unit makes no use of it.
    MaxNumShardsIgnored {
        /// The number given.
        max_num_shards: usize,
    },

    /// The shards cannot be dealt out to all ranks alike.
    ShardsNotDivisible {
        /// The number of data files, or of the groups that `max_num_shards` made of them.
        num_shards: usize,
        /// The number of ranks.
        world_size: usize,
    },

    /// Some consumers own nothing, since there are too few units to go round.
    IdleConsumers {
        /// What is dealt out.
        unit: ShardUnit,
        /// How many of those there are: selected episodes, or shards of data files.
        num_units: usize,
        /// The number of consumers that share them.
        num_consumers: usize,
        /// The number of consumers that own nothing.
        num_idle: usize,
    },

    /// One episode is over a third of a consumer's share, and the pool cannot hold the whole share: while that episode
    /// is resident, most emissions are its frames.
    DominantEpisode {
        /// The episode.
        episode_index: usize,
        /// Its frames.
        episode_frames: u64,
        /// The frames of the consumer's whole share.
        share_frames: u64,
        /// The episodes of the share: a pool of this size shuffles it perfectly.
        share_episodes: usize,
        /// The size of the pool.
        episode_pool_size: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptiedEpisodes { episode_indices } => {
                let count = episode_indices.len();
                let verb = if count == 1 { "emits" } else { "emit" };
                write!(
                    f,
                    "{count} chosen episode{} {verb} nothing (",
                    plural(count)
                )?;
                const SHOWN: usize = 8;
                for (i, episode_index) in episode_indices.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{episode_index}", if i == 0 { "" } else { ", " })?;
                }
                if count > SHOWN {
                    write!(f, " and {} more", count - SHOWN)?;
                }
                f.write_str(
                    "): no frame of theirs is left after drop_n_first_frames, drop_n_last_frames and keep_ranges; drop \
                     fewer frames to keep them",
                )
            }
            Self::MaxNumShardsIgnored { max_num_shards } => write!(
                f,
                "max_num_shards = {max_num_shards} has no effect, since episodes are shared out one by one; leave it \
                 out, or choose data files as the shard unit",
            ),
            Self::ShardsNotDivisible {
                num_shards,
                world_size,
            } => write!(
                f,
                "{num_shards} shard{} of data files cannot be dealt evenly to {world_size} ranks: some ranks get one \
                 more than others and end the epoch later; choose episodes as the shard unit, or a world_size that \
                 divides {num_shards}, or a max_num_shards that world_size divides",
                plural(*num_shards),
            ),
            Self::IdleConsumers {
                unit,
                num_units,
                num_consumers,
                num_idle,
            } => {
                let (units, remedy) = match unit {
                    ShardUnit::Episode => (
                        format!("{num_units} selected episode{}", plural(*num_units)),
                        "select more episodes",
                    ),
                    ShardUnit::File => (
                        format!("{num_units} shard{} of data files", plural(*num_units)),
                        "choose episodes as the shard unit",
                    ),
                };
                write!(
                    f,
                    "{num_idle} of {num_consumers} consumers (ranks times workers) own nothing and will emit nothing, \
                     since there are only {units}; use fewer workers or ranks, or {remedy}",
                )
            }
            Self::DominantEpisode {
                episode_index,
                episode_frames,
                share_frames,
                share_episodes,
                episode_pool_size,
            } => write!(
                f,
                "episode {episode_index} alone is {episode_frames} of this consumer's {share_frames} frames: while it \
                 is in the pool, and to the end of the epoch if it comes last, most samples are its own; raise \
                 episode_pool_size from {episode_pool_size} to {share_episodes} to shuffle the whole share at once, or \
                 leave the episode out",
            ),
        }
    }
}
