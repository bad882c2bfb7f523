//! What `lookahead` promises, through its public interface.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod contracts;
