//! Percentiles of what was measured.

/// Measured values, in order of size.
#[derive(Debug)]
pub(crate) struct Percentiles(Vec<f64>);

impl Percentiles {
    /// Sorts the values.
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The smallest value that at least `percent` percent of all do not exceed (the nearest rank); `None` of no values.
    ///
    /// Of 1, 2, 3 and 4, the 50th percentile is 2, and the 51st is 3.
    pub(crate) fn at(&self, percent: usize) -> Option<f64> {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let four = Percentiles::new(vec![3.0, 1.0, 4.0, 2.0]);
        for (percent, expected) in [
            (0, 1.0),
            (25, 1.0),
            (26, 2.0),
            (50, 2.0),
            (51, 3.0),
            (99, 4.0),
            (100, 4.0),
        ] {
            assert_eq!(four.at(percent), Some(expected), "p{percent}");
        }
        assert_eq!(Percentiles::new(vec![7.0]).at(50), Some(7.0));
        assert_eq!(Percentiles::new(vec![]).at(50), None);
    }
}
