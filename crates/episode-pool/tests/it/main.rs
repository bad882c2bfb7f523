//! The crate's promises, through its public API.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod contracts;
mod decode_ahead;
mod earlier_loaders;
mod field_cases;
mod loader;
mod options;
mod parity;
#[cfg(feature = "remote")]
mod remote;
mod resuming;
mod support;
