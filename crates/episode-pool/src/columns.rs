//! Copies of a column's rows into an array: a window's runs as slices.

use dataset::{Column, Values};
use window::{Offsets, Run};

use crate::array::ArrayData;

/// The rows of a window, clamped to the episode, or the single row of a field without one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    window: Option<&'a Offsets>,
    frame: usize,
    length: usize,
}

impl<'a> Rows<'a> {
    /// The rows for `frame` of an episode of `length` frames.
    pub(crate) fn new(window: Option<&'a Offsets>, frame: usize, length: usize) -> Self {
        Self {
            window,
            frame,
            length,
        }
    }

    /// The row of every step of the window, `[T]`.
    pub(crate) fn indices(&self) -> Vec<usize> {
        match self.window {
            Some(window) => window.indices(self.frame, self.length).collect(),
            None => vec![self.frame],
        }
    }

    fn for_each_run(&self, mut take: impl FnMut(Run)) {
        match self.window {
            Some(window) => window.runs(self.frame, self.length).for_each(take),
            None => take(Run {
                first: self.frame,
                len: 1,
                repeat: false,
            }),
        }
    }

    /// Writes the rows of `values`, `[length, width]`, to `out`, `[T, width]`.
    fn copy<T, U>(&self, values: &[T], out: &mut [U], width: usize, copy: impl Fn(&[T], &mut [U])) {
        let mut at = 0;
        self.for_each_run(|run| {
            let here = &mut out[at..][..run.len * width];
            at += here.len();
            if run.repeat {
                let row = &values[run.first * width..][..width];
                // A row may be empty, a chunk may not.
                here.chunks_exact_mut(width.max(1))
                    .for_each(|out| copy(row, out));
            } else {
                copy(&values[run.first * width..][..here.len()], here);
            }
        });
    }
}

/// Copies rows of a column to `out[at..]`.
pub(crate) fn copy_rows(column: &Column, rows: &Rows<'_>, out: &mut ArrayData, at: usize) {
    let width: usize = column.shape().iter().product();
    macro_rules! same {
        ($values:ident, $out:ident) => {
            rows.copy($values, &mut $out[at..], width, |from, to| {
                to.copy_from_slice(from)
            })
        };
    }
    match (column.values(), out) {
        (Values::Bool(values), ArrayData::Bool(out)) => same!(values, out),
        (Values::I8(values), ArrayData::I8(out)) => same!(values, out),
        (Values::I16(values), ArrayData::I16(out)) => same!(values, out),
        (Values::I32(values), ArrayData::I32(out)) => same!(values, out),
        (Values::I64(values), ArrayData::I64(out)) => same!(values, out),
        (Values::U8(values), ArrayData::U8(out)) => same!(values, out),
        (Values::U16(values), ArrayData::U16(out)) => same!(values, out),
        (Values::U32(values), ArrayData::U32(out)) => same!(values, out),
        (Values::U64(values), ArrayData::U64(out)) => same!(values, out),
        (Values::F32(values), ArrayData::F32(out)) => same!(values, out),
        (Values::F64(values), ArrayData::F32(out)) => {
            rows.copy(values, &mut out[at..], width, narrow)
        }
        (Values::Str(values), ArrayData::Str(out)) => {
            let elements = rows
                .indices()
                .into_iter()
                .flat_map(|row| row * width..(row + 1) * width);
            for (element, out) in elements.zip(&mut out[at..]) {
                let text = values.get(element);
                out.replace_range(.., text.expect("a column holds length * width elements"));
            }
        }
        _ => unreachable!(
            "the array of `{}` was made for its element type",
            column.name()
        ),
    }
}

fn narrow(from: &[f64], to: &mut [f32]) {
    for (from, to) in from.iter().zip(to) {
        *to = *from as f32;
    }
}
