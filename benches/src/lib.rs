//! Criterion benches of every layer, and the limit that they are held against; see `benches/README.md`.

#![forbid(unsafe_code)]

pub mod limit;
