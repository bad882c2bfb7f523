#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod future;
mod held;
mod scheduler;

pub use scheduler::{FrameId, Gop, Pass, Scheduled, Scheduler, Wanted};
