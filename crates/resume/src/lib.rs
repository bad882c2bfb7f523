#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod position;
mod rotation;
mod state;

pub use error::Error;
pub use position::Position;
pub use rotation::batches_per_epoch;
pub use state::State;
