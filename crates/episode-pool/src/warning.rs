//! What a user should know and may ignore.

use std::fmt;

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
        }
    }
}
