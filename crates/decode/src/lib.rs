#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod anatomy;
mod error;
mod frame;
mod limits;
mod video;

mod cpu;
mod decoder;
mod index;
mod mp4;
mod paint;
mod resize;
mod stream;
mod time;

mod cache;
mod capabilities;
pub mod image;

pub use anatomy::{Anatomy, Appearance, TopLevelBox};
pub use cache::{CacheStats, VideoCache};
pub use capabilities::{decoder_for, ffmpeg_version};
pub use decoder::{DecodeStats, Decoder, Picture, PicturePainter};
pub use error::{Error, FfmpegError};
pub use frame::{Kind, Layout, Pixels};
pub use resize::Size;
pub use stream::Encoded;
pub use video::{Media, Video, VideoInfo, VideoOptions};
