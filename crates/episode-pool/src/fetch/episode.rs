//! What one episode needs, and how much of it is here.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dataset::EpisodeRows;
use decode::Decoder;
use pool_core::Emission;
use prefetch::{Fetcher, Lease};

use crate::Error;
use crate::builder::Fetch;
use crate::cameras::Cameras;
use crate::data_files::DataFiles;
use crate::schema::FieldKind;

/// How often somebody who waits looks whether to give up.
const LOOK_UP: Duration = Duration::from_millis(50);

/// A file from its beginning to wherever it ends.
const WHOLE: Range<u64> = 0..u64::MAX;

/// An episode that is being fetched.
#[derive(Debug)]
pub(super) struct EpisodeFetch {
    episode_index: usize,
    state: Mutex<State>,
    changed: Condvar,
    fetcher: Fetcher,
    cameras: Arc<Cameras>,
    data_files: Arc<DataFiles>,
    interrupted: Arc<AtomicBool>,
    are_rows_wanted: AtomicBool,
    /// Whether all of its video was at hand once.
    is_whole: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    rows: Outcome<EpisodeRows>,
    videos: Outcome<Arc<Lease>>,
}

/// What came of a job.
#[derive(Debug, Default)]
enum Outcome<T> {
    #[default]
    Pending,
    Done(T),
    Failed(Error),
    /// Nothing, or what came of it was taken: whoever needs it sees to it.
    Gone,
}

impl EpisodeFetch {
    /// Has the threads find out which bytes of its videos the episode needs, and fetch these. Its rows come when they are
    /// [asked for](Self::want_rows).
    pub(super) fn start(
        episode_index: usize,
        fetcher: &Fetcher,
        data_files: &Arc<DataFiles>,
        cameras: &Arc<Cameras>,
        interrupted: &Arc<AtomicBool>,
    ) -> Arc<Self> {
        let fetch = Arc::new(Self {
            episode_index,
            state: Mutex::default(),
            changed: Condvar::new(),
            fetcher: fetcher.clone(),
            cameras: Arc::clone(cameras),
            data_files: Arc::clone(data_files),
            interrupted: Arc::clone(interrupted),
            are_rows_wanted: AtomicBool::new(false),
            is_whole: AtomicBool::new(false),
        });
        let videos = Job::new(&fetch, |state| &mut state.videos);
        fetcher.run({
            let fetcher = fetcher.clone();
            move || videos.run(|cameras| lease(cameras, episode_index, &fetcher))
        });
        fetch
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Has the threads read the episode's rows, unless they do already.
    pub(super) fn want_rows(self: &Arc<Self>) {
        if self.are_rows_wanted.swap(true, Ordering::Relaxed) {
            return;
        }
        let rows = Job::new(self, |state| &mut state.rows);
        let (episode_index, data_files) = (self.episode_index, Arc::clone(&self.data_files));
        self.fetcher.run(move || {
            rows.run(|cameras| {
                let dataset = cameras.dataset();
                data_files.read(dataset, dataset.episode(episode_index))
            });
        });
    }

    /// Waits until something holds or all is to end; whether there was anything to wait for.
    fn wait_until(&self, is_so: impl Fn(&State) -> bool) -> (MutexGuard<'_, State>, bool) {
        let mut state = self.lock();
        let mut has_waited = false;
        while !is_so(&state) && !self.interrupted.load(Ordering::Relaxed) {
            has_waited = true;
            let (next, _) = self
                .changed
                .wait_timeout(state, LOOK_UP)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
        (state, has_waited)
    }

    pub(super) fn is_mapped(&self) -> bool {
        !matches!(self.lock().videos, Outcome::Pending)
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.lock().videos, Outcome::Failed(_) | Outcome::Gone)
    }

    pub(super) fn wait_mapped(&self) -> bool {
        let is_mapped = |state: &State| !matches!(state.videos, Outcome::Pending);
        self.wait_until(is_mapped).1
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }

    pub(super) fn want(&self, file: &str, ranges: &[Range<u64>]) {
        if let Outcome::Done(lease) = &self.lock().videos {
            ranges.iter().for_each(|range| lease.want(file, range));
        }
    }

    /// The rows, and whether they had to be waited for.
    pub(super) fn take_rows(self: &Arc<Self>) -> (Result<Option<EpisodeRows>, Error>, bool) {
        self.want_rows();
        let is_there = |state: &State| !matches!(state.rows, Outcome::Pending);
        let (mut state, has_waited) = self.wait_until(is_there);
        if matches!(state.rows, Outcome::Pending) {
            return (Ok(None), has_waited);
        }
        let rows = match std::mem::replace(&mut state.rows, Outcome::Gone) {
            Outcome::Done(rows) => Ok(Some(rows)),
            Outcome::Failed(error) => Err(error),
            Outcome::Pending | Outcome::Gone => Ok(None),
        };
        (rows, has_waited)
    }

    /// Waits for ranges of the episode's files; whether there was anything to wait for.
    pub(super) fn wait_bytes(
        &self,
        emission: &Emission,
        wanted: &[(Arc<str>, Vec<Range<u64>>)],
    ) -> Result<bool, Error> {
        let mut has_waited = self.wait_mapped();
        if self.is_whole() {
            return Ok(has_waited);
        }
        let lease = {
            let mut state = self.lock();
            match &state.videos {
                Outcome::Done(lease) => Arc::clone(lease),
                Outcome::Pending | Outcome::Gone => return Ok(has_waited),
                Outcome::Failed(_) => {
                    let failed = std::mem::replace(&mut state.videos, Outcome::Gone);
                    return match failed {
                        Outcome::Failed(error) => Err(error),
                        _ => Ok(has_waited),
                    };
                }
            }
        };
        for (file, ranges) in wanted {
            for range in ranges {
                has_waited |= lease
                    .wait(file, range, &self.interrupted)
                    .map_err(|source| Error::Fetch {
                        episode_index: self.episode_index,
                        frame_index: emission.frame_index,
                        source,
                    })?;
            }
        }
        if lease.is_whole() {
            self.is_whole.store(true, Ordering::Relaxed);
        }
        Ok(has_waited)
    }
}

/// One of the things that an episode needs. Where it is dropped undone, nobody waits for it in vain.
struct Job<T> {
    fetch: Arc<EpisodeFetch>,
    place: fn(&mut State) -> &mut Outcome<T>,
}

impl<T> Job<T> {
    fn new(fetch: &Arc<EpisodeFetch>, place: fn(&mut State) -> &mut Outcome<T>) -> Self {
        Self {
            fetch: Arc::clone(fetch),
            place,
        }
    }

    /// Does it, and notes what comes of it.
    fn run(self, job: impl FnOnce(&Cameras) -> Result<T, Error>) {
        if self.fetch.interrupted.load(Ordering::Relaxed) {
            return;
        }
        let span = tracing::debug_span!("fetch", episode_index = self.fetch.episode_index);
        let _entered = span.enter();
        let outcome = match job(&self.fetch.cameras) {
            Ok(done) => Outcome::Done(done),
            Err(error) => Outcome::Failed(error),
        };
        *(self.place)(&mut self.fetch.lock()) = outcome;
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        let mut state = self.fetch.lock();
        let outcome = (self.place)(&mut state);
        if matches!(outcome, Outcome::Pending) {
            *outcome = Outcome::Gone;
        }
        drop(state);
        self.fetch.changed.notify_all();
    }
}

/// Begins to fetch what an episode needs of its videos.
fn lease(cameras: &Cameras, episode_index: usize, fetcher: &Fetcher) -> Result<Arc<Lease>, Error> {
    let dataset = cameras.dataset();
    let length = dataset.episode(episode_index).length();
    let mut decoder = Decoder::new();
    let in_episode: Vec<_> = dataset
        .fields
        .iter()
        .filter(|field| matches!(field.kind, FieldKind::Video { .. }))
        .map(|field| cameras.camera(field.key(), episode_index, 0))
        .filter_map(|camera| Some((camera, camera.path()?)))
        .collect();
    let take = |wanted: &[(&str, Vec<Range<u64>>)]| match fetcher.lease(wanted) {
        Ok(lease) => Ok(Arc::new(lease)),
        Err(prefetch::Error::CacheTooSmall { needed, max_bytes }) => Err(Error::CacheTooSmall {
            episode_index,
            needed_bytes: needed,
            cache_bytes: max_bytes,
        }),
        Err(error) => Err(error.into()),
    };
    match dataset.options.fetch {
        Fetch::Files => {
            let whole = in_episode.iter();
            let whole = whole.map(|(_, path)| (*path, vec![WHOLE]));
            let lease = take(&whole.collect::<Vec<_>>())?;
            for (camera, _) in in_episode {
                cameras.open(camera, &mut decoder)?;
            }
            Ok(lease)
        }
        Fetch::Ranges => {
            let mut wanted = Vec::with_capacity(in_episode.len());
            for (camera, path) in in_episode {
                let video = cameras.open(camera, &mut decoder)?;
                let rows = [0, length.saturating_sub(1)];
                let [first, last] = cameras.frames_near(camera, &video, rows)?;
                wanted.push((path, video.byte_ranges(first..last + 1)));
            }
            take(&wanted)
        }
    }
}

/// Nothing panics while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
