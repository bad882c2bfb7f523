//! What fetching has cost a consumer.

use std::time::Duration;

/// What one consumer waited for and did without while it fetched from a remote source. All 0 for a directory.
///
/// What was asked of the source is counted where it is asked, for all consumers of a process together:
/// [`EpisodePool::fetch_stats`](crate::EpisodePool::fetch_stats).
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

impl FetchReport {
    /// Adds what another consumer did.
    pub fn merge(&mut self, other: Self) {
        self.stalls += other.stalls;
        self.stalled += other.stalled;
        self.left_out.extend(other.left_out);
    }
}
