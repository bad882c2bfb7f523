//! Where a run goes on.

/// Where one rank goes on: an epoch, the samples its workers have behind them, and whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    epoch: u64,
    samples_to_skip: Box<[u64]>,
    next_worker: usize,
}

impl Position {
    /// `samples_to_skip` has at least one entry, and `next_worker` is the index of one.
    pub(crate) fn new(epoch: u64, samples_to_skip: Box<[u64]>, next_worker: usize) -> Self {
        debug_assert!(next_worker < samples_to_skip.len());
        Self {
            epoch,
            samples_to_skip,
            next_worker,
        }
    }

    /// The epoch of the next batch, counted from 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many samples of this epoch each worker has already emitted: `[num_workers]`.
    ///
    /// A worker without further batches may still have fewer than `batch_size` samples left, which `drop_last` drops.
    pub fn samples_to_skip(&self) -> &[u64] {
        &self.samples_to_skip
    }

    /// The worker that gives the next batch.
    pub fn next_worker(&self) -> usize {
        self.next_worker
    }

    /// The worker whose share the `i`-th worker of a fresh loader takes, for the rest of this epoch.
    ///
    /// A fresh loader asks its worker 0 first, but it is [`next_worker`](Self::next_worker)'s turn. Shifting all workers
    /// by that much continues the rotation. Later epochs start with worker 0 and need no shift.
    ///
    /// # Panics
    ///
    /// If `i` is not the index of a worker.
    ///
    /// # Examples
    ///
    /// ```
    /// use resume::State;
    ///
    /// let position = State { batches_consumed: 2, batch_size: 4 }.position(&[40, 40, 40], false)?;
    /// assert_eq!([0, 1, 2].map(|i| position.worker_for(i)), [2, 0, 1]);
    /// # Ok::<(), resume::Error>(())
    /// ```
    pub fn worker_for(&self, i: usize) -> usize {
        let num_workers = self.samples_to_skip.len();
        assert!(i < num_workers, "worker {i} is not one of {num_workers}");
        // Without the sum, which might overflow.
        let before_wrap = num_workers - self.next_worker;
        if i < before_wrap {
            self.next_worker + i
        } else {
            i - before_wrap
        }
    }
}
