//! What a checkpoint keeps.

use crate::error::Error;
use crate::position::Position;
use crate::rotation::Rotation;

/// The samples in the first batches of each worker, the last of which may hold fewer than the others.
pub(crate) fn samples(batches: &[u64], batch_size: u64, shares: &[u64]) -> Box<[u64]> {
    let batches = batches.iter().zip(shares);
    batches
        .map(|(batches, &share)| batches.saturating_mul(batch_size).min(share))
        .collect()
}

/// How far a run has come; the same for every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// The batches that each rank's training loop has received since the run began, over all epochs.
    pub batches_consumed: u64,
    /// The samples in a full batch, at least 1.
    pub batch_size: u64,
}

impl State {
    /// Where a rank whose workers emit `shares` samples an epoch stands after `batches_consumed` batches.
    ///
    /// `shares` has one entry for each of the rank's workers, in their order, `[num_workers]`; one entry in all if the
    /// rank loads in its main process. With `drop_last` each worker drops its own incomplete last batch. A state at an
    /// epoch's end is the start of the next epoch.
    ///
    /// Takes `O(W log B)` time for `W` workers of at most `B` batches an epoch, whatever `batches_consumed` is.
    ///
    /// # Errors
    ///
    /// - [`Error::ZeroBatchSize`] if `batch_size` is 0.
    /// - [`Error::NoWorkers`] if `shares` is empty.
    /// - [`Error::EmptyEpoch`] if no share yields a batch.
    /// - [`Error::TooManyBatches`] if an epoch has more than 2^64 - 1 batches.
    ///
    /// # Examples
    ///
    /// ```
    /// use resume::State;
    ///
    /// // 4 and 2 full batches of 8 an epoch; worker 1 has none for the last two rounds.
    /// let state = State { batches_consumed: 6 * 1_000_000_000 + 5, batch_size: 8 };
    /// let position = state.position(&[32, 20], true)?;
    /// assert_eq!(position.epoch(), 1_000_000_000);
    /// assert_eq!(position.samples_to_skip(), [24, 16]);
    /// assert_eq!(position.next_worker(), 0);
    /// # Ok::<(), resume::Error>(())
    /// ```
    pub fn position(&self, shares: &[u64], drop_last: bool) -> Result<Position, Error> {
        let rotation = Rotation::new(shares, self.batch_size, drop_last)?;
        let per_epoch = rotation.batches_per_epoch();
        if per_epoch == 0 {
            return Err(Error::EmptyEpoch {
                num_workers: shares.len(),
                largest_share: shares.iter().copied().max().unwrap_or(0),
                batch_size: self.batch_size,
                drop_last,
            });
        }
        let batch = self.batches_consumed % per_epoch;
        let (next_worker, _) = rotation.at(batch);
        let samples_to_skip = samples(&rotation.given(batch), self.batch_size, shares);
        Ok(Position::new(
            self.batches_consumed / per_epoch,
            samples_to_skip,
            next_worker,
        ))
    }
}
