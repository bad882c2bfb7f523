//! Threads that fetch, and leases on what they fetch.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::CachedReader;
use super::piece::{self, FilePieces, Piece, Spec, State};
use super::store::{Claim, Store};
use crate::remote::Remote;
use crate::{CacheOptions, Error, Reader, Source};

/// How long a thread is idle before it looks what other processes have done meanwhile.
const IDLE: Duration = Duration::from_millis(100);
/// The pause before another process's piece is looked for again.
const OTHERS: Duration = Duration::from_millis(10);

/// Threads that fetch from one remote source into a cache.
///
/// Dropping it leaves out what has not begun, breaks off what has, and takes away what it has in the cache's folder, once the last [`Lease`] and the last [`Reader`] are gone, too.
#[derive(Debug)]
pub struct FetchThreads {
    fetcher: Fetcher,
    handles: Vec<JoinHandle<()>>,
}

/// What asks [`FetchThreads`] for things. Cheap to clone; for use by any number of threads.
#[derive(Debug, Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

/// What a cache was good for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Bytes that were asked to be at hand, each time they were.
    pub bytes_needed: u64,
    /// Of these, how many were there already, or on their way.
    pub bytes_found: u64,
    /// Bytes that were asked for and could not be kept, because there was no room or the disk refused them. They are read from the source
    /// whenever they are wanted.
    pub bytes_not_kept: u64,
}

impl CacheStats {
    /// Bytes found over bytes needed, in `[0, 1]`; 0 before the first.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        if self.bytes_needed == 0 {
            0.0
        } else {
            self.bytes_found as f64 / self.bytes_needed as f64
        }
    }
}

/// A claim to some bytes of some files: they are fetched, and stay at hand until this is dropped.
#[derive(Debug)]
#[must_use = "bytes stay at hand for as long as their lease lives"]
pub struct Lease {
    shared: Arc<Shared>,
    terms: Arc<Terms>,
}

/// What a lease is on.
#[derive(Debug)]
struct Terms {
    specs: Vec<Spec>,
    bytes: u64,
    /// In the order of `specs`; none while there is no room.
    pieces: Mutex<Granted>,
}

#[derive(Debug)]
enum Granted {
    NotYet,
    Yes(Vec<Arc<Piece>>),
    Ended,
}

#[derive(Debug)]
pub(super) struct Shared {
    remote: Arc<Remote>,
    store: Store,
    /// What pieces are told apart by, beside their file.
    identity: String,
    registry: Mutex<Registry>,
    queue: Mutex<Queue>,
    changed: Condvar,
    stopped: AtomicBool,
    has_warned: AtomicBool,
    needed: AtomicU64,
    found: AtomicU64,
    not_kept: AtomicU64,
}

/// What this process needs.
#[derive(Debug, Default)]
struct Registry {
    /// By name, with the number of leases on each.
    pieces: HashMap<String, (Arc<Piece>, usize)>,
    files: HashMap<Arc<str>, Arc<FilePieces>>,
    /// Leases that there is no room for yet, in their order.
    waiting: VecDeque<Weak<Terms>>,
}

#[derive(Default)]
struct Queue {
    /// Jobs, and pieces that are waited for.
    first: VecDeque<Task>,
    /// Pieces that will be.
    then: VecDeque<Task>,
}

enum Task {
    Job(Box<dyn FnOnce() + Send>),
    Piece(Arc<Piece>),
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("first", &self.first.len())
            .field("then", &self.then.len())
            .finish()
    }
}

impl FetchThreads {
    /// Starts as many threads as `source` may have requests at once.
    ///
    /// # Errors
    ///
    /// - [`Error::NothingToFetch`] for a directory.
    /// - [`Error::Cache`] when the cache's folder cannot be made, or lies where files can be neither locked nor linked.
    /// - [`Error::Settings`] when no threads can be started.
    pub fn start(source: &Source, cache: &CacheOptions) -> Result<Self, Error> {
        let remote = source.remote().ok_or_else(|| Error::NothingToFetch {
            path: source.name(),
        })?;
        let identity = format!("{}@{}", remote.name(), remote.revision().unwrap_or(""));
        let num_threads = remote.max_requests();
        let shared = Arc::new(Shared {
            remote,
            store: Store::open(cache)?,
            identity,
            registry: Mutex::default(),
            queue: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            has_warned: AtomicBool::new(false),
            needed: AtomicU64::new(0),
            found: AtomicU64::new(0),
            not_kept: AtomicU64::new(0),
        });
        let mut threads = Self {
            fetcher: Fetcher { shared },
            handles: Vec::with_capacity(num_threads),
        };
        for number in 0..num_threads {
            let shared = Arc::clone(&threads.fetcher.shared);
            let handle = thread::Builder::new()
                .name(format!("fetch-{number}"))
                .spawn(move || shared.run())
                .map_err(|error| Error::Settings {
                    url: source.name(),
                    reason: format!("no threads can be started to fetch from it: {error}"),
                })?;
            threads.handles.push(handle);
        }
        Ok(threads)
    }

    /// What to ask them by.
    #[must_use]
    pub fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }
}

impl Drop for FetchThreads {
    fn drop(&mut self) {
        let shared = &self.fetcher.shared;
        shared.stopped.store(true, Ordering::Relaxed);
        let Queue { first, then } = std::mem::take(&mut *lock(&shared.queue));
        // Outside the lock: a job may tell those who wait for it that it will not be done.
        for task in first.into_iter().chain(then) {
            if let Task::Piece(piece) = task {
                shared.leave_direct(&piece);
            }
        }
        shared.changed.notify_all();
        for handle in self.handles.drain(..) {
            // A thread catches the panics of its jobs.
            let _ = handle.join();
        }
    }
}

impl Fetcher {
    /// Has a thread do something that takes requests of its own, before what nobody waits for yet. It is dropped undone if the threads stop
    /// first.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.shared.push(Task::Job(Box::new(job)), true);
    }

    /// Opens a file that is read from the cache where something of it is at hand, and from the source otherwise. A read waits for what is
    /// under way.
    ///
    /// # Errors
    ///
    /// As for [`Source::open`].
    pub fn open(&self, key: &str) -> Result<Reader, Error> {
        crate::key::check(key)?;
        let reader = CachedReader::open(Arc::clone(&self.shared), key)?;
        Ok(Reader::cached(reader))
    }

    /// The size of a file in bytes.
    ///
    /// # Errors
    ///
    /// As for [`Source::open`].
    pub fn size(&self, key: &str) -> Result<u64, Error> {
        crate::key::check(key)?;
        Ok(self.shared.remote.stat(key)?.size)
    }

    /// Begins to fetch some byte ranges of some files, and keeps them at hand. Ranges that lie near to each other are fetched as one; of
    /// what goes beyond a file's end, what there is.
    ///
    /// Where there is no room for all of them, none is fetched before there is; they are then read from the source when they are wanted.
    ///
    /// # Errors
    ///
    /// - [`Error::CacheTooSmall`] when they are more than the cache may ever hold.
    /// - As for [`Source::open`], when a file is not there.
    pub fn lease(&self, wanted: &[(&str, Vec<Range<u64>>)]) -> Result<Lease, Error> {
        let shared = &self.shared;
        let mut specs: Vec<Spec> = Vec::new();
        for (key, ranges) in wanted {
            crate::key::check(key)?;
            let stat = shared.remote.stat(key)?;
            let version = format!("{}-{}", stat.size, stat.etag.unwrap_or_default());
            let cut = piece::cut(&shared.identity, key, &version, stat.size, ranges);
            specs.extend(cut);
        }
        specs.sort_unstable_by(|a, b| (&a.key, a.range.start).cmp(&(&b.key, b.range.start)));
        specs.dedup();
        let bytes = specs.iter().map(|spec| piece::len(&spec.range)).sum();
        if bytes > shared.store.max_bytes() {
            return Err(Error::CacheTooSmall {
                needed: bytes,
                max_bytes: shared.store.max_bytes(),
            });
        }
        shared.needed.fetch_add(bytes, Ordering::Relaxed);
        let terms = Arc::new(Terms {
            specs,
            bytes,
            pieces: Mutex::new(Granted::NotYet),
        });
        {
            let mut registry = lock(&shared.registry);
            if !registry.waiting.is_empty() || !shared.grant(&mut registry, &terms) {
                registry.waiting.push_back(Arc::downgrade(&terms));
                shared.not_kept.fetch_add(bytes, Ordering::Relaxed);
                shared.warn(|| {
                    format!(
                        "the cache's {} bytes are all in use: what there is no room for is read from `{}` whenever it is wanted",
                        shared.store.max_bytes(),
                        shared.remote.name()
                    )
                });
            }
        }
        Ok(Lease {
            shared: Arc::clone(shared),
            terms,
        })
    }

    /// What the cache was good for so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            bytes_needed: self.shared.needed.load(Ordering::Relaxed),
            bytes_found: self.shared.found.load(Ordering::Relaxed),
            bytes_not_kept: self.shared.not_kept.load(Ordering::Relaxed),
        }
    }
}

impl Lease {
    /// How many bytes it is on.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.terms.bytes
    }

    /// Whether it is on nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.bytes == 0
    }

    /// Whether all of it is at hand.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_here = |piece: &Arc<Piece>| matches!(*piece.state(), State::Here);
        matches!(&*lock(&self.terms.pieces), Granted::Yes(pieces) if pieces.iter().all(is_here))
    }

    /// Says that a range of a file will be read before what was not asked for yet.
    pub fn want(&self, key: &str, range: &Range<u64>) {
        for piece in self.pieces(key, range) {
            self.shared.want(&piece);
        }
    }

    /// Waits until a range of a file is at hand, or cannot be; whether there was anything to wait for. Gives up once `give_up` is set.
    ///
    /// # Errors
    ///
    /// Why it could not be fetched.
    pub fn wait(
        &self,
        key: &str,
        range: &Range<u64>,
        give_up: &AtomicBool,
    ) -> Result<bool, Arc<Error>> {
        let give_up = || give_up.load(Ordering::Relaxed);
        let mut has_waited = false;
        for piece in self.pieces(key, range) {
            self.shared.want(&piece);
            has_waited |= piece.is_coming();
            if let State::Failed(error) = piece.wait(&give_up) {
                return Err(error);
            }
        }
        Ok(has_waited)
    }

    /// Its pieces that hold something of a range.
    fn pieces(&self, key: &str, range: &Range<u64>) -> Vec<Arc<Piece>> {
        let Granted::Yes(pieces) = &*lock(&self.terms.pieces) else {
            return Vec::new();
        };
        let holds = |spec: &Spec| {
            spec.range.start < range.end && range.start < spec.range.end && *spec.key == *key
        };
        let some = pieces.iter().filter(|piece| holds(&piece.spec));
        some.map(Arc::clone).collect()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.end(&self.terms);
    }
}

impl Shared {
    pub(super) fn remote(&self) -> &Arc<Remote> {
        &self.remote
    }

    pub(super) fn path(&self, piece: &Piece) -> PathBuf {
        self.store.path(&piece.spec.name)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn stop_mark(&self) -> &AtomicBool {
        &self.stopped
    }

    pub(super) fn file(&self, key: &str) -> Arc<FilePieces> {
        lock(&self.registry).file(&key.into())
    }

    /// Puts a piece before those that nobody waits for.
    fn want(&self, piece: &Arc<Piece>) {
        if piece.want() {
            self.push(Task::Piece(Arc::clone(piece)), true);
        }
    }

    fn push(&self, task: Task, is_first: bool) {
        let mut queue = lock(&self.queue);
        if self.is_stopped() {
            drop(queue);
            if let Task::Piece(piece) = task {
                self.leave_direct(&piece);
            }
            return;
        }
        if is_first {
            queue.first.push_back(task);
        } else {
            queue.then.push_back(task);
        }
        drop(queue);
        self.changed.notify_one();
    }

    /// Takes the room for a lease, and has fetched what is not here; false if there is none.
    fn grant(&self, registry: &mut Registry, terms: &Terms) -> bool {
        let fresh = |spec: &&Spec| !registry.pieces.contains_key(&spec.name);
        let fresh: Vec<&Spec> = terms.specs.iter().filter(fresh).collect();
        let names: Vec<&str> = fresh.iter().map(|spec| spec.name.as_str()).collect();
        let claims = match self.store.claim(&names) {
            Ok(Some(claims)) => claims,
            Ok(None) => return false,
            Err(error) => {
                self.warn(|| format!("cannot use the cache: {error}"));
                return false;
            }
        };
        for (spec, claim) in fresh.into_iter().zip(claims) {
            let state = match claim {
                Claim::Here => State::Here,
                Claim::Mine => State::Waiting { is_claimed: true },
                Claim::Others => State::Waiting { is_claimed: false },
            };
            let piece = Arc::new(Piece::new(spec.clone(), state));
            registry.file(&spec.key).insert(&piece);
            if claim == Claim::Mine {
                self.push(Task::Piece(Arc::clone(&piece)), false);
            } else {
                let len = piece::len(&spec.range);
                self.found.fetch_add(len, Ordering::Relaxed);
                if claim == Claim::Others {
                    self.push(Task::Piece(Arc::clone(&piece)), false);
                }
            }
            let place = registry.pieces.entry(spec.name.clone());
            place.or_insert((piece, 0));
        }
        let mut pieces = Vec::with_capacity(terms.specs.len());
        for spec in &terms.specs {
            let (piece, leases) = registry
                .pieces
                .get_mut(&spec.name)
                .expect("those that were not there were just added");
            if *leases > 0 {
                let len = piece::len(&spec.range);
                self.found.fetch_add(len, Ordering::Relaxed);
            }
            *leases += 1;
            pieces.push(Arc::clone(piece));
        }
        *lock(&terms.pieces) = Granted::Yes(pieces);
        true
    }

    /// Ends a lease, and grants others that waited for room.
    fn end(&self, terms: &Terms) {
        let mut registry = lock(&self.registry);
        let granted = std::mem::replace(&mut *lock(&terms.pieces), Granted::Ended);
        let Granted::Yes(pieces) = granted else {
            return;
        };
        let mut released = Vec::new();
        for piece in pieces {
            let name = &piece.spec.name;
            let Some((_, leases)) = registry.pieces.get_mut(name) else {
                continue;
            };
            *leases -= 1;
            if *leases > 0 {
                continue;
            }
            registry.pieces.remove(name);
            registry.file(&piece.spec.key).remove(&piece.spec.range);
            let state = piece.state();
            match &*state {
                State::Here => released.push(Arc::clone(&piece)),
                State::Waiting { is_claimed: true } => self.give_up(&piece),
                // What is under way is given up by whoever fetches it.
                _ => {}
            }
            piece.set(state, State::Released);
        }
        let names = released.iter().map(|piece| piece.spec.name.as_str());
        if let Err(error) = self.store.release(names) {
            self.warn(|| format!("cannot delete from the cache: {error}"));
        }
        self.grant_waiting(&mut registry);
    }

    fn grant_waiting(&self, registry: &mut Registry) {
        while let Some(terms) = registry.waiting.front() {
            if let Some(terms) = terms.upgrade() {
                let has_ended = matches!(*lock(&terms.pieces), Granted::Ended);
                if !has_ended && !self.grant(registry, &terms) {
                    break;
                }
            }
            registry.waiting.pop_front();
        }
    }

    /// A thread's life.
    fn run(&self) {
        while let Some(task) = self.next_task() {
            match task {
                // What panicked is missed by whoever waits for it, and done again there.
                Task::Job(job) => drop(catch_unwind(AssertUnwindSafe(job))),
                Task::Piece(piece) => self.fetch(&piece),
            }
        }
    }

    fn next_task(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if self.is_stopped() {
                return None;
            }
            let task = queue.first.pop_front();
            if let Some(task) = task.or_else(|| queue.then.pop_front()) {
                return Some(task);
            }
            let (next, timeout) = self
                .changed
                .wait_timeout(queue, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            queue = next;
            if timeout.timed_out() {
                drop(queue);
                // Another process may have made room.
                let mut registry = lock(&self.registry);
                if !registry.waiting.is_empty() {
                    self.grant_waiting(&mut registry);
                }
                drop(registry);
                queue = lock(&self.queue);
            }
        }
    }

    /// Fetches a piece, unless somebody else does so or has done.
    pub(super) fn fetch(&self, piece: &Arc<Piece>) {
        let state = piece.state();
        let State::Waiting { is_claimed } = *state else {
            return;
        };
        piece.set(state, State::UnderWay);
        if !is_claimed && !self.claim_others(piece) {
            return;
        }
        let Spec { key, range, .. } = &piece.spec;
        let read = self.remote.read(key, range.clone(), Some(&self.stopped));
        let state = piece.state();
        let next = match read {
            _ if matches!(*state, State::Released) => State::Released,
            Ok(bytes) => match self.store.complete(&piece.spec.name, &bytes) {
                Ok(()) => State::Here,
                Err(error) => {
                    self.not_kept
                        .fetch_add(piece::len(range), Ordering::Relaxed);
                    self.warn(|| {
                        format!("cannot write to the cache, and will read from the source what is missing there: {error}")
                    });
                    State::Direct
                }
            },
            Err(_) if self.is_stopped() => State::Direct,
            Err(error) => State::Failed(Arc::new(error)),
        };
        if !matches!(next, State::Here) {
            self.give_up(piece);
        }
        piece.set(state, next);
    }

    /// What has become of a piece that another process was fetching: true if it is this one's to fetch now.
    fn claim_others(&self, piece: &Arc<Piece>) -> bool {
        let claim = self.store.claim(&[&piece.spec.name]);
        let state = piece.state();
        let is_released = matches!(*state, State::Released);
        let next = match claim.map(|claims| claims.and_then(|claims| claims.first().copied())) {
            Ok(Some(Claim::Mine)) if !is_released => return true,
            Ok(Some(Claim::Here)) if !is_released => State::Here,
            Ok(Some(Claim::Others)) if !is_released => {
                piece.set(state, State::Waiting { is_claimed: false });
                thread::sleep(OTHERS);
                self.push(Task::Piece(Arc::clone(piece)), piece.is_wanted());
                return false;
            }
            Ok(_) if is_released => {
                self.give_up(piece);
                State::Released
            }
            Ok(_) => State::Direct,
            Err(error) => {
                self.warn(|| format!("cannot use the cache: {error}"));
                State::Direct
            }
        };
        piece.set(state, next);
        false
    }

    /// Gives back the room of a piece that was claimed and will not come.
    fn give_up(&self, piece: &Piece) {
        if let Err(error) = self.store.give_up(&piece.spec.name) {
            self.warn(|| format!("cannot delete from the cache: {error}"));
        }
    }

    /// Leaves a piece that was to be fetched to those who want it.
    fn leave_direct(&self, piece: &Piece) {
        let state = piece.state();
        if let State::Waiting { is_claimed } = *state {
            if is_claimed {
                self.give_up(piece);
            }
            piece.set(state, State::Direct);
        }
    }

    /// Tells the first thing that is amiss with the cache; what follows is most often more of the same.
    fn warn(&self, message: impl FnOnce() -> String) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("{}", message());
        }
    }
}

impl Registry {
    fn file(&mut self, key: &Arc<str>) -> Arc<FilePieces> {
        Arc::clone(self.files.entry(Arc::clone(key)).or_default())
    }
}

/// Nothing panics while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
