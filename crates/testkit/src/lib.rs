#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod code;
pub mod fixtures;
pub mod nginx;
pub mod picture;
#[cfg(feature = "s3")]
pub mod s3;
pub mod server;
pub mod slurm;
pub mod video;

mod camera;
mod columns;
mod dataset;
mod layout;
mod meta;
mod spec;
mod table;

pub use camera::{Camera, CameraKind, FromTimestamp, ToTimestamp};
pub use code::Code;
pub use dataset::Dataset;
pub use fixtures::{FIXTURES, Truth, TruthItem, fixtures};
pub use layout::{Row, Segment, Split};
pub use picture::{RgbImage, read_png};
pub use spec::{Declared, Dtype, Feature, Fps, RowGroups, Spec, Storage, Tasks};
pub use table::{Compression, PageVersion, ParquetOptions, TextType};
