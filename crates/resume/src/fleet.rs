//! All batches of an epoch, over all ranks and workers.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::rotation::Rotation;
use crate::state::samples;

/// What happens at the end of an epoch when ranks have different numbers of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EpochEnd {
    /// Every sample comes exactly once, and ranks may take different numbers of steps. Trainers whose ranks wait for each other in
    /// every step hang at the end of such an epoch.
    #[default]
    Exact,
    /// Every rank ends with the shortest: samples are left out, none comes twice.
    DropTail,
    /// Every rank goes on until the longest ends, and repeats samples from the start of its own epoch: none is left out.
    Wrap,
}

/// As options and saved states spell it.
impl fmt::Display for EpochEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::DropTail => "drop_tail",
            Self::Wrap => "wrap",
        })
    }
}

/// How samples become batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batching {
    /// The samples in a full batch, at least 1.
    pub batch_size: u64,
    /// Whether a consumer's last batch is left out when it is not full.
    pub drop_last: bool,
    /// How the epoch ends.
    pub epoch_end: EpochEnd,
}

/// One batch: which consumer's samples it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    /// The consumer, by its place among the shares that the fleet was made with.
    pub consumer: usize,
    /// The samples of the epoch before it, of that consumer. More than its share has are repeated from its start.
    pub start: u64,
    /// The samples in it, at least 1.
    pub len: u64,
}

/// All batches of one epoch: which rank and worker gives which samples of which consumer, in what order. Found by arithmetic
/// alone, wherever one looks.
///
/// There are two ways to deal batches out:
///
/// - [`new`](Self::new): every worker is a consumer of its own, and each rank takes its workers' batches in turn. The order depends
///   on the numbers of ranks and workers.
/// - [`canonical`](Self::canonical): a number of logical consumers is fixed once and for all; their batches, taken in turn, are one
///   global sequence, and the ranks take from that in turn. The order does not depend on who serves it.
///
/// # Examples
///
/// ```
/// use resume::{Batching, EpochEnd, Fleet, Turn};
///
/// // Two ranks of two workers, with 6, 4, 4 and 4 samples; batches of 2.
/// let batching = Batching { batch_size: 2, drop_last: false, epoch_end: EpochEnd::DropTail };
/// let fleet = Fleet::new(&[6, 4, 4, 4], 2, 2, batching)?;
/// assert_eq!([fleet.num_batches(0), fleet.num_batches(1)], [4, 4]);
/// assert_eq!(fleet.num_dropped(), 2);
/// assert_eq!(fleet.turn(0, 2), Some(Turn { consumer: 0, start: 2, len: 2 }));
/// assert_eq!(fleet.emitted(3), [4, 2, 4, 2]);
/// # Ok::<(), resume::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fleet {
    world_size: usize,
    workers_per_rank: usize,
    batch_size: u64,
    /// The samples that each consumer has in an epoch.
    shares: Box<[u64]>,
    deal: Deal,
}

#[derive(Debug, Clone)]
enum Deal {
    Ranks(Box<[Rank]>),
    Canonical {
        /// The batches of all logical consumers.
        rotation: Rotation,
        /// The global batches that are dealt out: those from `start` on, up to and without `end`. Beyond the rotation's they repeat it.
        start: u64,
        end: u64,
    },
}

/// The batches of one rank, whose workers are consumers.
#[derive(Debug, Clone)]
struct Rank {
    rotation: Rotation,
    /// The samples that each worker gives, all of them in batches: `[workers_per_rank]`.
    samples: Box<[u64]>,
}

impl Rank {
    fn new(shares: &[u64], batch_size: u64, drop_last: bool) -> Result<Self, Error> {
        let rotation = Rotation::new(shares, batch_size, drop_last)?;
        Ok(Self {
            samples: samples(rotation.batches(), batch_size, shares),
            rotation,
        })
    }

    /// The first `num_batches` of its batches.
    fn cut(&self, num_batches: u64, batch_size: u64) -> Self {
        let batches = self.rotation.given(num_batches);
        Self {
            samples: samples(&batches, batch_size, &self.samples),
            rotation: Rotation::of(batches),
        }
    }

    /// Its batches and some more, up to `num_batches`: each worker that has samples gives as many more as the others, the first ones perhaps
    /// one more. A worker that gives more fills up its last batch first.
    fn prolonged(&self, num_batches: u64, batch_size: u64) -> Self {
        let more = num_batches - self.rotation.batches_per_epoch();
        let has_samples = |&&samples: &&u64| samples > 0;
        let num_workers = self.samples.iter().filter(has_samples).count() as u64;
        let mut batches: Box<[u64]> = self.rotation.batches().into();
        let mut all_samples = self.samples.clone();
        let able = batches.iter_mut().zip(&mut all_samples);
        let able = able.filter(|(_, samples)| **samples > 0);
        for (nth, (batches, samples)) in (0..).zip(able) {
            let extra = more / num_workers + u64::from(nth < more % num_workers);
            if extra > 0 {
                *batches += extra;
                *samples = batches.saturating_mul(batch_size);
            }
        }
        Self {
            samples: all_samples,
            rotation: Rotation::of(batches),
        }
    }
}

impl Fleet {
    /// A fleet in which every worker is a consumer, with `shares` samples an epoch: `[world_size * workers_per_rank]`, rank by rank.
    ///
    /// # Errors
    ///
    /// - [`Error::WrongShares`] if there is not one share for each worker.
    /// - [`Error::ZeroBatchSize`], [`Error::TooManyBatches`].
    /// - [`Error::NoEvenEpoch`] if a rank yields no batch, and the epoch is to end evenly.
    pub fn new(
        shares: &[u64],
        world_size: usize,
        workers_per_rank: usize,
        batching: Batching,
    ) -> Result<Self, Error> {
        let expected = world_size.checked_mul(workers_per_rank);
        if shares.is_empty() || expected != Some(shares.len()) {
            return Err(Error::WrongShares {
                found: shares.len(),
                world_size,
                workers_per_rank,
            });
        }
        let Batching {
            batch_size,
            drop_last,
            epoch_end,
        } = batching;
        let ranks: Box<[Rank]> = shares
            .chunks(workers_per_rank)
            .map(|shares| Rank::new(shares, batch_size, drop_last))
            .collect::<Result<_, _>>()?;
        let counts = || ranks.iter().map(|rank| rank.rotation.batches_per_epoch());
        if epoch_end != EpochEnd::Exact
            && let Some(rank) = counts().position(|count| count == 0)
        {
            return Err(Error::NoEvenEpoch { rank, epoch_end });
        }
        let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let ranks = match epoch_end {
            EpochEnd::Exact => ranks,
            EpochEnd::DropTail => ranks
                .iter()
                .map(|rank| rank.cut(fewest, batch_size))
                .collect(),
            EpochEnd::Wrap => ranks
                .iter()
                .map(|rank| rank.prolonged(most, batch_size))
                .collect(),
        };
        Ok(Self {
            world_size,
            workers_per_rank,
            batch_size,
            shares: shares.into(),
            deal: Deal::Ranks(ranks),
        })
    }

    /// A fleet that serves a global sequence of batches, of logical consumers with `shares` samples an epoch. Global batch `g` is the
    /// `g / world_size`-th of rank `g % world_size`.
    ///
    /// The number of ranks times workers has to divide that of the logical consumers, or to be a multiple of it: so no
    /// worker serves more of them than it has to. With an even end, the sequence is cut or prolonged to a multiple of the number of logical
    /// consumers (and of the number of ranks, should that be greater), which is the same for every topology.
    ///
    /// # Errors
    ///
    /// - [`Error::NotCanonical`] if neither of the numbers divides the other.
    /// - [`Error::NoWorkers`] if there are no shares, ranks or workers.
    /// - [`Error::ZeroBatchSize`], [`Error::TooManyBatches`].
    /// - [`Error::NoEvenEpoch`] if the epoch is to end evenly, and has too few batches to leave out any, or none to repeat.
    ///
    /// # Examples
    ///
    /// ```
    /// use resume::{Batching, EpochEnd, Fleet, Turn};
    ///
    /// let batching = Batching { batch_size: 2, drop_last: false, epoch_end: EpochEnd::Exact };
    /// let global = |world_size| -> Result<Vec<Turn>, resume::Error> {
    ///     let fleet = Fleet::canonical(&[5, 4, 4, 2], world_size, 1, batching)?;
    ///     let steps = (0..fleet.num_batches(0)).flat_map(|step| (0..world_size).map(move |rank| (rank, step)));
    ///     Ok(steps.filter_map(|(rank, step)| fleet.turn(rank, step)).collect())
    /// };
    /// let turns: Vec<_> = global(1)?.iter().map(|turn| (turn.consumer, turn.start, turn.len)).collect();
    /// assert_eq!(turns, [(0, 0, 2), (1, 0, 2), (2, 0, 2), (3, 0, 2), (0, 2, 2), (1, 2, 2), (2, 2, 2), (0, 4, 1)]);
    /// assert_eq!(global(2)?, global(1)?);
    /// assert_eq!(global(4)?, global(1)?);
    /// assert!(global(3).is_err());
    /// # Ok::<(), resume::Error>(())
    /// ```
    pub fn canonical(
        shares: &[u64],
        world_size: usize,
        workers_per_rank: usize,
        batching: Batching,
    ) -> Result<Self, Error> {
        let consumers = world_size.checked_mul(workers_per_rank);
        let consumers = consumers.filter(|&consumers| consumers > 0);
        let consumers = consumers.ok_or(Error::NoWorkers)?;
        let rotation = Rotation::new(shares, batching.batch_size, batching.drop_last)?;
        if !consumers.is_multiple_of(shares.len()) && !shares.len().is_multiple_of(consumers) {
            return Err(Error::NotCanonical {
                canonical_consumers: shares.len(),
                world_size,
                workers_per_rank,
            });
        }
        let count = rotation.batches_per_epoch();
        let even = least_common_multiple(shares.len() as u64, world_size as u64);
        let even = even.ok_or(Error::TooManyBatches {
            num_workers: shares.len(),
        })?;
        let end = match batching.epoch_end {
            EpochEnd::Exact => Some(count),
            EpochEnd::DropTail => Some(count - count % even).filter(|&end| end > 0),
            EpochEnd::Wrap => count.checked_next_multiple_of(even).filter(|&end| end > 0),
        };
        let end = end.ok_or(Error::NoEvenEpoch {
            rank: 0,
            epoch_end: batching.epoch_end,
        })?;
        Ok(Self {
            world_size,
            workers_per_rank,
            batch_size: batching.batch_size,
            shares: shares.into(),
            deal: Deal::Canonical {
                rotation,
                start: 0,
                end,
            },
        })
    }

    /// The rest of a canonical epoch of which another topology has taken the first `batches`, over all its ranks. Ranks count their
    /// batches anew from there. No change to a fleet that is not canonical.
    ///
    /// With an even end, all ranks are given equally many of what is left: with [`EpochEnd::DropTail`] fewer, with [`EpochEnd::Wrap`] more
    /// than the epoch had by at most one for each rank.
    #[must_use]
    pub fn after(mut self, batches: u64, epoch_end: EpochEnd) -> Self {
        if let Deal::Canonical { start, end, .. } = &mut self.deal {
            *start = batches.min(*end);
            let left = *end - *start;
            let world_size = self.world_size as u64;
            *end = match epoch_end {
                EpochEnd::Exact => *end,
                EpochEnd::DropTail => *end - left % world_size,
                EpochEnd::Wrap => *start + left.next_multiple_of(world_size),
            };
        }
        self
    }

    /// The number of batches that a rank takes in an epoch.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    #[must_use]
    pub fn num_batches(&self, rank: usize) -> u64 {
        assert!(
            rank < self.world_size,
            "rank {rank} is not below {}",
            self.world_size
        );
        match &self.deal {
            Deal::Ranks(ranks) => ranks[rank].rotation.batches_per_epoch(),
            Deal::Canonical { start, end, .. } => (end - start)
                .saturating_sub(rank as u64)
                .div_ceil(self.world_size as u64),
        }
    }

    /// The number of samples in a worker's batches, of those that its rank takes from `first_batch` on, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such rank, or no such worker.
    #[must_use]
    pub fn num_samples(&self, rank: usize, worker: usize, first_batch: u64) -> u64 {
        match &self.deal {
            Deal::Ranks(ranks) => {
                let rank = &ranks[rank];
                let given = rank.rotation.given(first_batch)[worker];
                let samples = rank.samples[worker];
                samples - given.saturating_mul(self.batch_size).min(samples)
            }
            Deal::Canonical { .. } => {
                let own = self.own_batches(rank, worker, first_batch);
                let full = own.count().saturating_mul(self.batch_size);
                let missing = self.short_batches().filter(|&(global, _)| {
                    self.rank_batch(rank, global)
                        .is_some_and(|batch| own.contains(batch))
                });
                full - missing.map(|(_, missing)| missing).sum::<u64>()
            }
        }
    }

    /// The most batches that any rank takes in an epoch: the steps of ranks that wait for each other.
    #[must_use]
    pub fn num_steps(&self) -> u64 {
        let ranks = 0..self.world_size;
        ranks.map(|rank| self.num_batches(rank)).max().unwrap_or(0)
    }

    /// How far into a consumer's samples, repeated ones included, its last batch of the epoch goes: the samples that its order has to be
    /// made for.
    ///
    /// # Panics
    ///
    /// If there is no such consumer.
    #[must_use]
    pub fn reach(&self, consumer: usize) -> u64 {
        match &self.deal {
            Deal::Ranks(ranks) => {
                let workers = self.workers_per_rank;
                ranks[consumer / workers].samples[consumer % workers]
            }
            // Its share has no full batch, and no other is given.
            Deal::Canonical { rotation, .. } if rotation.batches()[consumer] == 0 => 0,
            Deal::Canonical { rotation, end, .. } => {
                let share = self.shares[consumer];
                let samples = |batches: u64| batches.saturating_mul(self.batch_size).min(share);
                let per_lap = rotation.batches_per_epoch().max(1);
                let (laps, more) = (end / per_lap, rotation.given(end % per_lap)[consumer]);
                match (laps, more) {
                    (0, more) => samples(more),
                    (laps, 0) => (laps - 1) * share + samples(rotation.batches()[consumer]),
                    (laps, more) => laps * share + samples(more),
                }
            }
        }
    }

    /// The samples that no batch of the epoch holds.
    #[must_use]
    pub fn num_dropped(&self) -> u64 {
        let total: u64 = self.shares.iter().sum();
        let given: u64 = match &self.deal {
            Deal::Ranks(ranks) => {
                let samples = ranks.iter().flat_map(|rank| &rank.samples);
                let once = samples
                    .zip(&self.shares)
                    .map(|(&samples, &share)| samples.min(share));
                once.sum()
            }
            Deal::Canonical { rotation, end, .. } => self.in_lap(rotation, *end),
        };
        total - given
    }

    /// The samples that come again after all of their consumer's have come.
    #[must_use]
    pub fn num_repeated(&self) -> u64 {
        match &self.deal {
            Deal::Ranks(ranks) => {
                let samples = ranks.iter().flat_map(|rank| &rank.samples);
                let again = samples
                    .zip(&self.shares)
                    .map(|(&samples, &share)| samples.saturating_sub(share));
                again.sum()
            }
            Deal::Canonical { rotation, end, .. } => {
                let per_lap = rotation.batches_per_epoch();
                match end.checked_sub(per_lap) {
                    Some(more) if per_lap > 0 => {
                        let laps = self
                            .in_lap(rotation, per_lap)
                            .saturating_mul(more / per_lap);
                        laps.saturating_add(self.in_lap(rotation, more % per_lap))
                    }
                    _ => 0,
                }
            }
        }
    }

    /// The samples in the first batches of a rotation.
    fn in_lap(&self, rotation: &Rotation, batches: u64) -> u64 {
        samples(&rotation.given(batches), self.batch_size, &self.shares)
            .iter()
            .sum()
    }

    /// A rank's batch of an epoch, counted from 0; `None` if it takes no more.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    #[must_use]
    pub fn turn(&self, rank: usize, batch: u64) -> Option<Turn> {
        if batch >= self.num_batches(rank) {
            return None;
        }
        match &self.deal {
            Deal::Ranks(ranks) => {
                let (worker, round) = ranks[rank].rotation.at(batch);
                Some(self.worker_turn(ranks, rank, worker, round))
            }
            Deal::Canonical { .. } => Some(self.global_turn(self.global(rank, batch))),
        }
    }

    /// The worker of a rank that gives one of its batches, counted from 0. It is the first one where the rank takes no more.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    #[must_use]
    pub fn worker_of(&self, rank: usize, batch: u64) -> usize {
        match &self.deal {
            _ if batch >= self.num_batches(rank) => 0,
            Deal::Ranks(ranks) => ranks[rank].rotation.at(batch).0,
            Deal::Canonical { .. } => self.slot(batch),
        }
    }

    /// The batches that a worker gives in an epoch, of those that its rank takes from `first_batch` on, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such rank, or no such worker.
    pub fn worker_turns(self: &Arc<Self>, rank: usize, worker: usize, first_batch: u64) -> Turns {
        Turns {
            own: self.own_batches(rank, worker, first_batch),
            fleet: Arc::clone(self),
            rank,
            worker,
        }
    }

    /// The batches of a worker from the rank's `first_batch` on: by the worker's own count where workers are consumers, else by
    /// the rank's.
    fn own_batches(&self, rank: usize, worker: usize, first_batch: u64) -> OwnBatches {
        let workers = self.workers_per_rank;
        assert!(worker < workers, "worker {worker} is not below {workers}");
        match &self.deal {
            Deal::Ranks(ranks) => OwnBatches {
                next: ranks[rank].rotation.given(first_batch)[worker],
                end: ranks[rank].rotation.batches()[worker],
                step: 1,
            },
            Deal::Canonical { .. } => {
                let wait = (worker + workers - self.slot(first_batch)) % workers;
                OwnBatches {
                    next: first_batch.saturating_add(wait as u64),
                    end: self.num_batches(rank),
                    step: workers as u64,
                }
            }
        }
    }

    /// The global batches of a canonical epoch that are not full, and the samples that each of them lacks.
    fn short_batches(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let parts = match &self.deal {
            Deal::Ranks(_) => None,
            Deal::Canonical { rotation, end, .. } => Some((rotation, *end)),
        };
        parts.into_iter().flat_map(move |(rotation, end)| {
            let per_lap = rotation.batches_per_epoch();
            let consumers = self.shares.iter().zip(rotation.batches()).enumerate();
            let short = consumers.filter_map(move |(consumer, (&share, &batches))| {
                let missing = batches.saturating_mul(self.batch_size).checked_sub(share)?;
                let last = rotation.place(consumer, batches.checked_sub(1)?);
                (missing > 0).then_some((last, missing))
            });
            short.flat_map(move |(place, missing)| {
                let laps = (0..).map(move |lap: u64| lap * per_lap + place);
                laps.take_while(move |&global| global < end)
                    .map(move |global| (global, missing))
            })
        })
    }

    /// The number among a rank's batches of a global one; `None` if it is another rank's, or was taken before.
    fn rank_batch(&self, rank: usize, global: u64) -> Option<u64> {
        let Deal::Canonical { start, .. } = &self.deal else {
            return None;
        };
        let left = global.checked_sub(*start)?.checked_sub(rank as u64)?;
        let world_size = self.world_size as u64;
        left.is_multiple_of(world_size).then_some(left / world_size)
    }

    /// The samples that each consumer has given once every rank has taken `batches` of an epoch, or all that it takes: one for each
    /// share. More than a share are repeated.
    #[must_use]
    pub fn emitted(&self, batches: u64) -> Vec<u64> {
        match &self.deal {
            Deal::Ranks(ranks) => {
                let given = |rank: &Rank| {
                    samples(
                        &rank.rotation.given(batches),
                        self.batch_size,
                        &rank.samples,
                    )
                };
                ranks.iter().flat_map(given).collect()
            }
            Deal::Canonical { rotation, .. } => {
                let given = rotation.given(self.global_batches(batches));
                samples(&given, self.batch_size, &self.shares).into()
            }
        }
    }

    /// The global batches of a canonical epoch that have been taken once every rank has taken `batches`, those before a change of topology
    /// included; 0 for a fleet that is not canonical.
    #[must_use]
    pub fn global_batches(&self, batches: u64) -> u64 {
        match &self.deal {
            Deal::Ranks(_) => 0,
            Deal::Canonical { start, end, .. } => batches
                .saturating_mul(self.world_size as u64)
                .saturating_add(*start)
                .min(*end),
        }
    }

    /// The epoch, and the batch in it, that a rank is at after `batches_consumed` of them since the run began.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyRank`] if the rank takes no batch in an epoch.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn locate(&self, rank: usize, batches_consumed: u64) -> Result<(u64, u64), Error> {
        match self.num_batches(rank) {
            0 => Err(Error::EmptyRank { rank }),
            per_epoch => Ok((batches_consumed / per_epoch, batches_consumed % per_epoch)),
        }
    }

    /// The number of the rank's batch in the global sequence.
    fn global(&self, rank: usize, batch: u64) -> u64 {
        match &self.deal {
            Deal::Ranks(_) => batch,
            Deal::Canonical { start, .. } => start + batch * self.world_size as u64 + rank as u64,
        }
    }

    /// The worker in whose turn a rank's batch is, where workers simply take turns.
    fn slot(&self, batch: u64) -> usize {
        (batch % self.workers_per_rank as u64) as usize
    }

    /// Batch `round` of a worker that is a consumer.
    fn worker_turn(&self, ranks: &[Rank], rank: usize, worker: usize, round: u64) -> Turn {
        let start = round * self.batch_size;
        Turn {
            consumer: rank * self.workers_per_rank + worker,
            start,
            len: self.batch_size.min(ranks[rank].samples[worker] - start),
        }
    }

    fn global_turn(&self, global: u64) -> Turn {
        let Deal::Canonical { rotation, .. } = &self.deal else {
            unreachable!("only canonical fleets have global batches");
        };
        let per_lap = rotation.batches_per_epoch();
        let (consumer, round) = rotation.at(global % per_lap);
        let share = self.shares[consumer];
        let start = round * self.batch_size;
        Turn {
            consumer,
            start: (global / per_lap) * share + start,
            len: self.batch_size.min(share - start),
        }
    }
}

/// The batches of one worker; made by [`Fleet::worker_turns`].
#[derive(Debug, Clone)]
#[must_use = "turns are found as they are iterated"]
pub struct Turns {
    fleet: Arc<Fleet>,
    rank: usize,
    worker: usize,
    own: OwnBatches,
}

impl Iterator for Turns {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        let Self {
            fleet,
            rank,
            worker,
            own,
        } = self;
        let batch = own.next()?;
        Some(match &fleet.deal {
            Deal::Ranks(ranks) => fleet.worker_turn(ranks, *rank, *worker, batch),
            Deal::Canonical { .. } => fleet.global_turn(fleet.global(*rank, batch)),
        })
    }
}

/// Some of a rank's or worker's batches, by number.
#[derive(Debug, Clone, Copy)]
struct OwnBatches {
    next: u64,
    end: u64,
    step: u64,
}

impl OwnBatches {
    fn count(self) -> u64 {
        self.end.saturating_sub(self.next).div_ceil(self.step)
    }

    fn contains(self, batch: u64) -> bool {
        (self.next..self.end).contains(&batch) && (batch - self.next).is_multiple_of(self.step)
    }
}

impl Iterator for OwnBatches {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let batch = self.next;
        self.next = self.next.saturating_add(self.step);
        (batch < self.end).then_some(batch)
    }
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).checked_mul(b)
}
