//! The crate's promises, through its public API.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod local;
