//! Errors as Python's own exceptions, which cross from worker processes unharmed.

use std::error::Error as _;

use episode_pool::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyOSError, PyRuntimeError, PyValueError};

/// The exception for an error: the same words, and those of what caused it.
pub(crate) fn to_python(error: &Error) -> PyErr {
    let message = chain(error);
    match error {
        Error::NoSuchFrame { .. } => PyIndexError::new_err(message),
        Error::Source(_) | Error::KeepRangesFile { .. } => PyOSError::new_err(message),
        Error::BatchTooLarge { .. }
        | Error::CameraShape { .. }
        | Error::DeltaTimestamps(_)
        | Error::KeepRanges { .. }
        | Error::NothingToEmit { .. }
        | Error::Option { .. }
        | Error::Plan(_)
        | Error::Resume(_)
        | Error::SampleTooLarge { .. }
        | Error::State { .. }
        | Error::StateDiffers { .. } => PyValueError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some libraries repeat their cause in their own message.
        if !last.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        last = next;
        cause = error.source();
    }
    text
}
