//! Typed n-dimensional arrays: what samples and batches are made of.

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// Truth values.
    Bool,
    /// 8-bit signed integers.
    I8,
    /// 16-bit signed integers.
    I16,
    /// 32-bit signed integers.
    I32,
    /// 64-bit signed integers.
    I64,
    /// 8-bit unsigned integers.
    U8,
    /// 16-bit unsigned integers.
    U16,
    /// 32-bit unsigned integers.
    U32,
    /// 64-bit unsigned integers.
    U64,
    /// Single-precision floats.
    F32,
    /// UTF-8 text.
    Str,
}

impl ElementType {
    /// The size of one element in an array, in bytes; of text, that of its handle.
    pub(crate) fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 => 8,
            Self::Str => size_of::<String>(),
        }
    }
}

/// The elements of an [`Array`], row-major and contiguous.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is its element type's")]
pub enum ArrayData {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    Str(Vec<String>),
}

/// Evaluates one expression for whichever vector an [`ArrayData`] holds.
macro_rules! with_elements {
    ($data:expr, $elements:ident => $body:expr) => {
        match $data {
            ArrayData::Bool($elements) => $body,
            ArrayData::I8($elements) => $body,
            ArrayData::I16($elements) => $body,
            ArrayData::I32($elements) => $body,
            ArrayData::I64($elements) => $body,
            ArrayData::U8($elements) => $body,
            ArrayData::U16($elements) => $body,
            ArrayData::U32($elements) => $body,
            ArrayData::U64($elements) => $body,
            ArrayData::F32($elements) => $body,
            ArrayData::Str($elements) => $body,
        }
    };
}

impl ArrayData {
    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        with_elements!(self, elements => elements.len())
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        match self {
            Self::Bool(_) => ElementType::Bool,
            Self::I8(_) => ElementType::I8,
            Self::I16(_) => ElementType::I16,
            Self::I32(_) => ElementType::I32,
            Self::I64(_) => ElementType::I64,
            Self::U8(_) => ElementType::U8,
            Self::U16(_) => ElementType::U16,
            Self::U32(_) => ElementType::U32,
            Self::U64(_) => ElementType::U64,
            Self::F32(_) => ElementType::F32,
            Self::Str(_) => ElementType::Str,
        }
    }

    fn truncate(&mut self, len: usize) {
        with_elements!(self, elements => elements.truncate(len));
    }

    fn zeros(element_type: ElementType, len: usize) -> Self {
        match element_type {
            ElementType::Bool => Self::Bool(vec![false; len]),
            ElementType::I8 => Self::I8(vec![0; len]),
            ElementType::I16 => Self::I16(vec![0; len]),
            ElementType::I32 => Self::I32(vec![0; len]),
            ElementType::I64 => Self::I64(vec![0; len]),
            ElementType::U8 => Self::U8(vec![0; len]),
            ElementType::U16 => Self::U16(vec![0; len]),
            ElementType::U32 => Self::U32(vec![0; len]),
            ElementType::U64 => Self::U64(vec![0; len]),
            ElementType::F32 => Self::F32(vec![0.0; len]),
            ElementType::Str => Self::Str(vec![String::new(); len]),
        }
    }
}

/// An n-dimensional array: a shape, and its elements row-major and contiguous.
///
/// - The product of [`shape`](Self::shape) is the number of elements; a scalar's shape is `[]`.
///
/// ```
/// use episode_pool::{Array, ArrayData};
///
/// let array = Array::new(vec![2, 3], ArrayData::F32(vec![0.0; 6])).expect("2 x 3 elements");
/// assert_eq!(array.shape(), [2, 3]);
/// assert_eq!(Array::new(vec![2, 3], ArrayData::F32(vec![0.0; 5])), None);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    data: ArrayData,
}

impl Array {
    /// An array of `data` in the given shape; `None` when the number of elements is not the shape's product.
    #[must_use]
    pub fn new(shape: Vec<usize>, data: ArrayData) -> Option<Self> {
        let expected = shape
            .iter()
            .try_fold(1_usize, |product, &dim| product.checked_mul(dim))?;
        (expected == data.len()).then_some(Self { shape, data })
    }

    pub(crate) fn zeros(element_type: ElementType, shape: Vec<usize>) -> Self {
        let len = shape.iter().product();
        Self {
            data: ArrayData::zeros(element_type, len),
            shape,
        }
    }

    /// The length of every dimension, outermost first; `[]` for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, row-major.
    #[must_use]
    pub fn data(&self) -> &ArrayData {
        &self.data
    }

    /// The elements, row-major, to keep.
    #[must_use]
    pub fn into_data(self) -> ArrayData {
        self.data
    }

    /// The size of the elements in memory; of text, its bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match &self.data {
            ArrayData::Str(elements) => elements.iter().map(String::len).sum(),
            data => with_elements!(data, elements => std::mem::size_of_val(elements.as_slice())),
        }
    }

    pub(crate) fn data_mut(&mut self) -> &mut ArrayData {
        &mut self.data
    }

    /// Keeps the first `rows` of the outermost dimension, if it has more.
    pub(crate) fn truncate(&mut self, rows: usize) {
        if let Some((outermost, row)) = self.shape.split_first_mut()
            && *outermost > rows
        {
            *outermost = rows;
            self.data.truncate(rows * row.iter().product::<usize>());
        }
    }

    /// The array without its outermost dimension, which is 1.
    pub(crate) fn into_only_row(mut self) -> Self {
        let rows = self.shape.remove(0);
        debug_assert_eq!(rows, 1, "only a single row can lose its dimension");
        self
    }
}

macro_rules! slices {
    ($($name:ident: $variant:ident($element:ty), $noun:literal;)*) => {
        impl Array {
            $(
                #[doc = concat!("The elements, when they are ", $noun, ".")]
                #[must_use]
                pub fn $name(&self) -> Option<&[$element]> {
                    match &self.data {
                        ArrayData::$variant(elements) => Some(elements),
                        _ => None,
                    }
                }
            )*
        }
    };
}

slices! {
    as_bool: Bool(bool), "truth values";
    as_i64: I64(i64), "64-bit integers";
    as_u8: U8(u8), "bytes, as of pictures";
    as_u16: U16(u16), "16-bit unsigned integers, as of depth maps";
    as_f32: F32(f32), "single-precision floats";
    as_str: Str(String), "text";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_must_match_its_elements_and_not_overflow() {
        assert!(Array::new(vec![], ArrayData::I64(vec![7])).is_some());
        assert_eq!(Array::new(vec![2], ArrayData::I64(vec![7])), None);
        assert_eq!(
            Array::new(vec![usize::MAX, 2], ArrayData::I64(vec![7])),
            None
        );
    }
}
