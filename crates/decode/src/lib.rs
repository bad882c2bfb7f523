#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod error;
mod frame;
mod limits;
mod video;

mod cpu;
mod index;
mod time;

mod decoders;
pub mod image;

pub use decoders::{CacheStats, DecoderCache};
pub use error::{Error, FfmpegError};
pub use frame::{Kind, Layout, Pixels};
pub use video::{Media, Video, VideoInfo, VideoOptions};
