//! Samples and lists as JSON.

use std::io::{self, Write};

use episode_pool::{Array, ArrayData, Field, Sample};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::error::Error;

/// Writes a value over several lines, for people as much as for programs.
pub(crate) fn write_pretty(out: &mut impl Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value)
        .map_err(io::Error::from)
        .map_err(Error::Output)?;
    writeln!(out).map_err(Error::Output)
}

/// An array that is written element by element, one a line.
#[derive(Debug)]
#[must_use = "an array that is not finished lacks its closing bracket"]
pub(crate) struct Lines<W> {
    out: W,
    is_empty: bool,
}

impl<W: Write> Lines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            is_empty: true,
        }
    }

    pub(crate) fn push(&mut self, element: &impl Serialize) -> io::Result<()> {
        self.out
            .write_all(if self.is_empty { b"[\n" } else { b",\n" })?;
        self.is_empty = false;
        serde_json::to_writer(&mut self.out, element)?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out
            .write_all(if self.is_empty { b"[]\n" } else { b"\n]\n" })
    }
}

/// A sample's values but for its pictures: what lerobot's reader returns for an item, as plain JSON.
///
/// Numbers have their full precision, single-precision ones widened. JSON has no NaN and no infinity: they are `null`.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) sample: &'a Sample,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (field, (key, array)) in self.fields.iter().zip(self.sample.fields.iter()) {
            if !field.is_camera() {
                map.serialize_entry(key, &Values(array))?;
            }
        }
        map.end()
    }
}

/// An array as nested lists; a scalar as itself.
struct Values<'a>(&'a Array);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape = self.0.shape();
        match self.0.data() {
            ArrayData::Bool(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::I8(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::I16(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::I32(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::I64(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::U8(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::U16(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::U32(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::U64(elements) => Nested { shape, elements }.serialize(serializer),
            ArrayData::F32(elements) => {
                // An `f32` by itself would be written with the digits that tell it from other `f32`s, too few for a reader
                // of doubles.
                let elements: Vec<f64> = elements.iter().copied().map(f64::from).collect();
                Nested {
                    shape,
                    elements: &elements,
                }
                .serialize(serializer)
            }
            ArrayData::Str(elements) => Nested { shape, elements }.serialize(serializer),
            other => Err(S::Error::custom(format!(
                "{:?} has no JSON form",
                other.element_type()
            ))),
        }
    }
}

/// `elements`, row-major, in this shape: as many as its product.
struct Nested<'a, T> {
    shape: &'a [usize],
    elements: &'a [T],
}

impl<T: Serialize> Serialize for Nested<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some((&len, shape)) = self.shape.split_first() else {
            return self.elements[0].serialize(serializer);
        };
        let size: usize = shape.iter().product();
        let mut list = serializer.serialize_seq(Some(len))?;
        for row in 0..len {
            let elements = &self.elements[row * size..(row + 1) * size];
            list.serialize_element(&Nested { shape, elements })?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_nested_lists_of_full_precision() {
        let numbers = ArrayData::F32(vec![0.1, 1.0, f32::NAN, f32::INFINITY, -0.0, 3.5e-30]);
        for (shape, data, expected) in [
            (
                vec![],
                ArrayData::I64(vec![i64::MIN]),
                "-9223372036854775808",
            ),
            (
                vec![],
                ArrayData::Str(vec!["a \"b\"".to_owned()]),
                r#""a \"b\"""#,
            ),
            (
                vec![2, 1],
                ArrayData::Bool(vec![true, false]),
                "[[true],[false]]",
            ),
            (vec![0, 3], ArrayData::U8(vec![]), "[]"),
            (vec![2, 0], ArrayData::U8(vec![]), "[[],[]]"),
            (
                vec![2, 3],
                numbers,
                "[[0.10000000149011612,1.0,null],[null,-0.0,3.500000011098769e-30]]",
            ),
        ] {
            let array = Array::new(shape, data).unwrap();
            assert_eq!(serde_json::to_string(&Values(&array)).unwrap(), expected);
        }
    }

    #[test]
    fn a_list_has_one_element_a_line() {
        for (elements, expected) in [
            (&[][..], "[]\n"),
            (&[7], "[\n7\n]\n"),
            (&[7, 8], "[\n7,\n8\n]\n"),
        ] {
            let mut text = Vec::new();
            let mut lines = Lines::new(&mut text);
            for element in elements {
                lines.push(element).unwrap();
            }
            lines.finish().unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}
