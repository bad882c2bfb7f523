//! The extension module `episode_pool._episode_pool`: thin handles on the library, which the Python sources in `python/` build on.

#![forbid(unsafe_code)]

mod array;
mod error;
mod loader;
mod normalize;
mod options;
mod pool;
mod process;
mod samples;
mod waiting;

use pyo3::prelude::*;

/// Streams LeRobotDataset v3: the part in Rust.
#[pymodule]
mod _episode_pool {
    #[pymodule_export]
    use crate::loader::{BatchIter, Loader};
    #[pymodule_export]
    use crate::pool::Pool;
    #[pymodule_export]
    use crate::samples::SampleIter;
}
