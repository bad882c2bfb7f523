//! The workers of one rank as threads, and their batches in the order of a `DataLoader`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pool_core::{Coverage, CoverageReport};
use resume::{EpochEnd, State};

use crate::ahead::Means;
use crate::fetch::FetchMeans;
use crate::leg::{Leg, Lineup, RunOptions, run_options};
use crate::pool::Dataset;
use crate::{
    Batch, Batches, EpisodePool, Epoch, EpochReport, Error, FetchTotals, StateDict, Warning,
};

/// The most batches that a worker may make ahead: each holds its decoded frames.
const MAX_PREFETCH_BATCHES: usize = 1024;

/// How a loader turns an epoch into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderOptions {
    /// The number of samples in a batch.
    pub batch_size: usize,
    /// Whether each worker leaves out a last batch that is not full.
    pub drop_last: bool,
    /// The batches that each worker may have ready before they are taken: 1 to 1024.
    pub prefetch_batches: usize,
    /// Whether all ranks take equally many batches in an epoch, and how.
    pub epoch_end: EpochEnd,
    /// The number of logical consumers that the order is defined for, whatever the topology: the ranks take from one global sequence of
    /// batches in turn, which is the same on 1, 2, 4 or 8 ranks. By default workers are the consumers, and their number is part of the order.
    ///
    /// The number of ranks times workers has to divide this number, or be a multiple of it. Each worker holds a pool of
    /// `episode_pool_size` for every logical consumer that it serves.
    pub canonical_consumers: Option<usize>,
}

impl Default for LoaderOptions {
    fn default() -> Self {
        Self {
            batch_size: 1,
            drop_last: false,
            prefetch_batches: 2,
            epoch_end: EpochEnd::Exact,
            canonical_consumers: None,
        }
    }
}

/// All workers of a rank, each on its own thread; their video is decoded by threads that they share.
///
/// Batches come as PyTorch's `DataLoader` hands them out: the workers take turns, one batch each, and one that has no
/// more drops out. So the sequence depends on the pool's options and the number of workers, never on timing.
///
/// The number of workers is that of the pool's [`Topology`](pool_core::Topology).
#[derive(Debug, Clone)]
pub struct Loader {
    pool: EpisodePool,
    options: LoaderOptions,
    run: RunOptions,
    lineup: Lineup,
    /// Started with the first epoch, and kept for the others.
    means: Arc<Mutex<Option<Means>>>,
    warnings: Arc<[Warning]>,
}

impl Loader {
    /// A loader over all workers of the pool's rank.
    ///
    /// # Errors
    ///
    /// - [`Error::Option`] for a batch size, a prefetch or a number of logical consumers out of its range.
    /// - [`Error::NothingToEmit`] when the rank has nothing to do.
    /// - [`Error::Resume`] when the ranks cannot serve the logical consumers, or an epoch cannot end evenly.
    /// - [`Error::Plan`] when there are more consumers than can be counted up.
    pub fn new(pool: &EpisodePool, options: LoaderOptions) -> Result<Self, Error> {
        for (option, value, limit, expected) in [
            ("batch_size", options.batch_size, usize::MAX, "at least 1"),
            (
                "prefetch_batches",
                options.prefetch_batches,
                MAX_PREFETCH_BATCHES,
                "1 to 1024",
            ),
            (
                "canonical_consumers",
                options.canonical_consumers.unwrap_or(1),
                usize::MAX,
                "at least 1",
            ),
        ] {
            if value == 0 || value > limit {
                let found = value.to_string();
                return Err(Error::Option {
                    option,
                    found,
                    expected,
                });
            }
        }
        let topology = pool.topology();
        let run = run_options(&pool.dataset, topology, &options);
        let lineup = Lineup::new(&pool.dataset.selection, &run)?;
        let has_work = match options.canonical_consumers {
            Some(_) => lineup.fleet.num_batches(topology.rank()) > 0,
            None => {
                let workers = topology.consumers_per_rank();
                let shares = lineup.shares.chunks(workers).nth(topology.rank());
                shares.is_some_and(|shares| shares.iter().any(|share| !share.is_empty()))
            }
        };
        if !has_work {
            return Err(pool.nothing_to_emit());
        }
        let warnings: Arc<[Warning]> = epoch_end_warning(&lineup, &run).into_iter().collect();
        for warning in warnings.iter() {
            tracing::warn!("{warning}");
        }
        Ok(Self {
            pool: pool.clone(),
            options,
            run,
            lineup,
            means: Arc::default(),
            warnings,
        })
    }

    /// What is legal and perhaps not meant about the ends of epochs. Each was logged once, too.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The number of batches that this rank takes in an epoch: known before anything is read.
    #[must_use]
    pub fn num_batches(&self) -> u64 {
        self.lineup.fleet.num_batches(self.pool.topology().rank())
    }

    /// The frames, over all ranks, that no batch of an epoch holds.
    #[must_use]
    pub fn num_dropped(&self) -> u64 {
        self.lineup.fleet.num_dropped()
    }

    /// The samples, over all ranks, that come again in an epoch.
    #[must_use]
    pub fn num_repeated(&self) -> u64 {
        self.lineup.fleet.num_repeated()
    }

    /// The batches of one epoch.
    ///
    /// # Errors
    ///
    /// [`Error::SpawnDecodeThread`], [`Error::SpawnWorker`] when the system gives no more threads.
    pub fn epoch(&self, epoch: u64) -> Result<LoaderEpoch, Error> {
        self.start(self.whole(epoch))
    }

    /// The rest of the epoch in which `state` lies: the batches after `state.batches_consumed`, exactly.
    ///
    /// # Errors
    ///
    /// [`Error::StateDiffers`] when `state.batch_size` is not the loader's; [`Error::Resume`] when the state leads nowhere.
    pub fn resume(&self, state: &State) -> Result<LoaderEpoch, Error> {
        self.load_state_dict(&StateDict::from(*state), true)
    }

    /// The rest of the epoch in which a state lies. Later epochs are those of [`epoch`](Self::epoch).
    ///
    /// - The topology may be another than that of the run that saved it: what that had consumed is worked out from its plan, and the rest of the
    ///   epoch is shared out among the consumers there are now: still every frame exactly once in the epoch. With
    ///   [`canonical_consumers`](LoaderOptions::canonical_consumers) the sequence of batches simply goes on.
    /// - Another dataset, or another value of an option that the order depends on, the batch size included, is an error that names each.
    ///   Unless `strict`, what can be is passed over with a [warning](LoaderEpoch::warnings), and the rest of the epoch is shared out
    ///   anew under the options that hold now.
    ///
    /// Nothing is read to get there.
    ///
    /// # Errors
    ///
    /// - [`Error::StateDiffers`] when the state is of another run.
    /// - [`Error::State`] for a bare state with another batch size, where ranks do not agree on the epoch.
    /// - [`Error::Resume`], [`Error::Plan`] when the state leads nowhere.
    /// - Those of [`epoch`](Self::epoch).
    pub fn load_state_dict(&self, state: &StateDict, strict: bool) -> Result<LoaderEpoch, Error> {
        self.start(self.after(state, strict)?)
    }

    /// The state at the start of an epoch.
    #[must_use]
    pub fn state_dict(&self, epoch: u64) -> StateDict {
        self.whole(epoch).state_dict(&self.pool.dataset, 0)
    }

    /// One worker's batches of an epoch, made on the thread that takes them. All workers' batches, taken in turn, are those of
    /// [`epoch`](Self::epoch).
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] if the rank has no such worker, and those of [`epoch`](Self::epoch).
    pub fn worker_epoch(&self, epoch: u64, worker: usize) -> Result<Batches, Error> {
        self.start_worker(&self.whole(epoch), worker)
    }

    /// One worker's batches of the rest of the epoch in which a state lies.
    ///
    /// # Errors
    ///
    /// Those of [`load_state_dict`](Self::load_state_dict), and [`Error::Plan`] if the rank has no such worker.
    pub fn worker_load_state_dict(
        &self,
        state: &StateDict,
        strict: bool,
        worker: usize,
    ) -> Result<Batches, Error> {
        self.start_worker(&self.after(state, strict)?, worker)
    }

    /// The epoch in which a state lies.
    ///
    /// # Errors
    ///
    /// Those of [`load_state_dict`](Self::load_state_dict), but for the threads'.
    pub fn epoch_after(&self, state: &StateDict, strict: bool) -> Result<u64, Error> {
        Ok(self.after(state, strict)?.epoch)
    }

    /// One worker's samples of the rest of the epoch in which a state lies, for whoever collates them elsewhere: those of the worker that is
    /// `turn` turns after the one whose batch is next. `None` if it has no more.
    ///
    /// # Errors
    ///
    /// Those of [`load_state_dict`](Self::load_state_dict).
    pub fn samples_after(
        &self,
        state: &StateDict,
        strict: bool,
        turn: usize,
    ) -> Result<Option<Epoch>, Error> {
        let leg = self.after(state, strict)?;
        let worker = (leg.first_worker() + turn) % leg.num_workers();
        Ok(self.epoch_of(&leg, worker, self.pool.own_means()?))
    }

    fn whole(&self, epoch: u64) -> Leg {
        Leg::whole(
            self.lineup.clone(),
            self.run,
            self.pool.topology().rank(),
            epoch,
        )
    }

    fn after(&self, state: &StateDict, strict: bool) -> Result<Leg, Error> {
        let rank = self.pool.topology().rank();
        let leg = Leg::after(
            &self.pool.dataset,
            self.lineup.clone(),
            self.run,
            rank,
            state,
            strict,
        )?;
        for warning in &leg.warnings {
            tracing::warn!("{warning}");
        }
        Ok(leg)
    }

    fn start(&self, leg: Leg) -> Result<LoaderEpoch, Error> {
        let means = self.means()?;
        let mut workers = Vec::new();
        for number in 0..leg.num_workers() {
            if let Some(epoch) = self.epoch_of(&leg, number, means.clone()) {
                let turns = leg.turns(number);
                let batches = Batches::of_turns(epoch, self.options.batch_size, turns)?;
                let prefetch_batches = self.options.prefetch_batches;
                workers.push(Worker::spawn(number, batches, prefetch_batches)?);
            }
        }
        // That worker is the first in turn; those before it come after the last.
        let next = leg.first_worker();
        let first = workers.iter().position(|worker| worker.number >= next);
        let mut turn: Vec<usize> = (0..workers.len()).collect();
        turn.rotate_left(first.unwrap_or(0));
        Ok(LoaderEpoch {
            dataset: Arc::clone(&self.pool.dataset),
            leg,
            workers,
            turn: turn.into(),
            taken: 0,
            reports: Vec::new(),
            has_ended: false,
            failed: false,
        })
    }

    fn start_worker(&self, leg: &Leg, worker: usize) -> Result<Batches, Error> {
        let topology = self.pool.topology();
        topology.with_worker(worker, topology.num_workers())?;
        let epoch = self.epoch_of(leg, worker, self.pool.own_means()?);
        let epoch = epoch.ok_or_else(|| Error::NothingToEmit {
            rank: topology.rank(),
            world_size: topology.world_size(),
            worker,
            num_workers: topology.num_workers(),
        })?;
        Batches::of_turns(epoch, self.options.batch_size, leg.turns(worker))
    }

    /// One worker's samples; `None` if it has none, and would be a thread for nothing.
    fn epoch_of(&self, leg: &Leg, worker: usize, means: Means) -> Option<Epoch> {
        let course = leg.course(worker);
        (course.remaining() > 0).then(|| {
            let (owned, skipped) = (leg.owned(worker), leg.skipped(worker));
            let dataset = Arc::clone(&self.pool.dataset);
            Epoch::new(dataset, leg.epoch, course, owned, skipped, means)
        })
    }

    /// What fetching from a remote source has cost so far, over all workers and epochs.
    #[must_use]
    pub fn fetch_totals(&self) -> FetchTotals {
        let means = self.means.lock().unwrap_or_else(PoisonError::into_inner);
        let fetch = means.as_ref().and_then(|means| means.fetch.as_ref());
        fetch.map(FetchMeans::totals).unwrap_or_default()
    }

    /// The threads that the workers share.
    fn means(&self) -> Result<Means, Error> {
        let mut means = self.means.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(means) = &*means {
            return Ok(means.clone());
        }
        let num_threads = self.pool.options().num_threads;
        let num_workers = self.pool.topology().consumers_per_rank();
        let started = self.pool.means(num_threads, num_threads / num_workers)?;
        Ok(means.insert(started).clone())
    }
}

/// How the ends of epochs differ from all frames once, and equally many batches on every rank.
fn epoch_end_warning(lineup: &Lineup, run: &RunOptions) -> Option<Warning> {
    let fleet = &lineup.fleet;
    let of = lineup.shares.iter().map(pool_core::Share::num_frames).sum();
    match run.order.epoch_end {
        EpochEnd::Exact => {
            let counts = (0..run.order.world_size).map(|rank| (fleet.num_batches(rank), rank));
            let (fewest, fewest_rank) = counts.clone().min()?;
            let (most, most_rank) = counts.max()?;
            (fewest < most).then_some(Warning::UnevenRanks {
                fewest_rank,
                fewest,
                most_rank,
                most,
            })
        }
        EpochEnd::DropTail => {
            let frames = fleet.num_dropped();
            (frames > 0).then_some(Warning::TailDropped { frames, of })
        }
        EpochEnd::Wrap => {
            let samples = fleet.num_repeated();
            (samples > 0).then_some(Warning::TailRepeated { samples, of })
        }
    }
}

/// A worker's thread, which is joined when this is dropped.
#[derive(Debug)]
struct Worker {
    /// Its number among the rank's workers.
    number: usize,
    /// `None` once the worker is told to stop. With each batch comes how long the worker took for it.
    batches: Option<Receiver<(Result<Batch, Error>, Duration)>>,
    times: WorkerTimes,
    /// Ends the worker in the middle of a batch.
    interrupter: Arc<AtomicBool>,
    thread: Option<JoinHandle<EpochReport>>,
}

impl Worker {
    /// Starts the thread. It ends with its epoch, at an error, or at the first batch that nobody takes.
    fn spawn(number: usize, mut epoch: Batches, prefetch_batches: usize) -> Result<Self, Error> {
        let (sender, batches) = sync_channel(prefetch_batches);
        let interrupter = epoch.interrupter();
        let run = move || {
            let mut started = Instant::now();
            while let Some(batch) = epoch.next_turn() {
                if sender.send((batch, started.elapsed())).is_err() {
                    break;
                }
                started = Instant::now();
            }
            epoch.report()
        };
        let thread = thread::Builder::new()
            .name(format!("episode-pool-{number}"))
            .spawn(run)
            .map_err(|source| Error::SpawnWorker {
                worker: number,
                source,
            })?;
        Ok(Self {
            number,
            batches: Some(batches),
            times: WorkerTimes {
                worker: number,
                ..WorkerTimes::default()
            },
            interrupter,
            thread: Some(thread),
        })
    }

    /// The next batch; `None` when the worker has ended.
    fn next_batch(
        &mut self,
        patience: Option<Duration>,
    ) -> Result<Option<Result<Batch, Error>>, NotYet> {
        let Some(batches) = &self.batches else {
            return Ok(None);
        };
        let asked = Instant::now();
        let received = match patience {
            None => batches.recv().map_err(RecvTimeoutError::from),
            Some(patience) => batches.recv_timeout(patience),
        };
        self.times.waited += asked.elapsed();
        match received {
            Ok((batch, took)) => {
                self.times.loading += took;
                Ok(Some(batch))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(NotYet),
        }
    }

    /// Stops the worker. `None` when it was stopped before, or has panicked.
    fn stop(&mut self) -> Option<EpochReport> {
        self.interrupter.store(true, Ordering::Relaxed);
        self.batches = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How long one worker of a loader took, and kept who takes the batches waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkerTimes {
    /// The worker's number among the rank's.
    pub worker: usize,
    /// What the batches taken from it have cost it: reading, waiting for decoded frames, putting together.
    pub loading: Duration,
    /// How long its batches were waited for when it was its turn.
    pub waited: Duration,
}

/// The next batch is still being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the next batch is still being made")]
pub struct NotYet;

/// The batches of one epoch of a [`Loader`]. Dropping it stops the workers.
#[derive(Debug)]
#[must_use = "an epoch does nothing until it is iterated"]
pub struct LoaderEpoch {
    dataset: Arc<Dataset>,
    leg: Leg,
    workers: Vec<Worker>,
    turn: VecDeque<usize>,
    taken: u64,
    reports: Vec<EpochReport>,
    has_ended: bool,
    failed: bool,
}

impl LoaderEpoch {
    /// The epoch's number.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.leg.epoch
    }

    /// The number of batches that are left, of the rank's.
    #[must_use]
    pub fn remaining_batches(&self) -> u64 {
        self.leg.num_batches().saturating_sub(self.taken)
    }

    /// The number of samples that were to come when it began, of the rank's.
    #[must_use]
    pub fn num_samples(&self) -> u64 {
        let workers = 0..self.leg.num_workers();
        workers.map(|worker| self.leg.num_samples(worker)).sum()
    }

    /// The number of the rank's samples that were passed over to go on from a saved state. (What other topologies emitted does not
    /// count: that is not the rank's any more.)
    #[must_use]
    pub fn num_skipped(&self) -> u64 {
        let workers = 0..self.leg.num_workers();
        workers.map(|worker| self.leg.skipped(worker)).sum()
    }

    /// The digest of the frames that the rank is to emit in this epoch, or in this part of it.
    #[must_use]
    pub fn owned(&self) -> Coverage {
        total((0..self.leg.num_workers()).map(|worker| self.leg.owned(worker).coverage()))
    }

    /// What loading a saved state found worth telling. Each was logged once, too.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.leg.warnings
    }

    /// Where the run stands after the batches taken so far: in the middle of this epoch, or, once it has told that there are no more,
    /// at the start of the next. Batches that workers have made ahead do not count.
    ///
    /// It is the same for every rank that has taken as many.
    #[must_use]
    pub fn state_dict(&self) -> StateDict {
        if self.has_ended {
            self.leg.state_dict_at_end(&self.dataset)
        } else {
            self.leg.state_dict(&self.dataset, self.taken)
        }
    }

    /// What the workers did, each added when it has no more batches: complete at the epoch's end.
    #[must_use]
    pub fn reports(&self) -> &[EpochReport] {
        &self.reports
    }

    /// How long each worker took so far. The one that was waited for longest holds up the others, and the trainer.
    #[must_use]
    pub fn worker_times(&self) -> Vec<WorkerTimes> {
        self.workers.iter().map(|worker| worker.times).collect()
    }

    /// The frames emitted by the workers that are done, against those that the rank owns.
    #[must_use]
    pub fn coverage(&self) -> CoverageReport {
        CoverageReport::new(
            self.owned(),
            total(self.reports.iter().map(|report| report.emitted)),
        )
    }

    /// Stops the workers wherever they are, and tells what each did, batches that nobody took included.
    #[must_use]
    pub fn finish(mut self) -> Vec<EpochReport> {
        let stopped = self.workers.iter_mut().filter_map(Worker::stop);
        self.reports.extend(stopped);
        std::mem::take(&mut self.reports)
    }

    /// [`next`](Iterator::next) for whoever must look up now and then: it waits for each worker's batch for `patience` at most.
    ///
    /// # Errors
    ///
    /// [`NotYet`] when the time has run out. Nothing is lost: ask again.
    pub fn next_within(
        &mut self,
        patience: Duration,
    ) -> Result<Option<Result<Batch, Error>>, NotYet> {
        self.take(Some(patience))
    }

    fn take(&mut self, patience: Option<Duration>) -> Result<Option<Result<Batch, Error>>, NotYet> {
        while !self.failed {
            let Some(&worker) = self.turn.front() else {
                self.has_ended = true;
                return Ok(None);
            };
            let batch = self.workers[worker].next_batch(patience)?;
            self.turn.pop_front();
            match batch {
                Some(batch) => {
                    self.failed = batch.is_err();
                    self.taken += u64::from(batch.is_ok());
                    self.turn.push_back(worker);
                    // Of which all samples are left out: its turn is over all the same.
                    if !batch.as_ref().is_ok_and(Batch::is_empty) {
                        return Ok(Some(batch));
                    }
                }
                None => match self.workers[worker].stop() {
                    Some(report) => self.reports.push(report),
                    None => {
                        self.failed = true;
                        let worker = self.workers[worker].number;
                        return Ok(Some(Err(Error::WorkerDied { worker })));
                    }
                },
            }
        }
        Ok(None)
    }
}

impl Iterator for LoaderEpoch {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(None).unwrap_or_else(|NotYet| {
            unreachable!("without patience to run out of, a batch is waited for")
        })
    }
}

fn total(parts: impl Iterator<Item = Coverage>) -> Coverage {
    let mut sum = Coverage::default();
    parts.for_each(|part| sum.merge(part));
    sum
}
