//! Who is asking: one worker of one rank, among all of a run's consumers.

use crate::error::Error;

/// One consumer's place in a run: which rank of how many, and which of that rank's workers.
///
/// Invariants:
///
/// - `rank < world_size`, and `worker < consumers_per_rank()`.
/// - `num_workers` may be 0, as in torch: then the rank's main process is its only consumer, as worker 0.
/// - the number of consumers fits a `usize`.
///
/// # Examples
///
/// ```
/// use pool_core::Topology;
///
/// let topology = Topology::new(1, 2, 3, 4)?;
/// assert_eq!(topology.num_consumers(), 8);
/// assert_eq!(topology.consumer(), 7);
/// assert!(Topology::new(2, 2, 0, 0).is_err());
/// # Ok::<(), pool_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Topology {
    rank: usize,
    world_size: usize,
    worker: usize,
    num_workers: usize,
}

impl Topology {
    /// One process, alone and without workers.
    #[must_use]
    pub fn single() -> Self {
        Self {
            rank: 0,
            world_size: 1,
            worker: 0,
            num_workers: 0,
        }
    }

    /// Worker `worker` of `num_workers`, of rank `rank` of `world_size`.
    ///
    /// # Errors
    ///
    /// If `world_size` is 0, `rank` is not below it, `worker` is not below `max(1, num_workers)`, or the number of
    /// consumers does not fit a `usize`.
    pub fn new(
        rank: usize,
        world_size: usize,
        worker: usize,
        num_workers: usize,
    ) -> Result<Self, Error> {
        if world_size == 0 {
            return Err(Error::NoRanks);
        }
        if rank >= world_size {
            return Err(Error::RankOutOfRange { rank, world_size });
        }
        let consumers_per_rank = num_workers.max(1);
        if worker >= consumers_per_rank {
            return Err(Error::WorkerOutOfRange {
                worker,
                num_workers,
            });
        }
        if world_size.checked_mul(consumers_per_rank).is_none() {
            return Err(Error::TooManyConsumers {
                world_size,
                num_workers,
            });
        }
        Ok(Self {
            rank,
            world_size,
            worker,
            num_workers,
        })
    }

    /// The same rank, seen from one of its workers.
    ///
    /// # Errors
    ///
    /// If `worker` is not below `max(1, num_workers)`, or the number of consumers does not fit a `usize`.
    pub fn with_worker(self, worker: usize, num_workers: usize) -> Result<Self, Error> {
        Self::new(self.rank, self.world_size, worker, num_workers)
    }

    /// The rank of this process, from 0.
    #[must_use]
    pub fn rank(self) -> usize {
        self.rank
    }

    /// The number of ranks, at least 1.
    #[must_use]
    pub fn world_size(self) -> usize {
        self.world_size
    }

    /// The worker within its rank, from 0.
    #[must_use]
    pub fn worker(self) -> usize {
        self.worker
    }

    /// The number of workers of each rank; 0 means that the main process does the work.
    #[must_use]
    pub fn num_workers(self) -> usize {
        self.num_workers
    }

    /// The number of consumers of each rank: `max(1, num_workers)`.
    #[must_use]
    pub fn consumers_per_rank(self) -> usize {
        self.num_workers.max(1)
    }

    /// The number of consumers of the whole run.
    #[must_use]
    pub fn num_consumers(self) -> usize {
        self.world_size * self.consumers_per_rank()
    }

    /// This consumer's number among all, rank by rank: `rank * consumers_per_rank + worker`.
    #[must_use]
    pub fn consumer(self) -> usize {
        self.rank * self.consumers_per_rank() + self.worker
    }
}
