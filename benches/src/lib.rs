//! Criterion benches of every layer; see `benches/README.md`.
