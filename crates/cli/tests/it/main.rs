//! The program, run as a user runs it: each test in a fresh directory, with its whole output.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod bench;
mod diagnose;
mod distributed;
mod errors;
mod info;
mod look;
mod plan;
mod remote;
mod resuming;
mod sample;
mod stream;
mod workplace;
