//! Crate root of `pool-core`.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(feature = "contracts")]
pub mod contracts;
mod coverage;
mod draw;
mod environment;
mod ownership;
mod plan;
mod pool;
mod seed;
mod selection;
mod topology;

mod error;
mod limits;
mod warning;
pub use coverage::{Coverage, CoverageReport, ParseCoverageError};
pub use error::{Error, KnownEpisodes};
pub use limits::{MAX_EPISODE_FRAMES, MAX_POOL_FRAMES};
pub use ownership::{ShardUnit, Sharding, Share};
pub use plan::{Emission, Plan, PlanOptions, Step};
pub use seed::emission_seed;
pub use selection::{EpisodeInfo, Filter, SelectedEpisode, Selection};
pub use topology::Topology;
pub use warning::Warning;
