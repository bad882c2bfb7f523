//! Arrays for Python: numpy takes over the memory that they were written to.

use std::sync::Arc;

use episode_pool::{Array, ArrayData};
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The fields as a dict, in order.
pub(crate) fn fields<'py>(
    py: Python<'py>,
    fields: impl IntoIterator<Item = (Arc<str>, Array)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, array) in fields {
        dict.set_item(&*key, to_python(py, array)?)?;
    }
    Ok(dict)
}

/// Numbers as a numpy array, which owns them without a copy; text as a `str`, or as nested lists of them.
fn to_python(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyAny>> {
    let shape = array.shape().to_vec();
    match array.into_data() {
        ArrayData::Bool(elements) => owned(py, elements, shape),
        ArrayData::I8(elements) => owned(py, elements, shape),
        ArrayData::I16(elements) => owned(py, elements, shape),
        ArrayData::I32(elements) => owned(py, elements, shape),
        ArrayData::I64(elements) => owned(py, elements, shape),
        ArrayData::U8(elements) => owned(py, elements, shape),
        ArrayData::U16(elements) => owned(py, elements, shape),
        ArrayData::U32(elements) => owned(py, elements, shape),
        ArrayData::U64(elements) => owned(py, elements, shape),
        ArrayData::F32(elements) => owned(py, elements, shape),
        ArrayData::Str(elements) => texts(py, &elements, &shape),
        _ => unreachable!("an element type that Python knows nothing of"),
    }
}

fn owned<T: Element>(
    py: Python<'_>,
    elements: Vec<T>,
    shape: Vec<usize>,
) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyArray1::from_vec(py, elements).reshape(shape)?.into_any())
}

fn texts<'py>(
    py: Python<'py>,
    elements: &[String],
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let [len, inner @ ..] = shape else {
        return Ok(PyString::new(py, &elements[0]).into_any());
    };
    let row: usize = inner.iter().product();
    let rows = (0..*len)
        .map(|index| texts(py, &elements[index * row..(index + 1) * row], inner))
        .collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, rows)?.into_any())
}
