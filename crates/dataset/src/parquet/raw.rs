//! Columns as they are stored: lists within lists of values.

use crate::limits::MAX_EPISODE_BYTES;
use crate::rows::Values;

use super::Fault;

/// A column as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawColumn {
    /// For each level of lists, outermost first: the length of each list, in order.
    pub(crate) lists: Vec<Vec<usize>>,
    /// The values in the innermost lists, in order. A null is some value of the type.
    pub(crate) leaf: Values,
    /// The rows that are null or hold a null, sorted.
    pub(crate) null_rows: Vec<usize>,
}

impl RawColumn {
    /// The number of rows.
    pub(crate) fn num_rows(&self) -> usize {
        self.lists.first().map_or_else(|| self.leaf.len(), Vec::len)
    }

    /// The memory that it takes, in bytes.
    fn nbytes(&self) -> usize {
        let lists = self.lists.iter().map(|lens| size_of_val(lens.as_slice()));
        self.leaf.nbytes() + lists.sum::<usize>()
    }
}

/// Checks that what was decoded so far stays within the limit.
pub(super) fn check_size(columns: &[RawColumn]) -> Result<(), Fault> {
    let size = columns
        .iter()
        .map(RawColumn::nbytes)
        .fold(0, usize::saturating_add);
    if size > MAX_EPISODE_BYTES {
        return Err(Fault::TooLarge {
            what: "rows of one episode, or table, in bytes",
            found: size as u64,
            limit: MAX_EPISODE_BYTES as u64,
        });
    }
    Ok(())
}
