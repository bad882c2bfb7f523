//! The contracts, as functions to run on your own episode lengths.
//!
//! Each function plans whole epochs, for all consumers of a [`Setup`], and checks one promise of the crate. They need the
//! feature `contracts`, are meant for tests, and take a time and a memory in proportion to frames times consumers.
//!
//! # Examples
//!
//! ```
//! use pool_core::contracts::{self, Setup};
//!
//! // Two ranks with three workers each.
//! let mut setup = Setup::new(&[120, 80, 1, 95, 230, 17, 60], 2, 3);
//! setup.options.episode_pool_size = 2;
//! contracts::exactly_once(&setup)?;
//! contracts::resume_equals_suffix(&setup)?;
//! // ... that one rank with five workers goes on with.
//! contracts::elastic_covers_once(&setup, &[(1, 5)])?;
//! # Ok::<(), contracts::Violation>(())
//! ```

mod cover;
mod elastic;
mod order;
mod reader;
mod setup;
mod uniform;

pub use cover::{exactly_once, pool_is_bounded};
pub use elastic::elastic_covers_once;
pub use order::{
    consumers_decorrelate, epochs_reshuffle, order_is_a_function, resume_equals_suffix,
};
pub use setup::{Setup, Violation};
pub use uniform::uniform_over_the_pool;
