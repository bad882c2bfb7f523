//! Open videos, kept for those who come back to them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use moka::notification::RemovalCause;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::video::Video;

/// A bounded set of open videos; the least recently used is closed first. For use by any number of threads.
///
/// An open video holds a file and its packet index. A loader that shuffles within a pool of episodes comes back to the same files again
/// and again: a capacity of `(pool + 1) * cameras` keeps what it needs, and more than 128 is rarely worth its open files.
///
/// - At most `capacity` videos are kept open. One that is pushed out while somebody uses it closes when the last use ends.
/// - Threads that ask for one video while it is being opened wait for it; it is opened once.
/// - A video whose opening fails or panics is opened anew the next time.
pub struct VideoCache {
    slots: Cache<String, Arc<Slot>>,
    counters: Arc<Counters>,
}

/// A place for one video, in the cache or just out of it.
#[derive(Debug, Default)]
struct Slot {
    video: Mutex<Option<Arc<Video>>>,
    /// Set once the slot is out of the cache.
    evicted: AtomicBool,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// What a cache has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Uses that found their video open.
    pub hits: u64,
    /// Uses that had to open it.
    pub misses: u64,
    /// Videos closed to make room.
    pub evictions: u64,
}

impl CacheStats {
    /// Hits over uses, in `[0, 1]`; 0 before the first use.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        let uses = self.hits + self.misses;
        if uses == 0 {
            0.0
        } else {
            self.hits as f64 / uses as f64
        }
    }
}

impl VideoCache {
    /// A cache of at most `capacity` open videos. With 0, every use opens its video.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let counters = Arc::new(Counters::default());
        let on_eviction = Arc::clone(&counters);
        let slots = Cache::builder()
            .max_capacity(capacity as u64)
            // moka's default policy keeps what was used often, and would turn a new video away from a full cache.
            .eviction_policy(EvictionPolicy::lru())
            .eviction_listener(move |_key, slot: Arc<Slot>, cause| {
                if cause == RemovalCause::Size {
                    on_eviction.evictions.fetch_add(1, Ordering::Relaxed);
                }
                slot.evict();
            })
            .build();
        Self { slots, counters }
    }

    /// The video named `key`, after `open` where it is not open yet.
    ///
    /// # Errors
    ///
    /// What `open` returns.
    pub fn get_or_open<E>(
        &self,
        key: &str,
        open: impl FnOnce() -> Result<Video, E>,
    ) -> Result<Arc<Video>, E> {
        let slot = self.slots.get_with_by_ref(key, Arc::default);
        // moka evicts in batches, when it comes to it: files must not stay open for so long.
        self.slots.run_pending_tasks();
        if !self.slots.contains_key(key) {
            slot.evict();
        }
        let mut place = slot.lock();
        if let Some(video) = &*place {
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::clone(video));
        }
        self.counters.misses.fetch_add(1, Ordering::Relaxed);
        // What does not open must not hold a place in the cache.
        let video = Arc::new(open().inspect_err(|_| self.slots.invalidate(key))?);
        *place = Some(Arc::clone(&video));
        drop(place);
        slot.close_if_evicted();
        Ok(video)
    }

    /// What the cache has done so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.counters.hits.load(Ordering::Relaxed),
            misses: self.counters.misses.load(Ordering::Relaxed),
            evictions: self.counters.evictions.load(Ordering::Relaxed),
        }
    }
}

impl Drop for VideoCache {
    /// Lets go of all videos now, where moka would at some later time of its own.
    fn drop(&mut self) {
        for (_key, slot) in &self.slots {
            slot.evict();
        }
    }
}

impl fmt::Debug for VideoCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VideoCache")
            .field("capacity", &self.slots.policy().max_capacity())
            .field("stats", &self.stats())
            .finish()
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Video>>> {
        // A panic leaves the place empty.
        self.video.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the video now, or else as soon as it has been opened. (moka frees what it evicts at some later time of its own.)
    fn evict(&self) {
        // Before the attempt to lock: whoever still has the lock then sees the mark after giving it back.
        self.evicted.store(true, Ordering::SeqCst);
        self.close_if_evicted();
    }

    fn close_if_evicted(&self) {
        if self.evicted.load(Ordering::SeqCst) {
            match self.video.try_lock() {
                Ok(mut video) => *video = None,
                Err(TryLockError::Poisoned(poisoned)) => *poisoned.into_inner() = None,
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }
}
