//! Ticks and seconds: two types that never mix.

use crate::error::{Error, Place};

/// How far two times may differ by floating-point rounding alone: 1 ns, far below any frame interval and far above the errors of
/// sums of `f64` seconds. A distance is within a tolerance when it exceeds it by no more than this, so that exactly the tolerance
/// is within it however the sum came out.
const ROUNDING_S: f64 = 1e-9;

/// The length of one tick: `num / den` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeBase {
    num: u32,
    den: u32,
}

impl TimeBase {
    /// None unless both numbers are positive.
    pub(crate) fn new(num: i32, den: i32) -> Option<Self> {
        match (u32::try_from(num), u32::try_from(den)) {
            (Ok(num @ 1..), Ok(den @ 1..)) => Some(Self { num, den }),
            _ => None,
        }
    }

    /// A tick count as seconds. Exact to a rounding error up to 2^53 ticks, which is 285,000 years at a microsecond.
    pub(crate) fn seconds(self, ticks: i64) -> f64 {
        ticks as f64 * f64::from(self.num) / f64::from(self.den)
    }
}

/// Whether `distance_s` is at most `tolerance_s`, rounding errors forgiven.
pub(crate) fn is_within(distance_s: f64, tolerance_s: f64) -> bool {
    distance_s <= tolerance_s + ROUNDING_S
}

/// Refuses a tolerance that is negative or no finite number.
pub(crate) fn check_tolerance(tolerance_s: f64, place: &Place) -> Result<(), Error> {
    if tolerance_s.is_finite() && tolerance_s >= 0.0 {
        Ok(())
    } else {
        Err(place.invalid_time("tolerance_s", tolerance_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_base_is_positive() {
        assert_eq!(TimeBase::new(1, 0), None);
        assert_eq!(TimeBase::new(0, 1), None);
        assert_eq!(TimeBase::new(-1, 30), None);
        assert_eq!(
            TimeBase::new(1001, 30_000).map(|base| base.seconds(30_000)),
            Some(1001.0)
        );
        assert_eq!(
            TimeBase::new(1, 15_360).map(|base| base.seconds(-512)),
            Some(-1.0 / 30.0)
        );
    }

    #[test]
    fn half_a_frame_is_within_half_a_frame() {
        for fps in [10.0, 15.0, 30.0, 30_000.0 / 1001.0, 50.0] {
            for frame in 0..10_000 {
                let (pts_s, wanted_s) = (f64::from(frame) / fps, (f64::from(frame) + 0.5) / fps);
                assert!(
                    is_within((wanted_s - pts_s).abs(), 0.5 / fps),
                    "{frame} at {fps}"
                );
            }
        }
        assert!(!is_within(1.0 / 60.0 + 1e-6, 1.0 / 60.0));
    }
}
