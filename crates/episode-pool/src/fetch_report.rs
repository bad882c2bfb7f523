//! What fetching has cost a consumer.

use std::time::Duration;

/// What one consumer waited for and did without while it fetched from a remote source. All 0 for a directory.
///
/// What was asked of the source is counted for all consumers of a process together:
/// [`Loader::fetch_totals`](crate::Loader::fetch_totals), [`EpisodePool::fetch_stats`](crate::EpisodePool::fetch_stats).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct FetchReport {
    /// How often a sample had to wait for bytes to come.
    pub stalls: u64,
    /// For how long, in all.
    pub stalled: Duration,
    /// The episodes that were left out because they could not be fetched.
    pub left_out: Vec<LeftOut>,
}

/// An episode of which frames were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The episode.
    pub episode_index: usize,
    /// How many of its frames were left out, of those that were to be emitted.
    pub frames: u64,
    /// Why: the error with its causes.
    pub reason: String,
}

/// What fetching has cost all workers of a loader so far, and what it was good for. All 0 for a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FetchTotals {
    /// Requests sent, repetitions among them; since the loader's first epoch began, as are the others.
    pub requests: u64,
    /// Requests that were made again after one that failed.
    pub retries: u64,
    /// Bytes that came.
    pub bytes_fetched: u64,
    /// Bytes of rows that were read, and of video that were needed at hand, each time they were.
    pub bytes_needed: u64,
    /// Of these, the bytes of video that were at hand already, or on their way.
    pub bytes_found: u64,
    /// The bytes of video that were needed and could not be kept.
    pub bytes_not_kept: u64,
}

impl FetchTotals {
    /// Bytes fetched for each byte that was needed and not at hand, video headers and what was read more than once included; 0 before the
    /// first.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        let missing = self.bytes_needed.saturating_sub(self.bytes_found);
        if missing == 0 {
            0.0
        } else {
            self.bytes_fetched as f64 / missing as f64
        }
    }

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

impl FetchReport {
    /// Adds what another consumer did.
    pub fn merge(&mut self, other: Self) {
        self.stalls += other.stalls;
        self.stalled += other.stalled;
        self.left_out.extend(other.left_out);
    }
}
