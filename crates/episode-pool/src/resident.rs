//! The episodes whose rows are in memory.

use std::collections::BTreeMap;

use dataset::EpisodeRows;

/// One episode in the pool.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) rows: EpisodeRows,
}

/// The episodes in memory.
#[derive(Debug, Default)]
pub(crate) struct Residents {
    episodes: BTreeMap<usize, Resident>,
    size_bytes: usize,
    peak_bytes: usize,
}

impl Residents {
    /// Takes an episode's rows.
    pub(crate) fn admit(&mut self, episode_index: usize, rows: EpisodeRows) {
        self.evict(episode_index);
        self.size_bytes += rows.nbytes();
        self.peak_bytes = self.peak_bytes.max(self.size_bytes);
        self.episodes.insert(episode_index, Resident { rows });
    }

    /// Drops an episode's rows.
    pub(crate) fn evict(&mut self, episode_index: usize) {
        if let Some(resident) = self.episodes.remove(&episode_index) {
            self.size_bytes -= resident.rows.nbytes();
        }
    }

    pub(crate) fn get(&self, episode_index: usize) -> Option<&Resident> {
        self.episodes.get(&episode_index)
    }

    /// The most memory that the rows took at once, in bytes.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak_bytes
    }
}
