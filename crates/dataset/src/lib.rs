#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod metadata;
mod info;
mod episodes;
mod tasks;
mod stats;
mod data_file;
mod rows;
mod storage;
mod warning;
mod error;
mod limits;

mod convert;
mod damage;
mod intervals;
mod names;
mod parquet;
mod template;

pub use data_file::DataFile;
pub use episodes::{Episode, VideoSpan};
pub use error::{Damage, Error};
pub use info::{DType, Feature, Info, PictureSize};
pub use metadata::{Metadata, Reader};
pub use rows::{Blobs, Column, EpisodeRows, Strings, Values};
pub use stats::Stats;
pub use storage::{ReadSeek, Storage};
pub use tasks::Tasks;
pub use warning::Warning;
