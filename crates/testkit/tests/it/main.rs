//! The tests' own tools, tested.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on stops where it stands"
)]

mod code;
mod fixtures;
mod written;
