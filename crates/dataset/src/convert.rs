//! From what is stored to what is declared: shapes, nulls, types.

use std::fmt;

use crate::parquet::RawColumn;
use crate::rows::Values;
use crate::{DType, Error, Feature};

/// A stored column as the column of a feature: every row of the declared shape, no nulls, the declared type.
///
/// `first_row` is the row of the file that the column starts with.
pub(crate) fn column(
    column: RawColumn,
    path: &str,
    feature: &Feature,
    first_row: usize,
) -> Result<Values, Error> {
    let key = feature.key();
    let row_shape = feature.row_shape();
    let (values, null_rows) =
        shaped(column, path, key, row_shape).map_err(|error| shift(error, first_row))?;
    if let Some(row) = null_rows.first() {
        let (found, expected) = match feature.dtype() {
            DType::Image => (
                "no `bytes`",
                "an encoded picture; pictures named by `path` alone are not read",
            ),
            _ => ("null", "a value"),
        };
        return Err(Error::Value {
            path: path.to_owned(),
            column: key.to_owned(),
            row: first_row + row,
            found: found.to_owned(),
            expected: expected.to_owned(),
        });
    }
    let width = row_shape.iter().product::<usize>().max(1);
    let stored = type_name(&values);
    cast(values, feature.dtype()).map_err(|fault| match fault {
        CastFault::Type => Error::Type {
            path: path.to_owned(),
            column: key.to_owned(),
            found: stored.to_owned(),
            expected: feature.dtype(),
        },
        CastFault::Value { position, found } => Error::Value {
            path: path.to_owned(),
            column: key.to_owned(),
            row: first_row + position / width,
            found: found.to_string(),
            expected: format!("a value of the declared dtype {}", feature.dtype()),
        },
    })
}

fn shift(error: Error, first_row: usize) -> Error {
    match error {
        Error::Shape {
            path,
            column,
            row,
            found,
            declared,
        } => Error::Shape {
            path,
            column,
            row: first_row + row,
            found,
            declared,
        },
        Error::Value {
            path,
            column,
            row,
            found,
            expected,
        } => Error::Value {
            path,
            column,
            row: first_row + row,
            found,
            expected,
        },
        error => error,
    }
}

/// The values of a stored column and the rows in which there is a null, if every row has the shape `declared`.
///
/// A scalar (`[]`) may be stored as a plain value or as a list of one. Only a plain value may be null.
pub(crate) fn shaped(
    column: RawColumn,
    path: &str,
    name: &str,
    declared: &[usize],
) -> Result<(Values, Vec<usize>), Error> {
    let fault = |row: usize, found: Vec<usize>| Error::Shape {
        path: path.to_owned(),
        column: name.to_owned(),
        row,
        found,
        declared: declared.to_vec(),
    };
    let RawColumn {
        lists,
        leaf,
        null_rows,
    } = column;
    if let (Some(&row), false) = (null_rows.first(), lists.is_empty()) {
        // A null within a list, or for one, moves all elements after it.
        return Err(Error::Value {
            path: path.to_owned(),
            column: name.to_owned(),
            row,
            found: "null".to_owned(),
            expected: format!("a value of the shape {declared:?}"),
        });
    }
    let expected: Vec<usize> = if declared.is_empty() {
        vec![1; lists.len()]
    } else {
        declared.to_vec()
    };
    if lists.len() != expected.len() {
        let first: Vec<usize> = lists
            .iter()
            .map_while(|lens| lens.first().copied())
            .collect();
        return Err(fault(0, first));
    }
    // The number of lists at this depth in a row.
    let mut lists_per_row: usize = 1;
    for (depth, (lens, len)) in lists.iter().zip(&expected).enumerate() {
        if let Some(position) = lens.iter().position(|found| found != len) {
            let mut found = expected[..depth].to_vec();
            found.push(lens[position]);
            return Err(fault(position / lists_per_row.max(1), found));
        }
        lists_per_row = lists_per_row.saturating_mul(*len);
    }
    Ok((leaf, null_rows))
}

/// A number of any stored type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    /// The number as a whole one, if it is.
    pub(crate) fn exact(self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(value),
            // No type declared is wider than 64 bits; NaN equals nothing.
            Self::Float(value) if value.trunc() == value && value.abs() <= u64::MAX as f64 => {
                Some(value as i128)
            }
            Self::Float(_) => None,
        }
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// The number at a position; `None` outside, and for texts and pictures.
pub(crate) fn number(values: &Values, position: usize) -> Option<Number> {
    macro_rules! int {
        ($values:expr) => {
            $values
                .get(position)
                .map(|value| Number::Int(i128::from(*value)))
        };
    }
    match values {
        Values::F32(values) => values
            .get(position)
            .map(|value| Number::Float(f64::from(*value))),
        Values::F64(values) => values.get(position).map(|value| Number::Float(*value)),
        Values::I8(values) => int!(values),
        Values::I16(values) => int!(values),
        Values::I32(values) => int!(values),
        Values::I64(values) => int!(values),
        Values::U8(values) => int!(values),
        Values::U16(values) => int!(values),
        Values::U32(values) => int!(values),
        Values::U64(values) => int!(values),
        Values::Bool(values) => int!(values),
        Values::Str(_) | Values::Bytes(_) => None,
    }
}

/// The name of the stored type, for messages.
pub(crate) fn type_name(values: &Values) -> &'static str {
    match dtype_of(values) {
        DType::Image => "binary",
        dtype => dtype.name(),
    }
}

/// The declared type that values are of.
fn dtype_of(values: &Values) -> DType {
    match values {
        Values::F32(_) => DType::Float32,
        Values::F64(_) => DType::Float64,
        Values::I8(_) => DType::Int8,
        Values::I16(_) => DType::Int16,
        Values::I32(_) => DType::Int32,
        Values::I64(_) => DType::Int64,
        Values::U8(_) => DType::UInt8,
        Values::U16(_) => DType::UInt16,
        Values::U32(_) => DType::UInt32,
        Values::U64(_) => DType::UInt64,
        Values::Bool(_) => DType::Bool,
        Values::Str(_) => DType::String,
        Values::Bytes(_) => DType::Image,
    }
}

/// Why values cannot be those of another type.
#[derive(Debug, PartialEq)]
enum CastFault {
    /// No value could.
    Type,
    /// The one at `position` cannot.
    Value { position: usize, found: Number },
}

/// Converts values to the declared type.
///
/// Numbers keep their value: whole ones stay exact, whatever they are stored as, and a bool is 0 or 1. The one rounding is
/// that of float64 to the nearest float32.
fn cast(values: Values, dtype: DType) -> Result<Values, CastFault> {
    if dtype_of(&values) == dtype {
        return Ok(values);
    }
    match dtype {
        DType::Float32 => convert(&values, to_f32).map(Values::F32),
        DType::Float64 => convert(&values, to_f64).map(Values::F64),
        DType::Int8 => convert(&values, to_int).map(Values::I8),
        DType::Int16 => convert(&values, to_int).map(Values::I16),
        DType::Int32 => convert(&values, to_int).map(Values::I32),
        DType::Int64 => convert(&values, to_int).map(Values::I64),
        DType::UInt8 => convert(&values, to_int).map(Values::U8),
        DType::UInt16 => convert(&values, to_int).map(Values::U16),
        DType::UInt32 => convert(&values, to_int).map(Values::U32),
        DType::UInt64 => convert(&values, to_int).map(Values::U64),
        DType::Bool => convert(&values, to_bool).map(Values::Bool),
        DType::String | DType::Image | DType::Video => Err(CastFault::Type),
    }
}

fn convert<T>(values: &Values, to: fn(Number) -> Option<T>) -> Result<Vec<T>, CastFault> {
    let convert = |position| {
        let found = number(values, position).ok_or(CastFault::Type)?;
        to(found).ok_or(CastFault::Value { position, found })
    };
    (0..values.len()).map(convert).collect()
}

fn to_int<T: TryFrom<i128>>(number: Number) -> Option<T> {
    T::try_from(number.exact()?).ok()
}

fn to_bool(number: Number) -> Option<bool> {
    match number.exact()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn to_f64(number: Number) -> Option<f64> {
    let value = number.as_f64();
    match number {
        Number::Int(int) if value as i128 != int => None,
        _ => Some(value),
    }
}

fn to_f32(number: Number) -> Option<f32> {
    let value = number.as_f64() as f32;
    match number {
        Number::Int(int) if value as i128 != int => None,
        Number::Float(float) if float.is_finite() && !value.is_finite() => None,
        _ => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_value_or_are_refused() {
        let two_to_53 = 9_007_199_254_740_992_i64;
        let f64s = |values: &[f64]| Values::F64(values.to_vec());
        let value = |position, found| Err(CastFault::Value { position, found });
        for (values, dtype, expected) in [
            (
                f64s(&[0.0, -3.0]),
                DType::Int64,
                Ok(Values::I64(vec![0, -3])),
            ),
            (
                f64s(&[1.0, 0.0]),
                DType::Bool,
                Ok(Values::Bool(vec![true, false])),
            ),
            (f64s(&[0.1]), DType::Float32, Ok(Values::F32(vec![0.1]))),
            (
                f64s(&[f64::INFINITY]),
                DType::Float32,
                Ok(Values::F32(vec![f32::INFINITY])),
            ),
            (f64s(&[1e39]), DType::Float32, value(0, Number::Float(1e39))),
            (
                f64s(&[0.0, 0.5]),
                DType::Int64,
                value(1, Number::Float(0.5)),
            ),
            (f64s(&[1e300]), DType::Int64, value(0, Number::Float(1e300))),
            (f64s(&[256.0]), DType::UInt8, value(0, Number::Float(256.0))),
            (f64s(&[2.0]), DType::Bool, value(0, Number::Float(2.0))),
            (
                Values::I64(vec![-1]),
                DType::UInt64,
                value(0, Number::Int(-1)),
            ),
            (
                Values::I64(vec![two_to_53]),
                DType::Float64,
                Ok(f64s(&[two_to_53 as f64])),
            ),
            (
                Values::I64(vec![two_to_53 + 1]),
                DType::Float64,
                value(0, Number::Int(9_007_199_254_740_993)),
            ),
            (
                Values::I64(vec![16_777_217]),
                DType::Float32,
                value(0, Number::Int(16_777_217)),
            ),
            (
                Values::U64(vec![u64::MAX]),
                DType::Int64,
                value(0, Number::Int(i128::from(u64::MAX))),
            ),
            (
                Values::Bool(vec![true]),
                DType::Int8,
                Ok(Values::I8(vec![1])),
            ),
            (
                Values::F32(vec![0.1]),
                DType::Float64,
                Ok(f64s(&[f64::from(0.1_f32)])),
            ),
            (Values::I32(vec![3]), DType::String, Err(CastFault::Type)),
            (Values::I32(vec![3]), DType::Image, Err(CastFault::Type)),
        ] {
            assert_eq!(
                cast(values.clone(), dtype),
                expected,
                "{values:?} as {dtype}"
            );
        }
        let nan = cast(f64s(&[f64::NAN]), DType::Int32);
        assert!(matches!(nan, Err(CastFault::Value { position: 0, .. })));
        let mut text = crate::Strings::new();
        text.push("3");
        assert_eq!(cast(Values::Str(text), DType::Int64), Err(CastFault::Type));
    }

    #[test]
    fn the_first_row_of_another_shape_is_named() {
        let leaf = |len| Values::F32(vec![0.0; len]);
        let column = |lists: Vec<Vec<usize>>, len| RawColumn {
            lists,
            leaf: leaf(len),
            null_rows: Vec::new(),
        };
        for (raw, declared, expected) in [
            (column(vec![vec![2, 2]], 4), &[2][..], None),
            (column(vec![], 2), &[], None),
            (column(vec![vec![1, 1]], 2), &[], None),
            (
                column(vec![vec![2, 2], vec![3, 3, 3, 3]], 12),
                &[2, 3],
                None,
            ),
            (column(vec![vec![41, 41]], 82), &[17], Some((0, vec![41]))),
            (column(vec![vec![2, 2, 3]], 7), &[2], Some((2, vec![3]))),
            (
                column(vec![vec![2, 2], vec![3, 3, 3, 4]], 13),
                &[2, 3],
                Some((1, vec![2, 4])),
            ),
            (column(vec![vec![6, 6]], 12), &[2, 3], Some((0, vec![6]))),
            (column(vec![], 2), &[2], Some((0, vec![]))),
            (column(vec![vec![1, 2]], 3), &[], Some((1, vec![2]))),
            (column(vec![vec![0, 0], vec![]], 0), &[0, 3], None),
        ] {
            let shown = format!("{raw:?} as {declared:?}");
            let found = match shaped(raw, "f", "c", declared) {
                Ok(_) => None,
                Err(Error::Shape { row, found, .. }) => Some((row, found)),
                Err(error) => panic!("{shown}: {error}"),
            };
            assert_eq!(found, expected, "{shown}");
        }
    }
}
