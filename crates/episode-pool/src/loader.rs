//! The workers of one rank as threads, and their batches in the order of a `DataLoader`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use pool_core::{Coverage, CoverageReport};
use resume::State;

use crate::ahead::Means;
use crate::{Batch, Batches, EpisodePool, EpochReport, Error};

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
}

impl Default for LoaderOptions {
    fn default() -> Self {
        Self {
            batch_size: 1,
            drop_last: false,
            prefetch_batches: 2,
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
    workers: Vec<EpisodePool>,
    pool: EpisodePool,
    options: LoaderOptions,
    means: Option<Means>,
}

impl Loader {
    /// A loader over all workers of the pool's rank.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] for a batch size or a prefetch out of its range, [`Error::NothingToEmit`] when no worker owns an episode,
    /// [`Error::SpawnDecodeThread`] when the system gives no more threads.
    pub fn new(pool: &EpisodePool, options: LoaderOptions) -> Result<Self, Error> {
        for (option, value, limit, expected) in [
            ("batch_size", options.batch_size, usize::MAX, "at least 1"),
            (
                "prefetch_batches",
                options.prefetch_batches,
                MAX_PREFETCH_BATCHES,
                "1 to 1024",
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
        let workers = pool.workers()?;
        if workers.iter().all(|worker| worker.num_frames() == 0) {
            return Err(pool.nothing_to_emit());
        }
        let num_threads = pool.options().num_threads;
        Ok(Self {
            means: pool.means(num_threads, num_threads / workers.len())?,
            workers,
            pool: pool.clone(),
            options,
        })
    }

    /// The batches of one epoch.
    ///
    /// # Errors
    ///
    /// Those of [`EpisodePool::epoch`].
    pub fn epoch(&self, epoch: u64) -> Result<LoaderEpoch, Error> {
        self.start(epoch, &vec![0; self.workers.len()], 0)
    }

    /// The rest of the epoch in which `state` lies, and that epoch's number: the batches after
    /// `state.batches_consumed`, exactly.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] when `state.batch_size` is not the loader's; [`Error::Resume`] when the state leads nowhere.
    pub fn resume(&self, state: &State) -> Result<LoaderEpoch, Error> {
        if state.batch_size != self.options.batch_size as u64 {
            return Err(Error::Option {
                option: "batch_size",
                found: self.options.batch_size.to_string(),
                expected: "the batch size of the state that is resumed",
            });
        }
        let position = self.pool.position(state, self.options.drop_last)?;
        self.start(
            position.epoch(),
            position.samples_to_skip(),
            position.next_worker(),
        )
    }

    fn start(&self, epoch: u64, skips: &[u64], next: usize) -> Result<LoaderEpoch, Error> {
        let mut workers = Vec::new();
        for (number, (pool, &skip)) in self.workers.iter().zip(skips).enumerate() {
            // One that owns nothing would be a thread for nothing.
            if pool.num_frames() > 0 {
                let batches = pool
                    .epoch_with(epoch, skip, self.means.clone())?
                    .batches(self.options.batch_size, self.options.drop_last)?;
                workers.push(Worker::spawn(
                    number,
                    batches,
                    self.options.prefetch_batches,
                )?);
            }
        }
        // Worker `next` is the first in turn; those before it come after the last.
        let first = workers.iter().position(|worker| worker.number >= next);
        let mut turn: Vec<usize> = (0..workers.len()).collect();
        turn.rotate_left(first.unwrap_or(0));
        let selected = total(self.workers.iter().map(EpisodePool::coverage));
        Ok(LoaderEpoch {
            epoch,
            workers,
            turn: turn.into(),
            selected,
            reports: Vec::new(),
            failed: false,
        })
    }
}

/// A worker's thread, which is joined when this is dropped.
#[derive(Debug)]
struct Worker {
    /// Its number among the rank's workers.
    number: usize,
    /// `None` once the worker is told to stop.
    batches: Option<Receiver<Result<Batch, Error>>>,
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
            for batch in epoch.by_ref() {
                if sender.send(batch).is_err() {
                    break;
                }
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
            interrupter,
            thread: Some(thread),
        })
    }

    /// The next batch; `None` when the worker has ended.
    fn next_batch(&self) -> Option<Result<Batch, Error>> {
        self.batches.as_ref()?.recv().ok()
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

/// The batches of one epoch of a [`Loader`]. Dropping it stops the workers.
#[derive(Debug)]
#[must_use = "an epoch does nothing until it is iterated"]
pub struct LoaderEpoch {
    epoch: u64,
    workers: Vec<Worker>,
    turn: VecDeque<usize>,
    selected: Coverage,
    reports: Vec<EpochReport>,
    failed: bool,
}

impl LoaderEpoch {
    /// The epoch's number.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What the workers did, each added when it has no more batches: complete at the epoch's end.
    #[must_use]
    pub fn reports(&self) -> &[EpochReport] {
        &self.reports
    }

    /// The frames emitted by the workers that are done, against those that the rank owns.
    #[must_use]
    pub fn coverage(&self) -> CoverageReport {
        CoverageReport::new(
            self.selected,
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
}

impl Iterator for LoaderEpoch {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            let worker = self.turn.pop_front()?;
            match self.workers[worker].next_batch() {
                Some(batch) => {
                    self.failed = batch.is_err();
                    self.turn.push_back(worker);
                    return Some(batch);
                }
                None => match self.workers[worker].stop() {
                    Some(report) => self.reports.push(report),
                    None => {
                        self.failed = true;
                        let worker = self.workers[worker].number;
                        return Some(Err(Error::WorkerDied { worker }));
                    }
                },
            }
        }
        None
    }
}

fn total(parts: impl Iterator<Item = Coverage>) -> Coverage {
    let mut sum = Coverage::default();
    parts.for_each(|part| sum.merge(part));
    sum
}
