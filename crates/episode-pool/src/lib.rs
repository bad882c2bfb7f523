#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod ahead;
mod array;
mod batch;
mod builder;
mod epoch;
mod error;
mod loader;
mod pool;
mod sample;
mod schema;
mod state_dict;
mod warning;

mod assemble;
mod cameras;
mod columns;
mod course;
mod data_files;
#[cfg(feature = "remote")]
mod fetch;
#[cfg(not(feature = "remote"))]
#[path = "no_fetch.rs"]
mod fetch;
mod fetch_report;
#[cfg(feature = "remote")]
mod index;
mod keep_ranges;
mod leg;
mod resident;
mod storage;

pub use ahead::DecodeReport;
pub use array::{Array, ArrayData, ElementType};
pub use batch::{Batch, Batches};
pub use builder::{Builder, Fetch, FrameType, OnFetchError, Options};
pub use epoch::{Epoch, EpochReport};
pub use error::Error;
pub use fetch_report::{FetchReport, FetchTotals, LeftOut};
#[cfg(feature = "remote")]
pub use index::IndexReport;
pub use loader::{Loader, LoaderEpoch, LoaderOptions, NotYet, WorkerTimes};
pub use pool::EpisodePool;
pub use sample::{Fields, Sample};
pub use schema::Field;
pub use state_dict::{Difference, StateDict};
pub use warning::Warning;

pub use dataset;
pub use decode;
pub use lookahead;
pub use pool_core;
pub use prefetch;
pub use resume;
pub use window;
