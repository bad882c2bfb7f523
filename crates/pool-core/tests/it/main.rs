//! What the crate promises, through its public interface.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod contracts;
mod coverage;
mod golden;
mod mixing;
mod ownership;
mod plan;
mod selection;
mod setups;
mod topology;
