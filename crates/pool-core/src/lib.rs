//! Crate root of `pool-core`.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

// Who asks.
mod environment;
mod topology;

// What is emitted, and who owns it.
mod ownership;
mod selection;

// In which order, and out of what.
mod chapters;
mod draw;
mod plan;
mod pool;
mod seed;

// And the proof.
#[cfg(feature = "contracts")]
pub mod contracts;
mod coverage;

mod error;
mod limits;
mod warning;

pub use coverage::{Coverage, CoverageReport, ParseCoverageError};
pub use error::{Error, KnownEpisodes};
pub use limits::{MAX_EPISODE_FRAMES, MAX_POOL_FRAMES};
pub use ownership::{ShardUnit, Sharding, Share};
pub use plan::{Admission, Emission, Plan, PlanOptions, Step};
pub use seed::emission_seed;
pub use selection::{EpisodeInfo, Filter, Progress, SelectedEpisode, Selection};
pub use topology::Topology;
pub use warning::Warning;
