#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod fleet;
mod position;
mod rotation;
mod state;

pub use error::Error;
pub use fleet::{Batching, EpochEnd, Fleet, Turn, Turns};
pub use position::Position;
pub use rotation::batches_per_epoch;
pub use state::State;
