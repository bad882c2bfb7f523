//! The promises of `resume`, through its public API.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on stops where it stands"
)]

mod arithmetic;
mod contracts;
mod fleet;
