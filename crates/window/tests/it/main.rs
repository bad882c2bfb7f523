//! The promises of `window`, through its public API.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on stops where it stands"
)]

mod clamped;
mod fuzzed;
mod messages;
