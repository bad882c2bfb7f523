//! Batches: samples collated into contiguous arrays.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::assemble;
use crate::{Epoch, EpochReport, Error, Fields};

/// The most memory that one batch may take: far beyond what an accelerator is fed at once.
const MAX_BATCH_BYTES: usize = 64 << 30;

/// Some samples, collated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Batch {
    /// The episode of every sample, `[B]`.
    pub episode_indices: Vec<usize>,
    /// The position of every sample in its episode, `[B]`.
    pub frame_indices: Vec<usize>,
    /// The augmentation seed of every sample, `[B]`.
    pub seeds: Vec<u64>,
    /// The values: each field's sample shape with `[B]` before it.
    pub fields: Fields,
}

impl Batch {
    /// The number of samples, `B`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seeds.len()
    }

    /// Whether there is no sample; never so for a batch that an epoch yields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seeds.is_empty()
    }

    /// The size of the values in memory, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.fields
            .iter()
            .map(|(_, array)| array.size_bytes())
            .sum()
    }
}

/// An epoch in batches; made by [`Epoch::batches`].
#[derive(Debug)]
#[must_use = "batches do nothing until they are iterated"]
pub struct Batches {
    epoch: Epoch,
    batch_size: usize,
    drop_last: bool,
}

impl Batches {
    pub(crate) fn new(epoch: Epoch, batch_size: usize, drop_last: bool) -> Result<Self, Error> {
        if batch_size == 0 {
            return Err(Error::Option {
                option: "batch_size",
                found: "0".to_owned(),
                expected: "at least 1",
            });
        }
        let sample_bytes = epoch.pool().dataset.sample_bytes;
        // No batch is longer than the epoch.
        let frames = usize::try_from(epoch.remaining()).unwrap_or(usize::MAX);
        let fits = batch_size
            .min(frames)
            .checked_mul(sample_bytes)
            .is_some_and(|bytes| bytes <= MAX_BATCH_BYTES);
        if !fits {
            return Err(Error::BatchTooLarge {
                batch_size,
                sample_bytes,
                limit_bytes: MAX_BATCH_BYTES,
            });
        }
        Ok(Self {
            epoch,
            batch_size,
            drop_last,
        })
    }

    /// What the epoch did so far.
    #[must_use]
    pub fn report(&self) -> EpochReport {
        self.epoch.report()
    }

    /// A mark that ends the batches where they are, once it is set.
    pub(crate) fn interrupter(&self) -> Arc<AtomicBool> {
        self.epoch.interrupter()
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let fields = self.epoch.pool().dataset.clone();
        let fields = &fields.fields;
        // A short epoch must not cost a long batch's memory.
        let remaining = usize::try_from(self.epoch.remaining()).unwrap_or(usize::MAX);
        let len = remaining.min(self.batch_size);
        if len == 0 || (self.drop_last && len < self.batch_size) {
            return None;
        }
        let mut arrays = assemble::arrays(fields, len);
        let emissions = match self.epoch.write_next(&mut arrays, len) {
            Ok(emissions) if emissions.is_empty() => return None,
            Ok(emissions) => emissions,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(Batch {
            episode_indices: emissions.iter().map(|e| e.episode_index).collect(),
            frame_indices: emissions.iter().map(|e| e.frame_index).collect(),
            seeds: emissions.iter().map(|e| e.seed).collect(),
            fields: Fields::new(fields, arrays),
        }))
    }
}
