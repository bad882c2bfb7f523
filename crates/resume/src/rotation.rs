//! The order in which a rank's workers give batches, in closed form.
//!
//! Round `r` of an epoch holds the `r`-th batch of every worker that has one, in worker order. This is the order of torch's
//! `DataLoader` over an iterable dataset: it hands out tasks to its workers in turn, yields the results in that order,
//! and passes over a worker once that has signalled its end. (`in_order = False` gives up this promise.)

use crate::error::Error;

/// How many batches a rank receives in one epoch from workers that emit `shares` samples each: `[num_workers]`.
///
/// With `drop_last` each worker drops its own incomplete last batch.
///
/// # Errors
///
/// - [`Error::ZeroBatchSize`] if `batch_size` is 0.
/// - [`Error::NoWorkers`] if `shares` is empty.
/// - [`Error::TooManyBatches`] if there are more than 2^64 - 1.
///
/// # Examples
///
/// ```
/// assert_eq!(resume::batches_per_epoch(&[7, 3, 5], 2, false), Ok(9));
/// assert_eq!(resume::batches_per_epoch(&[7, 3, 5], 2, true), Ok(6));
/// ```
pub fn batches_per_epoch(shares: &[u64], batch_size: u64, drop_last: bool) -> Result<u64, Error> {
    Ok(Rotation::new(shares, batch_size, drop_last)?.batches_per_epoch())
}

/// The batches that each worker gives in an epoch.
#[derive(Debug, Clone)]
pub(crate) struct Rotation {
    // [num_workers], at least one
    batches: Box<[u64]>,
    // The same, ascending, and the sum of those before each.
    ascending: Box<[(u64, u64)]>,
    // The sum of all.
    per_epoch: u64,
}

impl Rotation {
    pub(crate) fn new(shares: &[u64], batch_size: u64, drop_last: bool) -> Result<Self, Error> {
        if batch_size == 0 {
            return Err(Error::ZeroBatchSize);
        }
        if shares.is_empty() {
            return Err(Error::NoWorkers);
        }
        let count = |share: &u64| {
            if drop_last {
                share / batch_size
            } else {
                share.div_ceil(batch_size)
            }
        };
        let batches: Box<[u64]> = shares.iter().map(count).collect();
        let sum = batches.iter().try_fold(0_u64, |sum, &n| sum.checked_add(n));
        sum.ok_or(Error::TooManyBatches {
            num_workers: shares.len(),
        })?;
        Ok(Self::of(batches))
    }

    /// Workers that give so many batches each, no more than 2^64 - 1 together.
    pub(crate) fn of(batches: Box<[u64]>) -> Self {
        let mut ascending: Box<[_]> = batches.iter().map(|&n| (n, 0)).collect();
        ascending.sort_unstable();
        let mut per_epoch = 0;
        for (n, before) in &mut ascending {
            *before = per_epoch;
            per_epoch += *n;
        }
        Self {
            batches,
            ascending,
            per_epoch,
        }
    }

    pub(crate) fn batches_per_epoch(&self) -> u64 {
        self.per_epoch
    }

    /// The batches that each worker gives in an epoch: `[num_workers]`.
    pub(crate) fn batches(&self) -> &[u64] {
        &self.batches
    }

    /// Whose the `k`-th batch of an epoch is, counted from 0, and which of that worker's: the round.
    ///
    /// `k` must be below [`batches_per_epoch`](Self::batches_per_epoch).
    pub(crate) fn at(&self, k: u64) -> (usize, u64) {
        debug_assert!(k < self.per_epoch);
        let rounds = self.whole_rounds(k);
        // Of the round that is under way, the first workers that still have a batch have given it.
        let given = k - self.in_rounds(rounds);
        let mut in_turn = (0..self.batches.len()).filter(|&worker| self.batches[worker] > rounds);
        let worker = usize::try_from(given)
            .ok()
            .and_then(|given| in_turn.nth(given))
            .expect("a round under way has a batch left");
        (worker, rounds)
    }

    /// How many batches each worker has given after the first `k` of an epoch, or after all of it: `[num_workers]`.
    pub(crate) fn given(&self, k: u64) -> Box<[u64]> {
        if k >= self.per_epoch {
            return self.batches.clone();
        }
        let (next_worker, rounds) = self.at(k);
        let batches = self.batches.iter().enumerate();
        batches
            .map(|(worker, &n)| n.min(rounds + u64::from(worker < next_worker)))
            .collect()
    }

    /// The number of rounds that lie wholly within the first `k` batches.
    fn whole_rounds(&self, k: u64) -> u64 {
        // in_rounds(low) <= k < in_rounds(high) holds throughout.
        let mut low = 0;
        let mut high = self.ascending.last().map_or(0, |&(n, _)| n);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.in_rounds(middle) <= k {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }

    /// The place in the epoch of a worker's batch of a round: the inverse of [`at`](Self::at).
    pub(crate) fn place(&self, worker: usize, round: u64) -> u64 {
        let earlier = self.batches[..worker].iter().filter(|&&n| n > round);
        self.in_rounds(round) + earlier.count() as u64
    }

    /// The number of batches in the first `rounds` rounds; at most that of the epoch.
    fn in_rounds(&self, rounds: u64) -> u64 {
        // The workers that have run dry by then, and those that give one in every round.
        let dry = self.ascending.partition_point(|&(n, _)| n <= rounds);
        match self.ascending.get(dry) {
            Some((_, before)) => before + rounds * (self.ascending.len() - dry) as u64,
            None => self.per_epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_shrink_as_workers_run_dry() {
        let rotation = Rotation::new(&[7, 3, 5], 2, false).unwrap();
        assert_eq!(
            [0, 1, 2, 3, 4].map(|rounds| rotation.in_rounds(rounds)),
            [0, 3, 6, 8, 9]
        );
        let whole: Vec<u64> = (0..9).map(|k| rotation.whole_rounds(k)).collect();
        assert_eq!(whole, [0, 0, 0, 1, 1, 1, 2, 2, 3]);
        for k in 0..9 {
            let (worker, round) = rotation.at(k);
            assert_eq!(rotation.place(worker, round), k);
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let rotation = Rotation::new(&[u64::MAX, 0], 1, false).unwrap();
        assert_eq!(rotation.at(u64::MAX - 1), (0, u64::MAX - 1));
        assert_eq!(*rotation.given(u64::MAX - 1), [u64::MAX - 1, 0]);
    }
}
