//! The rows of an episode, as typed columns.

/// The rows of one episode: a column for each feature that is not a video, in the order of info.json.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeRows {
    pub(crate) episode_index: usize,
    pub(crate) len: usize,
    pub(crate) columns: Vec<Column>,
}

impl EpisodeRows {
    /// The episode.
    #[must_use]
    pub fn episode_index(&self) -> usize {
        self.episode_index
    }

    /// The number of rows, which is the number of frames.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "an episode has at least one frame"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The column of the feature `key`.
    #[must_use]
    pub fn column(&self, key: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == key)
    }

    /// All columns, in the order of info.json.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The memory that the values take, in bytes.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.columns
            .iter()
            .map(|column| column.values.nbytes())
            .sum()
    }
}

/// The values of one feature.
///
/// - [`values`](Self::values) holds `rows * shape.product()` elements, row-major: `[rows, ...shape]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values,
}

impl Column {
    /// The feature's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shape of one row: `[]` for a scalar, which is what the declared shape `[1]` means, and for a picture.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values of all rows.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }
}

/// Elements of one type, contiguous.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Bool(Vec<bool>),
    Str(Strings),
    /// Pictures, each the bytes of a file (PNG, JPEG).
    Bytes(Blobs),
}

/// Runs an expression on whatever is inside of some values.
macro_rules! for_each_type {
    ($values:expr, $inner:ident => $result:expr) => {
        match $values {
            Values::F32($inner) => $result,
            Values::F64($inner) => $result,
            Values::I8($inner) => $result,
            Values::I16($inner) => $result,
            Values::I32($inner) => $result,
            Values::I64($inner) => $result,
            Values::U8($inner) => $result,
            Values::U16($inner) => $result,
            Values::U32($inner) => $result,
            Values::U64($inner) => $result,
            Values::Bool($inner) => $result,
            Values::Str($inner) => $result,
            Values::Bytes($inner) => $result,
        }
    };
}

impl Values {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        for_each_type!(self, values => values.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the elements take, in bytes.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        match self {
            Self::Str(strings) => strings.nbytes(),
            Self::Bytes(blobs) => blobs.nbytes(),
            Self::F32(values) => size_of_val(values.as_slice()),
            Self::F64(values) => size_of_val(values.as_slice()),
            Self::I8(values) => size_of_val(values.as_slice()),
            Self::I16(values) => size_of_val(values.as_slice()),
            Self::I32(values) => size_of_val(values.as_slice()),
            Self::I64(values) => size_of_val(values.as_slice()),
            Self::U8(values) => size_of_val(values.as_slice()),
            Self::U16(values) => size_of_val(values.as_slice()),
            Self::U32(values) => size_of_val(values.as_slice()),
            Self::U64(values) => size_of_val(values.as_slice()),
            Self::Bool(values) => size_of_val(values.as_slice()),
        }
    }
}

/// Strings, one after the other in one buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// The end of each string in `text`.
    ends: Vec<usize>,
    text: String,
}

/// Byte strings, one after the other in one buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blobs {
    /// The end of each byte string in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Strings {
    pub(crate) fn new() -> Self {
        Self {
            ends: Vec::new(),
            text: String::new(),
        }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// The number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&str> {
        self.text.get(span(&self.ends, index)?)
    }

    /// All strings, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    fn nbytes(&self) -> usize {
        self.text.len() + size_of_val(self.ends.as_slice())
    }
}

impl Blobs {
    pub(crate) fn new() -> Self {
        Self {
            ends: Vec::new(),
            bytes: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// The number of byte strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The byte string at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(span(&self.ends, index)?)
    }

    /// All byte strings, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    fn nbytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.ends.as_slice())
    }
}

/// Where item `index` lies, given the end of each.
fn span(ends: &[usize], index: usize) -> Option<std::ops::Range<usize>> {
    let start = match index {
        0 => 0,
        _ => *ends.get(index - 1)?,
    };
    Some(start..*ends.get(index)?)
}
