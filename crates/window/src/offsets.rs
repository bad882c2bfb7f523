//! Seconds to whole frames.

use crate::error::{DeltaFault, Error, InvalidDelta};

/// How far a delta may lie from a whole frame unless told otherwise, in seconds: lerobot's default.
pub const DEFAULT_TOLERANCE_S: f64 = 1e-4;

/// The largest distance in frames: up to here every whole number is an `f64`.
const MAX_FRAMES: f64 = 9_007_199_254_740_992.0; // 2^53

/// The steps of one key's window, as frames relative to the present one.
///
/// - There is at least one step.
/// - Steps keep the order in which they were given; they may repeat and need not be sorted.
/// - Every step is at most 2^53 frames away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets(Box<[i64]>);

impl Offsets {
    /// Converts `deltas_s`, the window of `key` in seconds, to whole frames at `fps` frames per second.
    ///
    /// A delta becomes `round(delta_s * fps)`, halves to even. As in lerobot 0.6.1 it is refused where
    /// `|delta_s * fps - round(delta_s * fps)| / fps` exceeds `tolerance_s`. `key` serves the error messages.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidFps`] unless `fps` is positive and finite.
    /// - [`Error::InvalidTolerance`] unless `tolerance_s` is finite and at least 0.
    /// - [`Error::NoDeltas`] if `deltas_s` is empty.
    /// - [`Error::InvalidDeltas`] if any delta is NaN, infinite, more than 2^53 frames away, or farther than
    ///   `tolerance_s` from a whole frame. It lists all of them, each with the nearest delta that would do.
    ///
    /// # Examples
    ///
    /// ```
    /// use window::{DEFAULT_TOLERANCE_S, Error, Offsets};
    ///
    /// // 0.033 s is a frame of 30 fps written down too roughly: off by a third of a millisecond.
    /// let error = Offsets::from_seconds("action", &[0.0, 0.033], 30.0, DEFAULT_TOLERANCE_S).unwrap_err();
    /// assert!(matches!(&error, Error::InvalidDeltas { deltas, .. } if deltas.len() == 1));
    ///
    /// let offsets = Offsets::from_seconds("action", &[0.0, 0.033], 30.0, 1e-3)?;
    /// assert_eq!(offsets.as_slice(), [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn from_seconds(
        key: &str,
        deltas_s: &[f64],
        fps: f64,
        tolerance_s: f64,
    ) -> Result<Self, Error> {
        check_scale(fps, tolerance_s)?;
        if deltas_s.is_empty() {
            return Err(Error::NoDeltas {
                key: key.to_owned(),
            });
        }

        let mut frames = Vec::with_capacity(deltas_s.len());
        let mut invalid = Vec::new();
        for (position, &delta_s) in deltas_s.iter().enumerate() {
            match whole_frames(delta_s, fps, tolerance_s) {
                Ok(n) => frames.push(n),
                Err(fault) => invalid.push(InvalidDelta {
                    position,
                    delta_s,
                    fault,
                }),
            }
        }
        if invalid.is_empty() {
            Ok(Self(frames.into_boxed_slice()))
        } else {
            Err(Error::InvalidDeltas {
                key: key.to_owned(),
                fps,
                tolerance_s,
                deltas: invalid,
            })
        }
    }

    /// The steps, in frames relative to the present one.
    pub fn as_slice(&self) -> &[i64] {
        &self.0
    }

    /// The number of steps, `T` in a window's shape `[T, ...]`; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a window is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Checks the two numbers that all keys share.
pub(crate) fn check_scale(fps: f64, tolerance_s: f64) -> Result<(), Error> {
    if !(fps.is_finite() && fps > 0.0) {
        return Err(Error::InvalidFps { fps });
    }
    if !(tolerance_s.is_finite() && tolerance_s >= 0.0) {
        return Err(Error::InvalidTolerance { tolerance_s });
    }
    Ok(())
}

fn whole_frames(delta_s: f64, fps: f64, tolerance_s: f64) -> Result<i64, DeltaFault> {
    if !delta_s.is_finite() {
        return Err(DeltaFault::NotFinite);
    }
    let exact = delta_s * fps;
    let frames = exact.round_ties_even();
    if frames.abs() > MAX_FRAMES {
        return Err(DeltaFault::TooFar);
    }
    if (exact - frames).abs() / fps > tolerance_s {
        return Err(DeltaFault::BetweenFrames {
            nearest_s: frames / fps,
        });
    }
    Ok(frames as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_to_even_as_in_python() {
        // Python: [round(x) for x in (0.5, 1.5, 2.5, -0.5, -1.5)] == [0, 2, 2, 0, -2]
        let frames = [0.5, 1.5, 2.5, -0.5, -1.5].map(|delta_s| whole_frames(delta_s, 1.0, 0.5));
        assert_eq!(frames, [Ok(0), Ok(2), Ok(2), Ok(0), Ok(-2)]);
    }

    #[test]
    fn the_tolerance_is_in_seconds_and_inclusive() {
        // 1/64 s off at 1 fps, exact in binary.
        assert_eq!(whole_frames(1.015625, 1.0, 0.015625), Ok(1));
        assert_eq!(
            whole_frames(1.015625, 1.0, 0.015624),
            Err(DeltaFault::BetweenFrames { nearest_s: 1.0 })
        );
        // A hundredth of a frame at 100 fps is a tenth of a millisecond.
        assert_eq!(whole_frames(0.03009, 100.0, 1e-4), Ok(3));
        assert_eq!(
            whole_frames(0.03011, 100.0, 1e-4),
            Err(DeltaFault::BetweenFrames { nearest_s: 0.03 })
        );
    }

    #[test]
    fn a_distance_that_cannot_be_counted_is_too_far() {
        assert_eq!(whole_frames(MAX_FRAMES, 1.0, 0.0), Ok(1 << 53));
        assert_eq!(whole_frames(-MAX_FRAMES, 1.0, 0.0), Ok(-(1 << 53)));
        assert_eq!(
            whole_frames(MAX_FRAMES + 2.0, 1.0, 0.0),
            Err(DeltaFault::TooFar)
        );
        // The product overflows to infinity.
        assert_eq!(
            whole_frames(f64::MAX, f64::MAX, 0.0),
            Err(DeltaFault::TooFar)
        );
        assert_eq!(whole_frames(f64::MIN, 30.0, 0.0), Err(DeltaFault::TooFar));
    }
}
