//! Values brought to the scale that a policy learns from: with the dataset's statistics, in place.

use std::collections::BTreeMap;

use episode_pool::{Array, ArrayData};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What to do with each field: `(value - shift) / divisor + offset`.
pub(crate) type Scales = BTreeMap<String, Scale>;

/// One field's numbers.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Scale {
    shift: Vec<f32>,
    divisor: Vec<f32>,
    offset: f32,
    /// How many values in a row have the same numbers: a picture's pixels, for the numbers of a channel.
    run: usize,
}

impl Scale {
    /// An error unless the numbers fit a sample of so many elements.
    pub(crate) fn check(&self, key: &str, elements: usize) -> PyResult<()> {
        let period = self.shift.len().checked_mul(self.run);
        let fits = period.is_some_and(|period| period > 0 && elements.is_multiple_of(period));
        if fits && self.shift.len() == self.divisor.len() {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "the statistics of `{key}` have {} numbers, which do not fit a sample of {elements}",
            self.shift.len()
        )))
    }

    /// Scales single-precision floats; whatever else there is stays as it is.
    pub(crate) fn apply(&self, array: Array) -> Array {
        let shape = array.shape().to_vec();
        let data = match array.into_data() {
            ArrayData::F32(mut values) => {
                let period = self.shift.len() * self.run;
                for row in values.chunks_mut(period) {
                    let numbers = self.shift.iter().zip(&self.divisor);
                    for (run, (shift, divisor)) in row.chunks_mut(self.run).zip(numbers) {
                        for value in run {
                            *value = (*value - shift) / divisor + self.offset;
                        }
                    }
                }
                ArrayData::F32(values)
            }
            other => other,
        };
        Array::new(shape, data).expect("there are as many elements as before")
    }
}
