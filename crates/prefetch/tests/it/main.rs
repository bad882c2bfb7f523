//! The crate's promises, through its public API.

mod local;
