#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod key;
mod local;
mod location;
mod options;
#[cfg(feature = "remote")]
mod remote;
mod source;

pub use error::Error;
pub use options::{FetchStats, SourceOptions};
pub use source::{Reader, Source};
