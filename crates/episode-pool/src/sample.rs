//! One frame, with its windows and its camera frames.

use std::sync::Arc;

use crate::assemble::FrameId;
use crate::pool::Dataset;
use crate::{Array, Field};

/// The named arrays of a sample or a batch, in the order of [`EpisodePool::fields`](crate::EpisodePool::fields).
#[derive(Debug, Clone, PartialEq)]
pub struct Fields {
    entries: Vec<(Arc<str>, Array)>,
}

impl Fields {
    pub(crate) fn new(fields: &[Field], arrays: Vec<Array>) -> Self {
        let keys = fields.iter().map(Field::shared_key);
        Self {
            entries: keys.zip(arrays).collect(),
        }
    }

    /// The array of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Array> {
        self.entries
            .iter()
            .find(|(name, _)| &**name == key)
            .map(|(_, array)| array)
    }

    /// All arrays with their names, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Array)> {
        self.entries.iter().map(|(name, array)| (&**name, array))
    }

    /// All arrays with their names, in order, to keep.
    pub fn into_entries(self) -> impl ExactSizeIterator<Item = (Arc<str>, Array)> {
        self.entries.into_iter()
    }
}

/// One emitted frame.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// The frame's episode, by its number in the dataset.
    pub episode_index: usize,
    /// The frame's position in its episode.
    pub frame_index: usize,
    /// A seed for augmentations: a function of (seed, epoch, episode, frame) alone.
    pub seed: u64,
    /// The values. A field without a window has its feature's shape; a windowed one has `[T]` before it.
    pub fields: Fields,
}

impl Sample {
    /// `arrays` have one row each.
    pub(crate) fn new(dataset: &Dataset, frame: FrameId, seed: u64, arrays: Vec<Array>) -> Self {
        let arrays = arrays.into_iter().map(Array::into_only_row).collect();
        Self {
            episode_index: frame.episode_index,
            frame_index: frame.frame_index,
            seed,
            fields: Fields::new(&dataset.fields, arrays),
        }
    }
}
