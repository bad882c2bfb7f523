//! Fetching ahead: the plan says which episodes will be admitted, so that their bytes are on their way before they are.
//!
//! Each consumer reads its own plan's admissions ahead of itself. What an episode needs (its rows, and of each camera's video the packets of
//! its frames) is found out and fetched by threads that all workers of a rank share. A sample waits for its own frame's bytes, and for nothing
//! else. Nothing of this can change what comes out, nor in which order.

mod episode;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use dataset::EpisodeRows;
use pool_core::{Emission, Step};
use prefetch::{FetchStats, FetchThreads, Fetcher, Source};

use crate::builder::OnFetchError;
use crate::cameras::Cameras;
use crate::course::Course;
use crate::data_files::DataFiles;
use crate::pool::Dataset;
use crate::{Error, FetchReport, FetchTotals, LeftOut};
use episode::EpisodeFetch;

/// The threads that fetch for all workers of a rank, and the files that they read rows from.
#[derive(Debug, Clone)]
pub(crate) struct FetchMeans {
    threads: Arc<FetchThreads>,
    data_files: Arc<DataFiles>,
    source: Source,
    /// What the source had been asked before.
    before: FetchStats,
}

impl FetchMeans {
    /// Starts them; `None` for a dataset of this machine.
    pub(crate) fn start(dataset: &Dataset) -> Result<Option<Self>, Error> {
        if !dataset.bulk.is_remote() {
            return Ok(None);
        }
        Ok(Some(Self {
            threads: Arc::new(FetchThreads::start(&dataset.bulk, &dataset.options.cache)?),
            data_files: Arc::default(),
            source: dataset.bulk.clone(),
            before: dataset.bulk.fetch_stats(),
        }))
    }

    /// What fetching has cost since the start.
    pub(crate) fn totals(&self) -> FetchTotals {
        let (now, cache) = (self.source.fetch_stats(), self.fetcher().stats());
        FetchTotals {
            requests: now.requests - self.before.requests,
            retries: now.retries - self.before.retries,
            bytes_fetched: now.bytes_fetched - self.before.bytes_fetched,
            bytes_needed: cache.bytes_needed + self.data_files.bytes_read(),
            bytes_found: cache.bytes_found,
            bytes_not_kept: cache.bytes_not_kept,
        }
    }

    pub(crate) fn fetcher(&self) -> &Fetcher {
        self.threads.fetcher()
    }
}

/// One consumer's episodes that are fetched, or will be.
#[derive(Debug)]
pub(crate) struct Fetches {
    means: FetchMeans,
    cameras: Arc<Cameras>,
    interrupted: Arc<AtomicBool>,
    /// Whether the consumer reads its plan ahead, and says what it will want.
    has_horizon: bool,
    /// The consumer's plan, ahead of the consumer.
    scout: Course,
    /// The episodes to be admitted next, in order.
    announced: VecDeque<(usize, Arc<EpisodeFetch>)>,
    admitted: BTreeMap<usize, Arc<EpisodeFetch>>,
    /// Those of which samples are still to be written.
    evicted: Vec<Arc<EpisodeFetch>>,
    report: FetchReport,
}

impl Fetches {
    pub(crate) fn new(
        means: FetchMeans,
        course: &Course,
        cameras: &Arc<Cameras>,
        interrupted: &Arc<AtomicBool>,
        has_horizon: bool,
    ) -> Self {
        let mut fetches = Self {
            means,
            cameras: Arc::clone(cameras),
            interrupted: Arc::clone(interrupted),
            has_horizon,
            scout: course.clone(),
            announced: VecDeque::new(),
            admitted: BTreeMap::new(),
            evicted: Vec::new(),
            report: FetchReport::default(),
        };
        fetches.announce();
        fetches
    }

    /// Begins to fetch the next episodes.
    fn announce(&mut self) {
        let ahead = self.cameras.dataset().options.prefetch_episodes;
        // One at least: it is about to be admitted.
        while self.announced.len() < ahead.max(1) {
            let admission = self.scout.find_map(|step| match step {
                Step::Admit { episode_index } => Some(episode_index),
                _ => None,
            });
            let Some(episode_index) = admission else {
                break;
            };
            let fetch = EpisodeFetch::start(
                episode_index,
                self.means.fetcher(),
                &self.means.data_files,
                &self.cameras,
                &self.interrupted,
            );
            if !self.has_horizon {
                fetch.want_rows();
            }
            self.announced.push_back((episode_index, fetch));
        }
    }

    /// Follows the consumer's next admission.
    pub(crate) fn admit(&mut self, episode_index: usize) {
        let (announced, fetch) = self
            .announced
            .pop_front()
            .expect("every admission is announced");
        assert_eq!(
            announced, episode_index,
            "admissions come in the plan's order"
        );
        self.admitted.insert(episode_index, fetch);
        self.announce();
    }

    /// Follows an eviction. What was fetched stays until [`settle`](Self::settle).
    pub(crate) fn evict(&mut self, episode_index: usize) {
        self.evicted.extend(self.admitted.remove(&episode_index));
    }

    /// Lets go of evicted episodes, of which all samples are written.
    pub(crate) fn settle(&mut self) {
        self.evicted.clear();
    }

    fn fetch(&self, episode_index: usize) -> Option<&Arc<EpisodeFetch>> {
        let announced = || {
            let found = self.announced.iter().find(|(e, _)| *e == episode_index);
            found.map(|(_, fetch)| fetch)
        };
        self.admitted.get(&episode_index).or_else(announced)
    }

    /// Whether it is known where an episode's frames lie, or that this cannot be known.
    pub(crate) fn is_mapped(&self, episode_index: usize) -> bool {
        self.fetch(episode_index)
            .is_some_and(|fetch| fetch.is_mapped())
    }

    /// Whether an episode's videos cannot be opened.
    pub(crate) fn is_lost(&self, episode_index: usize) -> bool {
        self.fetch(episode_index)
            .is_some_and(|fetch| fetch.is_lost())
    }

    /// Waits until [`is_mapped`](Self::is_mapped).
    pub(crate) fn wait_mapped(&mut self, episode_index: usize) {
        let started = Instant::now();
        if let Some(fetch) = self.fetch(episode_index)
            && fetch.wait_mapped()
        {
            self.stalled_since(started);
        }
    }

    /// Says that an episode's rows will be wanted soon.
    pub(crate) fn want_rows(&self, episode_index: usize) {
        if let Some(fetch) = self.fetch(episode_index) {
            fetch.want_rows();
        }
    }

    /// Says that frames of an episode's camera will be wanted soon, before all that was not said so of.
    pub(crate) fn want(&self, episode_index: usize, file: &str, ranges: &[Range<u64>]) {
        if let Some(fetch) = self.fetch(episode_index) {
            fetch.want(file, ranges);
        }
    }

    /// Whether all of an episode's video is at hand.
    pub(crate) fn is_whole(&self, episode_index: usize) -> bool {
        self.fetch(episode_index)
            .is_some_and(|fetch| fetch.is_whole())
    }

    /// Waits for an admitted episode's rows; `None` if they were taken before.
    pub(crate) fn take_rows(&mut self, episode_index: usize) -> Result<Option<EpisodeRows>, Error> {
        let started = Instant::now();
        let Some(fetch) = self.admitted.get(&episode_index) else {
            return Ok(None);
        };
        let (rows, has_waited) = fetch.take_rows();
        if has_waited {
            self.stalled_since(started);
        }
        rows
    }

    /// Waits until ranges of a camera's file are at hand. Fails where they, or anything else of the episode's videos, cannot be had.
    pub(crate) fn wait_bytes(
        &mut self,
        emission: &Emission,
        wanted: &[(Arc<str>, Vec<Range<u64>>)],
    ) -> Result<(), Error> {
        let started = Instant::now();
        let Some(fetch) = self.admitted.get(&emission.episode_index) else {
            return Ok(());
        };
        let waited = fetch.wait_bytes(emission, wanted);
        if !matches!(waited, Ok(false)) {
            self.stalled_since(started);
        }
        waited.map(|_| ())
    }

    fn stalled_since(&mut self, started: Instant) {
        self.report.stalls += 1;
        self.report.stalled += started.elapsed();
    }

    /// Whether a frame is left out, as one of an episode that was given up before.
    pub(crate) fn is_left_out(&mut self, episode_index: usize) -> bool {
        let mut known = self.report.left_out.iter_mut();
        let left_out = known.find(|left_out| left_out.episode_index == episode_index);
        if let Some(left_out) = left_out {
            left_out.frames += 1;
            return true;
        }
        false
    }

    /// What to do about a frame that cannot be had: nothing, if it is to be left out.
    pub(crate) fn leave_out(&mut self, episode_index: usize, error: Error) -> Result<(), Error> {
        let skips = self.cameras.dataset().options.on_fetch_error == OnFetchError::SkipEpisode;
        if !skips || !is_of_the_way(&error) {
            return Err(error);
        }
        let reason = in_full(&error);
        tracing::warn!("episode {episode_index} is left out of this epoch from here on: {reason}");
        self.report.left_out.push(LeftOut {
            episode_index,
            frames: 1,
            reason,
        });
        Ok(())
    }

    pub(crate) fn report(&self) -> FetchReport {
        self.report.clone()
    }
}

/// Whether an error is of the way to the source, rather than of what lies there.
fn is_of_the_way(error: &Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        // What an I/O error was made of is not among its causes.
        let inner = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
            .and_then(|inner| inner.downcast_ref::<prefetch::Error>());
        let found = inner.or_else(|| error.downcast_ref::<prefetch::Error>());
        if let Some(prefetch::Error::Remote { .. }) = found {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error and its causes, as one line.
fn in_full(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
