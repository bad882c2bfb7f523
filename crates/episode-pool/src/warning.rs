//! What a user should know and may ignore.

use std::fmt;
use std::path::PathBuf;

use crate::state_dict::{Difference, listed};

/// Something that works, but perhaps not as meant. Each is logged once through `tracing` when the pool is built.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// About the dataset's files.
    Dataset(dataset::Warning),
    /// About what is selected, who owns it, and how well it mixes.
    Planning(pool_core::Warning),
    /// `buffer_size` was given, and has no effect here.
    BufferSizeIgnored {
        /// The value given.
        buffer_size: usize,
        /// The pool's size, which took its place.
        episode_pool_size: usize,
    },
    /// An index of the dataset's files was found and is of no use.
    IndexNotUsed {
        /// The index's file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Ranks take different numbers of batches in an epoch, and `epoch_end` is exact.
    UnevenRanks {
        /// A rank with the fewest.
        fewest_rank: usize,
        /// Its batches.
        fewest: u64,
        /// A rank with the most.
        most_rank: usize,
        /// Its batches.
        most: u64,
    },
    /// So that all ranks end an epoch together, some frames are left out of each.
    TailDropped {
        /// The frames left out, over all ranks.
        frames: u64,
        /// The frames of an epoch.
        of: u64,
    },
    /// So that all ranks end an epoch together, some samples come again in each.
    TailRepeated {
        /// The samples that come again, over all ranks.
        samples: u64,
        /// The frames of an epoch.
        of: u64,
    },
    /// What was left of an epoch was too little for all ranks to end together, and is left out.
    RestLeftOut {
        /// The epoch.
        epoch: u64,
        /// The frames left out.
        frames: u64,
    },
    /// A state was loaded that was saved with other options.
    StateDiffers {
        /// The differences.
        differences: Vec<Difference>,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dataset(warning) => warning.fmt(f),
            Self::Planning(warning) => warning.fmt(f),
            Self::BufferSizeIgnored {
                buffer_size,
                episode_pool_size,
            } => write!(
                f,
                "`buffer_size` = {buffer_size} has no effect: frames are drawn from a pool of {episode_pool_size} whole \
                 episodes; set `episode_pool_size` instead"
            ),
            Self::IndexNotUsed { path, reason } => write!(
                f,
                "the index `{}` is not used, and each file is asked for its header: {reason}; make it anew with `episode-pool index`",
                path.display()
            ),
            Self::UnevenRanks {
                fewest_rank,
                fewest,
                most_rank,
                most,
            } => write!(
                f,
                "ranks take different numbers of batches in an epoch: rank {fewest_rank} {fewest}, rank {most_rank} {most}; a trainer \
                 whose ranks wait for each other hangs at the epoch's end; set `epoch_end` to drop_tail or wrap"
            ),
            Self::TailDropped { frames, of } => write!(
                f,
                "every epoch leaves out {frames} of {of} frames, so that all ranks take equally many batches (epoch_end drop_tail)"
            ),
            Self::TailRepeated { samples, of } => write!(
                f,
                "every epoch repeats {samples} samples beside its {of} frames, so that all ranks take equally many batches (epoch_end \
                 wrap)"
            ),
            Self::RestLeftOut { epoch, frames } => write!(
                f,
                "the last {frames} frames of epoch {epoch} are left out: they are too few for all ranks to end the epoch together"
            ),
            Self::StateDiffers { differences } => write!(
                f,
                "the saved state is of a run with other options, and what is left of its epoch is shared out anew: {}",
                listed(differences)
            ),
        }
    }
}
