//! Open decoders, kept while they are likely to be used again.

use crate::video::Video;

/// A bounded set of open videos, least recently used first out.
#[derive(Debug)]
pub struct DecoderCache {}

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
        if uses == 0 { 0.0 } else { self.hits as f64 / uses as f64 }
    }
}

impl DecoderCache {
    /// A cache of at most `capacity` open videos.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let _ = capacity;
        todo!()
    }

    /// Runs `use_it` on the video named `key`, opening it first where it is not open yet.
    ///
    /// # Errors
    ///
    /// What `open` or `use_it` return.
    pub fn decode_with<T, E>(
        &self,
        key: &str,
        open: impl FnOnce() -> Result<Video, E>,
        use_it: impl FnOnce(&mut Video) -> Result<T, E>,
    ) -> Result<T, E> {
        let _ = (key, open, use_it);
        todo!()
    }

    /// What the cache has done so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        todo!()
    }
}
