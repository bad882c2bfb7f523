//! The commands for SLURM, run as a user runs them, on a SLURM of one node that each test brings up for itself.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod chain;
mod program;
mod refusals;
mod script;
mod templates;
mod workplace;
