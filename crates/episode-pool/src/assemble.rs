//! One frame's values, written into one row of every array.

use dataset::{Column, EpisodeRows, Values};
use decode::{Layout, Pixels};
use window::Offsets;

use crate::Error;
use crate::ahead::SamplePictures;
use crate::array::{Array, ArrayData};
use crate::cameras::{CameraWriter, WantedFrames, check_picture_size};
use crate::columns::{Rows, copy_rows};
use crate::pool::Dataset;
use crate::resident::Resident;
use crate::schema::{Field, FieldKind, TASK_INDEX};

/// Which frame a sample is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameId {
    pub(crate) episode_index: usize,
    pub(crate) frame_index: usize,
}

/// Writes the frame into row `row` of `arrays`, one array a field: `[rows, ...field.shape()]`. Frames of videos are only asked for, from
/// `cameras`, and written by its next [`flush`](CameraWriter::flush).
pub(crate) fn write(
    dataset: &Dataset,
    cameras: &mut CameraWriter,
    resident: &Resident,
    (frame, mut pictures): (FrameId, SamplePictures),
    arrays: &mut [Array],
    row: usize,
) -> Result<(), Error> {
    for (number, (field, array)) in dataset.fields.iter().zip(arrays).enumerate() {
        match &field.kind {
            FieldKind::Rows { window } => {
                let column = column(&resident.rows, field);
                let rows = Rows::new(window.as_ref(), frame.frame_index, resident.rows.len());
                copy_rows(column, &rows, array.data_mut(), row * elements(field));
            }
            FieldKind::IsPad { window } => {
                let ArrayData::Bool(out) = array.data_mut() else {
                    unreachable_type(field)
                };
                let out = &mut out[row * window.len()..][..window.len()];
                for (out, is_pad) in out
                    .iter_mut()
                    .zip(window.is_pad(frame.frame_index, resident.rows.len()))
                {
                    *out = is_pad;
                }
            }
            FieldKind::Task => {
                let ArrayData::Str(out) = array.data_mut() else {
                    unreachable_type(field)
                };
                out[row] = task(dataset, &resident.rows, frame)?.to_owned();
            }
            FieldKind::Video { window } => {
                let rows = Rows::new(window.as_ref(), frame.frame_index, resident.rows.len());
                cameras.want(WantedFrames {
                    field: number,
                    row,
                    episode_index: frame.episode_index,
                    frame_index: frame.frame_index,
                    positions: rows.indices(),
                    pictures: pictures.next_field(),
                });
            }
            FieldKind::Image { window } => {
                write_images(
                    dataset,
                    dataset.options.frame_layout,
                    &resident.rows,
                    frame,
                    (field, window.as_ref()),
                    array,
                    row,
                )?;
            }
        }
    }
    Ok(())
}

/// The number of elements of the field in one sample.
fn elements(field: &Field) -> usize {
    field.shape().iter().product()
}

fn column<'a>(rows: &'a EpisodeRows, field: &Field) -> &'a Column {
    rows.column(field.key())
        .expect("read_episode returns every tabular and image feature that info.json declares")
}

fn unreachable_type(field: &Field) -> ! {
    unreachable!(
        "the array of `{}` was made for its element type",
        field.key()
    )
}

/// The sentence of the frame's task.
fn task<'a>(dataset: &'a Dataset, rows: &EpisodeRows, frame: FrameId) -> Result<&'a str, Error> {
    let found = match rows.column(TASK_INDEX).map(Column::values) {
        Some(Values::I64(values)) => values[frame.frame_index],
        _ => unreachable!("the schema has a task only where `task_index` is declared an int64"),
    };
    dataset
        .metadata
        .tasks()
        .get(found)
        .ok_or_else(|| Error::UnknownTask {
            episode_index: frame.episode_index,
            frame_index: frame.frame_index,
            found,
            known: dataset.metadata.tasks().known(),
        })
}

/// The part of a camera's array that belongs to row `row`.
fn pixels<'a>(array: &'a mut Array, row: usize, len: usize) -> Pixels<'a> {
    match array.data_mut() {
        ArrayData::U8(out) => Pixels::U8(&mut out[row * len..][..len]),
        ArrayData::U16(out) => Pixels::U16(&mut out[row * len..][..len]),
        ArrayData::F32(out) => Pixels::F32(&mut out[row * len..][..len]),
        other => unreachable!("a camera's array holds {:?}", other.element_type()),
    }
}

fn write_images(
    dataset: &Dataset,
    layout: Layout,
    rows: &EpisodeRows,
    frame: FrameId,
    (field, window): (&Field, Option<&Offsets>),
    array: &mut Array,
    row: usize,
) -> Result<(), Error> {
    let in_frame = |source| Error::Frame {
        camera: field.key().to_owned(),
        episode_index: frame.episode_index,
        frame_index: frame.frame_index,
        source,
    };
    let camera = dataset
        .metadata
        .info()
        .feature(field.key())
        .expect("a field is a feature");
    let Values::Bytes(blobs) = column(rows, field).values() else {
        unreachable!("an image feature's column holds encoded pictures")
    };
    let indices = Rows::new(window, frame.frame_index, rows.len()).indices();
    let picture_len = elements(field) / indices.len();
    for (k, index) in indices.into_iter().enumerate() {
        let bytes = blobs.get(index).expect("a column holds one picture a row");
        let (width, height) = decode::image::dimensions(bytes).map_err(in_frame)?;
        check_picture_size(
            camera,
            dataset.data_file_name(frame.episode_index),
            height,
            width,
        )?;
        let out = pixels(array, row * elements(field) / picture_len + k, picture_len);
        decode::image::decode_into(bytes, layout, dataset.options.resize, out).map_err(in_frame)?;
    }
    Ok(())
}

/// Arrays of zeros for `rows` samples: `[rows, ...field.shape()]` each.
pub(crate) fn arrays(fields: &[Field], rows: usize) -> Vec<Array> {
    fields
        .iter()
        .map(|field| {
            let mut shape = Vec::with_capacity(field.shape().len() + 1);
            shape.push(rows);
            shape.extend(field.shape());
            Array::zeros(field.element_type(), shape)
        })
        .collect()
}
