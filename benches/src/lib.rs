//! Criterion benches of every layer; see `benches/README.md`.

#![forbid(unsafe_code)]
