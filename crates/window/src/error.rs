//! What can be wrong with delta_timestamps.

use std::fmt;

/// Why delta_timestamps cannot be used with a dataset.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The frame rate is not a positive, finite number.
    #[error("delta_timestamps need a frame rate that is positive and finite, found fps = {fps}")]
    InvalidFps {
        /// The frame rate given, in frames per second.
        fps: f64,
    },

    /// The tolerance is negative or not finite.
    #[error(
        "the tolerance of delta_timestamps must be zero or more and finite, found {tolerance_s} s"
    )]
    InvalidTolerance {
        /// The tolerance given, in seconds.
        tolerance_s: f64,
    },

    /// A key has an empty list of deltas.
    #[error(
        "delta_timestamps of `{key}` are an empty list: give at least one delta, or leave the key out"
    )]
    NoDeltas {
        /// The key whose list is empty.
        key: String,
    },

    /// Some deltas of a key are no whole number of frames.
    #[error(
        "delta_timestamps of `{key}` must be whole frames at {fps} fps, within {tolerance_s} s: {}",
        Listed(deltas, "; ")
    )]
    InvalidDeltas {
        /// The key that the deltas belong to.
        key: String,
        /// The dataset's frame rate, in frames per second.
        fps: f64,
        /// How far a delta may lie from a whole frame, in seconds.
        tolerance_s: f64,
        /// Every delta at fault, in the order of the list.
        deltas: Vec<InvalidDelta>,
    },

    /// A key is not one of the dataset's.
    #[error(
        "delta_timestamps name `{key}`, which is no feature of the dataset; its features are {}",
        Quoted(known)
    )]
    UnknownKey {
        /// The key that is not known.
        key: String,
        /// The keys that are, in the order given.
        known: Vec<String>,
    },

    /// Several keys are at fault.
    #[error("{} keys of delta_timestamps are at fault:\n- {}", errors.len(), Listed(errors, "\n- "))]
    Several {
        /// One error for each key at fault, in the order of the keys.
        errors: Vec<Error>,
    },
}

/// One delta that cannot be used, as [`Error::InvalidDeltas`] lists it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InvalidDelta {
    /// Its position in the key's list.
    pub position: usize,
    /// The delta, in seconds.
    pub delta_s: f64,
    /// What is wrong with it.
    pub fault: DeltaFault,
}

impl fmt::Display for InvalidDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            position,
            delta_s,
            fault,
        } = self;
        write!(f, "{delta_s} s (position {position}) ")?;
        match fault {
            DeltaFault::NotFinite => write!(f, "is not a finite number"),
            DeltaFault::TooFar => write!(f, "is more frames away than can be counted exactly"),
            DeltaFault::BetweenFrames { nearest_s } => {
                write!(f, "lies between frames, the nearest is {nearest_s} s")
            }
        }
    }
}

/// What is wrong with a delta.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum DeltaFault {
    /// It is NaN or infinite.
    NotFinite,
    /// It is more than 2^53 frames away, beyond which a float skips whole numbers.
    TooFar,
    /// It differs from every whole number of frames by more than the tolerance.
    BetweenFrames {
        /// The nearest delta that is a whole number of frames, in seconds.
        nearest_s: f64,
    },
}

/// Shows items one after the other with a separator between.
struct Listed<'a, T>(&'a [T], &'static str);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { self.1 };
            write!(f, "{separator}{item}")?;
        }
        Ok(())
    }
}

/// Shows names in backticks, with commas between.
struct Quoted<'a>(&'a [String]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, name) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}`{name}`")?;
        }
        Ok(())
    }
}
