//! How a remote source is asked, and what it was asked.

use std::time::Duration;

/// How a remote source is asked for things. Means nothing to a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceOptions {
    /// How often a request is made before it counts as failed, at least once. Default: 6.
    ///
    /// Repeated are requests that met a broken connection, a short answer, a timeout, the statuses 408, 429, 500, 502, 503 and 504, and a
    /// 401 or 403 behind a redirect, whose link may have expired.
    pub max_attempts: u32,
    /// The pause before the first repetition; each further one is up to twice as long, at most 30 s. Its exact length is left to chance, so that
    /// many machines do not come back at once. Default: 0.5 s. A server's `Retry-After` is kept to, up to 5 minutes.
    pub backoff: Duration,
    /// How long a server may send nothing at all. (A whole request may take this long, and a second more for every 64 KiB.) Default: 30 s.
    pub timeout: Duration,
    /// The most requests at once, 1 to 1024: what is less or more is taken as the nearer of these. Default: 16.
    pub max_requests: usize,
}

#[cfg(feature = "remote")]
impl SourceOptions {
    pub(crate) fn requests_at_once(&self) -> usize {
        self.max_requests.clamp(1, 1024)
    }
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            max_attempts: 6,
            backoff: Duration::from_millis(500),
            timeout: Duration::from_secs(30),
            max_requests: 16,
        }
    }
}

/// What a remote source was asked for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FetchStats {
    /// Requests sent, repetitions among them.
    pub requests: u64,
    /// Requests that were made again after one that failed.
    pub retries: u64,
    /// Bytes that came, of file contents and of answers about files.
    pub bytes_fetched: u64,
}
