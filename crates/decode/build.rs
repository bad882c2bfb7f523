//! Checks that the FFmpeg that `rusty_ffmpeg` has bound is one that this crate is written for.
fn main() {}
