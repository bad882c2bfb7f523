#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(feature = "remote")]
mod cache;
mod cache_options;
mod error;
mod key;
mod local;
mod location;
mod options;
#[cfg(feature = "remote")]
mod remote;
mod source;

#[cfg(feature = "remote")]
pub use cache::{CacheStats, FetchThreads, Fetcher, Lease};
pub use cache_options::CacheOptions;
pub use error::Error;
pub use options::{FetchStats, SourceOptions};
#[cfg(feature = "remote")]
pub use remote::IndexWriter;
pub use source::{Reader, Source};
