//! Batches: samples collated into contiguous arrays.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pool_core::Coverage;

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
    lengths: Lengths,
}

/// How many samples come in each batch.
#[derive(Debug)]
enum Lengths {
    /// So many, as long as there are any.
    Of { batch_size: usize, drop_last: bool },
    /// As a fleet's turns say.
    Turns(resume::Turns),
}

impl Batches {
    pub(crate) fn new(epoch: Epoch, batch_size: usize, drop_last: bool) -> Result<Self, Error> {
        check_size(&epoch, batch_size)?;
        Ok(Self {
            epoch,
            lengths: Lengths::Of {
                batch_size,
                drop_last,
            },
        })
    }

    /// The batches of a worker whose course these are the turns of.
    pub(crate) fn of_turns(
        epoch: Epoch,
        batch_size: usize,
        turns: resume::Turns,
    ) -> Result<Self, Error> {
        check_size(&epoch, batch_size)?;
        Ok(Self {
            epoch,
            lengths: Lengths::Turns(turns),
        })
    }

    /// What the epoch did so far.
    #[must_use]
    pub fn report(&self) -> EpochReport {
        self.epoch.report()
    }

    /// The epoch's number.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.epoch()
    }

    /// The number of samples still to come, those that `drop_last` leaves out included.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.epoch.remaining()
    }

    /// The digest of the frames that are to be emitted in this epoch, or in this part of it.
    #[must_use]
    pub fn owned(&self) -> Coverage {
        self.epoch.owned()
    }

    /// A mark that ends the batches where they are, once it is set.
    pub(crate) fn interrupter(&self) -> Arc<AtomicBool> {
        self.epoch.interrupter()
    }

    /// The number of samples in the next batch; `None` if there is none.
    fn next_length(&mut self) -> Option<usize> {
        let remaining = self.epoch.remaining();
        match &mut self.lengths {
            Lengths::Of {
                batch_size,
                drop_last,
            } => {
                // A short epoch must not cost a long batch's memory.
                let len = usize::try_from(remaining)
                    .unwrap_or(usize::MAX)
                    .min(*batch_size);
                let is_dropped = len == 0 || (*drop_last && len < *batch_size);
                (!is_dropped).then_some(len)
            }
            Lengths::Turns(_) if remaining == 0 => None,
            Lengths::Turns(turns) => {
                let turn = turns.next()?;
                Some(usize::try_from(turn.len).expect("no turn is longer than a batch"))
            }
        }
    }

    /// The batch of the next turn: an empty one where all of it is left out.
    pub(crate) fn next_turn(&mut self) -> Option<Result<Batch, Error>> {
        let dataset = Arc::clone(self.epoch.dataset());
        let fields = &dataset.fields;
        let len = self.next_length()?;
        let mut arrays = assemble::arrays(fields, len);
        let emissions = match self.epoch.write_next(&mut arrays, len) {
            Ok(emissions) if emissions.is_empty() && self.epoch.has_failed() => return None,
            Ok(emissions) => emissions,
            Err(error) => return Some(Err(error)),
        };
        for array in &mut arrays {
            array.truncate(emissions.len());
        }
        Some(Ok(Batch {
            episode_indices: emissions.iter().map(|e| e.episode_index).collect(),
            frame_indices: emissions.iter().map(|e| e.frame_index).collect(),
            seeds: emissions.iter().map(|e| e.seed).collect(),
            fields: Fields::new(fields, arrays),
        }))
    }
}

/// Whether a batch can be held in memory.
fn check_size(epoch: &Epoch, batch_size: usize) -> Result<(), Error> {
    if batch_size == 0 {
        return Err(Error::Option {
            option: "batch_size",
            found: "0".to_owned(),
            expected: "at least 1",
        });
    }
    let sample_bytes = epoch.dataset().sample_bytes;
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
    Ok(())
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_turn()? {
                Ok(batch) if batch.is_empty() => {}
                batch => return Some(batch),
            }
        }
    }
}
