//! What the fuzz targets call, one module for each crate under test.
//!
//! The crates' own tests include these files to replay what was found, so a module names nothing of this crate.

#![forbid(unsafe_code)]

pub mod deltas;
pub mod packets;
pub mod tables;
