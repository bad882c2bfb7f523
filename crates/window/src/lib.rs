#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod clamp;
mod delta_timestamps;
mod error;
mod offsets;

pub use clamp::Run;
pub use delta_timestamps::DeltaTimestamps;
pub use error::{DeltaFault, Error, InvalidDelta};
pub use offsets::{DEFAULT_TOLERANCE_S, Offsets};
