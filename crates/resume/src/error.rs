//! Why a position cannot be computed.

use crate::fleet::EpochEnd;

/// Why a state has no position in a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The batch size is 0.
    #[error("the batch size is 0: it must be at least 1")]
    ZeroBatchSize,

    /// There are no shares, not even the main process's.
    #[error("no worker shares were given: a rank has at least one, that of its main process")]
    NoWorkers,

    /// An epoch has no batches, so that no number of batches leads anywhere.
    #[error(
        "an epoch yields no batch: the largest share of {num_workers} worker(s) is {largest_share} samples, \
         the batch size {batch_size}, drop_last is {drop_last}; use a smaller batch size or fewer workers, \
         or keep incomplete batches"
    )]
    EmptyEpoch {
        /// The number of workers.
        num_workers: usize,
        /// The samples of the worker that has most.
        largest_share: u64,
        /// The samples in a full batch.
        batch_size: u64,
        /// Whether incomplete batches are dropped.
        drop_last: bool,
    },

    /// The batches of an epoch cannot be counted in 64 bits.
    #[error(
        "the batches of one epoch exceed 2^64 - 1: check the shares of the {num_workers} worker(s)"
    )]
    TooManyBatches {
        /// The number of workers.
        num_workers: usize,
    },

    /// There is not one share for each worker.
    #[error(
        "{found} shares were given for {world_size} rank(s) of {workers_per_rank} worker(s): expected one for each worker"
    )]
    WrongShares {
        /// The number of shares given.
        found: usize,
        /// The number of ranks.
        world_size: usize,
        /// The number of consumers of each rank.
        workers_per_rank: usize,
    },

    /// A rank takes no batch in an epoch, so that no number of batches leads anywhere.
    #[error(
        "rank {rank} yields no batch in an epoch: use a smaller batch size, or fewer ranks or workers"
    )]
    EmptyRank {
        /// The rank.
        rank: usize,
    },

    /// An epoch cannot end evenly.
    #[error(
        "the epoch cannot end evenly (epoch_end {epoch_end}): rank {rank} yields no batch or too few; use a smaller batch size, \
         fewer ranks or workers, or epoch_end exact"
    )]
    NoEvenEpoch {
        /// The first rank without batches.
        rank: usize,
        /// How the epoch should end.
        epoch_end: EpochEnd,
    },

    /// The consumers cannot serve the logical ones.
    #[error(
        "{world_size} rank(s) of {workers_per_rank} worker(s) cannot serve canonical_consumers {canonical_consumers}: one of the \
         numbers has to divide the other, and {} does not",
        world_size * workers_per_rank
    )]
    NotCanonical {
        /// The number of logical consumers.
        canonical_consumers: usize,
        /// The number of ranks.
        world_size: usize,
        /// The number of consumers of each rank.
        workers_per_rank: usize,
    },
}
