#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod key;
mod source;

pub use error::Error;
pub use source::{Reader, Source};
