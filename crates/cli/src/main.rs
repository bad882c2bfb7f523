//! The `episode-pool` program.

fn main() {}
