//! What this crate promises, seen from outside.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod memory;
mod small;

mod corrupt;
mod episodes;
mod files;
mod folder;
mod found;
#[cfg(feature = "arrow2")]
mod fuzzed;
mod info;
mod parity;
#[cfg(feature = "arrow2")]
mod readers;
mod rows;
mod tasks;
mod values;
mod videos;
