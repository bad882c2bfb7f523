//! Values as Arrow arrays.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListArray, StringArray, StructArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};

use crate::layout::Row;
use crate::spec::{Dtype, Feature, Storage};

/// The column of `feature` for these rows.
pub(crate) fn feature(feature: &Feature, rows: &[Row]) -> ArrayRef {
    let per_row = |row: &Row| match feature.storage {
        Storage::Ragged(len) => len(*row),
        _ => feature.shape.iter().product(),
    };
    let elements: Vec<f64> = rows
        .iter()
        .flat_map(|row| (0..per_row(row)).map(|k| (feature.value)(*row, k)))
        .collect();
    let elements = array(feature.dtype, &elements);
    match feature.storage {
        Storage::Scalar => {
            assert_eq!(
                elements.len(),
                rows.len(),
                "{} is stored as one value for each row",
                feature.key
            );
            elements
        }
        Storage::List => feature
            .shape
            .iter()
            .rev()
            .fold(elements, |array, &axis| lists(array, axis)),
        Storage::FixedSizeList => feature
            .shape
            .iter()
            .rev()
            .fold(elements, |array, &axis| fixed_lists(array, axis)),
        Storage::Ragged(_) => ragged_lists(elements, rows.iter().map(per_row)),
    }
}

/// Pictures as the struct that `datasets` stores: the bytes of a file, and a path that is not used.
pub(crate) fn images(files: &[Vec<u8>], paths: &[String]) -> ArrayRef {
    let bytes: ArrayRef = Arc::new(files.iter().map(Some).collect::<BinaryArray>());
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(paths));
    let bytes_field = Arc::new(Field::new("bytes", DataType::Binary, true));
    let path_field = Arc::new(Field::new("path", DataType::Utf8, true));
    Arc::new(StructArray::from(vec![
        (bytes_field, bytes),
        (path_field, paths),
    ]))
}

/// Lists of strings.
pub(crate) fn string_lists(rows: &[Vec<&str>]) -> ArrayRef {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().flatten()));
    ragged_lists(texts, rows.iter().map(Vec::len))
}

fn array(dtype: Dtype, values: &[f64]) -> ArrayRef {
    macro_rules! cast {
        ($array:ident, $type:ty) => {
            Arc::new($array::from_iter_values(
                values.iter().map(|&value| value as $type),
            ))
        };
    }
    match dtype {
        Dtype::Float32 => cast!(Float32Array, f32),
        Dtype::Float64 => cast!(Float64Array, f64),
        Dtype::Int8 => cast!(Int8Array, i8),
        Dtype::Int16 => cast!(Int16Array, i16),
        Dtype::Int32 => cast!(Int32Array, i32),
        Dtype::Int64 => cast!(Int64Array, i64),
        Dtype::UInt8 => cast!(UInt8Array, u8),
        Dtype::UInt16 => cast!(UInt16Array, u16),
        Dtype::UInt32 => cast!(UInt32Array, u32),
        Dtype::UInt64 => cast!(UInt64Array, u64),
        Dtype::Bool => Arc::new(
            values
                .iter()
                .map(|&value| Some(value != 0.0))
                .collect::<BooleanArray>(),
        ),
        Dtype::String => Arc::new(StringArray::from_iter_values(
            values.iter().map(f64::to_string),
        )),
    }
}

/// pyarrow's name for what a list holds.
fn element(array: &ArrayRef) -> Arc<Field> {
    Arc::new(Field::new("element", array.data_type().clone(), true))
}

fn lists(array: ArrayRef, len: usize) -> ArrayRef {
    let count = array.len() / len;
    ragged_lists(array, std::iter::repeat_n(len, count))
}

fn ragged_lists(array: ArrayRef, lens: impl IntoIterator<Item = usize>) -> ArrayRef {
    Arc::new(ListArray::new(
        element(&array),
        OffsetBuffer::from_lengths(lens),
        array,
        None,
    ))
}

fn fixed_lists(array: ArrayRef, len: usize) -> ArrayRef {
    let len = i32::try_from(len).expect("a test's lists are short");
    Arc::new(FixedSizeListArray::new(element(&array), len, array, None))
}
