//! What `decode` promises, through its public interface.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod cache;
mod clips;
mod clock;
mod color;
mod corrupt;
mod depth;
mod fuzzed;
mod images;
mod io;
mod parity;
mod random_access;
mod resize;
