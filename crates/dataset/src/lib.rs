#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod data_file;
mod episodes;
mod error;
mod folder;
mod info;
mod limits;
mod metadata;
mod rows;
mod stats;
mod storage;
mod tasks;
mod warning;

mod convert;
mod damage;
mod intervals;
mod names;
mod parquet;
mod table;
mod template;

pub use data_file::DataFile;
pub use episodes::{Episode, VideoSpan};
pub use error::{Damage, Error};
pub use folder::Folder;
pub use info::{DType, Feature, Info, PictureSize};
pub use metadata::{Metadata, Reader};
pub use rows::{Blobs, Column, EpisodeRows, Strings, Values};
pub use stats::Stats;
pub use storage::{ReadSeek, Storage};
pub use tasks::Tasks;
pub use warning::Warning;
