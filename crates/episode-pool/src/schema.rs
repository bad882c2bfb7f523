//! What a sample holds: every field's name, element type and shape, fixed before anything is read.

use std::sync::Arc;

use dataset::{DType, Feature, Info};
use decode::{Layout, Size};
use window::{DeltaTimestamps, Offsets};

use crate::{ElementType, Error, FrameType};

/// The name of the field that holds the task's sentence.
pub(crate) const TASK: &str = "task";

/// The feature that holds the row's task.
pub(crate) const TASK_INDEX: &str = "task_index";

/// One field of every sample.
///
/// Values are those of lerobot's map-style reader. So a double-precision feature is given in single precision; `dataset` has
/// the doubles for whoever needs them.
///
/// - [`shape`](Self::shape) is that of one sample; a batch puts `[B]` before it.
/// - A windowed field's first dimension is `T`, the number of its deltas.
#[derive(Debug, Clone)]
pub struct Field {
    key: Arc<str>,
    element_type: ElementType,
    shape: Vec<usize>,
    pub(crate) kind: FieldKind,
}

/// Where a field's values come from.
#[derive(Debug, Clone)]
pub(crate) enum FieldKind {
    /// A column of the episode's rows.
    Rows { window: Option<Offsets> },
    /// Pictures stored in the rows, encoded.
    Image { window: Option<Offsets> },
    /// Frames of the camera's video.
    Video { window: Option<Offsets> },
    /// Which rows of the window lie outside the episode.
    IsPad { window: Offsets },
    /// The sentence for the row's `task_index`.
    Task,
}

impl Field {
    /// The field's name: a feature's key, a windowed feature's `<key>_is_pad`, or `task`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The type of the field's elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The field's shape in one sample, without a batch dimension.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Whether the field holds pictures.
    #[must_use]
    pub fn is_camera(&self) -> bool {
        matches!(self.kind, FieldKind::Image { .. } | FieldKind::Video { .. })
    }

    /// The number of rows in the field's window, `T`; `None` for a field without `delta_timestamps`.
    #[must_use]
    pub fn window_len(&self) -> Option<usize> {
        match &self.kind {
            FieldKind::Rows { window }
            | FieldKind::Image { window }
            | FieldKind::Video { window } => window.as_ref().map(Offsets::len),
            FieldKind::IsPad { window } => Some(window.len()),
            FieldKind::Task => None,
        }
    }

    pub(crate) fn shared_key(&self) -> Arc<str> {
        Arc::clone(&self.key)
    }
}

/// The memory that the arrays of one sample take, in bytes; `None` when that is beyond counting.
pub(crate) fn sample_bytes(fields: &[Field]) -> Option<usize> {
    fields.iter().try_fold(0_usize, |sum, field| {
        let elements = field
            .shape
            .iter()
            .try_fold(1_usize, |product, &dim| product.checked_mul(dim))?;
        sum.checked_add(elements.checked_mul(field.element_type.size_bytes())?)
    })
}

/// How camera frames are laid out, and as what numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameFormat {
    pub(crate) layout: Layout,
    pub(crate) element: FrameType,
    /// None: as stored.
    pub(crate) resize: Option<Size>,
}

/// The fields of a sample, in order: the features as `info.json` lists them, each windowed one followed by its mask,
/// and the task.
pub(crate) fn fields(
    info: &Info,
    windows: &DeltaTimestamps,
    format: FrameFormat,
) -> Result<Vec<Field>, Error> {
    let mut fields = Vec::new();
    for feature in info.features() {
        let window = windows.get(feature.key()).cloned();
        let (element_type, row_shape, kind) = match feature.dtype() {
            DType::Video => {
                let (element_type, shape) = picture(feature, format)?;
                (
                    element_type,
                    shape,
                    FieldKind::Video {
                        window: window.clone(),
                    },
                )
            }
            DType::Image => {
                let (element_type, shape) = picture(feature, format)?;
                (
                    element_type,
                    shape,
                    FieldKind::Image {
                        window: window.clone(),
                    },
                )
            }
            dtype => (
                tabular(dtype),
                feature.row_shape().to_vec(),
                FieldKind::Rows {
                    window: window.clone(),
                },
            ),
        };
        let mut shape = Vec::with_capacity(row_shape.len() + 1);
        shape.extend(window.as_ref().map(Offsets::len));
        shape.extend(row_shape);
        fields.push(Field {
            key: Arc::from(feature.key()),
            element_type,
            shape,
            kind,
        });
        if let Some(window) = window {
            fields.push(Field {
                key: Arc::from(format!("{}_is_pad", feature.key())),
                element_type: ElementType::Bool,
                shape: vec![window.len()],
                kind: FieldKind::IsPad { window },
            });
        }
    }
    if info
        .feature(TASK_INDEX)
        .is_some_and(|feature| feature.dtype() == DType::Int64)
    {
        fields.push(Field {
            key: Arc::from(TASK),
            element_type: ElementType::Str,
            shape: Vec::new(),
            kind: FieldKind::Task,
        });
    }
    Ok(fields)
}

fn tabular(dtype: DType) -> ElementType {
    match dtype {
        DType::Bool => ElementType::Bool,
        DType::Int8 => ElementType::I8,
        DType::Int16 => ElementType::I16,
        DType::Int32 => ElementType::I32,
        DType::Int64 => ElementType::I64,
        DType::UInt8 => ElementType::U8,
        DType::UInt16 => ElementType::U16,
        DType::UInt32 => ElementType::U32,
        DType::UInt64 => ElementType::U64,
        DType::Float32 | DType::Float64 => ElementType::F32,
        DType::String | DType::Image | DType::Video => ElementType::Str,
    }
}

/// The element type and shape of one picture of a camera: `[H, W, C]` or `[C, H, W]`.
fn picture(feature: &Feature, format: FrameFormat) -> Result<(ElementType, Vec<usize>), Error> {
    let size = feature.picture_size().ok_or_else(|| Error::CameraShape {
        camera: feature.key().to_owned(),
        found: feature.shape().to_vec(),
    })?;
    let (height, width) = match format.resize {
        Some(size) => (size.height, size.width),
        None => (size.height, size.width),
    };
    let (element_type, channels) = match (feature.is_depth(), format.element) {
        (true, _) => (ElementType::U16, 1),
        (false, FrameType::U8) => (ElementType::U8, 3),
        (false, FrameType::F32) => (ElementType::F32, 3),
    };
    let shape = match format.layout {
        Layout::Hwc => vec![height, width, channels],
        Layout::Chw => vec![channels, height, width],
    };
    Ok((element_type, shape))
}
