//! The crate's promises, through its public API.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[cfg(feature = "remote")]
mod cache;
#[cfg(feature = "remote")]
mod http;
#[cfg(feature = "hub")]
mod hub;
mod local;
#[cfg(feature = "remote")]
mod servers;
#[cfg(feature = "remote")]
mod support;
