//! The episodes whose rows are in memory, and the data files they came from.

use std::collections::{BTreeMap, VecDeque};

use dataset::{DataFile, Episode, EpisodeRows, Metadata};
use prefetch::Source;

use crate::Error;
use crate::storage::SourceStorage;

/// Data files kept open, each with its footer parsed.
///
/// Neighbouring episodes share files, and an epoch's shuffled admissions come back to them; a bound keeps a dataset of
/// thousands of small files within any limit on open files.
const MAX_OPEN_FILES: usize = 16;

/// One episode in the pool.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) rows: EpisodeRows,
}

/// The episodes in memory.
#[derive(Debug, Default)]
pub(crate) struct Residents {
    episodes: BTreeMap<usize, Resident>,
    /// Most recently used last.
    open_files: VecDeque<(usize, DataFile)>,
    size_bytes: usize,
    peak_bytes: usize,
}

impl Residents {
    /// Loads an episode's rows.
    pub(crate) fn admit(
        &mut self,
        source: &Source,
        metadata: &Metadata,
        episode: &Episode,
    ) -> Result<&Resident, Error> {
        let episode_index = episode.episode_index();
        let failed = |source| Error::Rows {
            episode_index,
            source,
        };
        let file = self
            .data_file(source, metadata, episode.data_file())
            .map_err(failed)?;
        let rows = file.read_episode(episode).map_err(failed)?;
        self.size_bytes += rows.nbytes();
        self.peak_bytes = self.peak_bytes.max(self.size_bytes);
        let resident = Resident { rows };
        self.episodes.remove(&episode_index);
        Ok(self.episodes.entry(episode_index).or_insert(resident))
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

    pub(crate) fn len(&self) -> usize {
        self.episodes.len()
    }

    /// The most memory that the rows took at once, in bytes.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak_bytes
    }

    fn data_file(
        &mut self,
        source: &Source,
        metadata: &Metadata,
        index: usize,
    ) -> Result<&mut DataFile, dataset::Error> {
        let file = match self.open_files.iter().position(|(open, _)| *open == index) {
            Some(position) => {
                self.open_files
                    .remove(position)
                    .expect("the position was just found")
                    .1
            }
            None => metadata.open_data_file(&SourceStorage(source), index)?,
        };
        if self.open_files.len() == MAX_OPEN_FILES {
            self.open_files.pop_front();
        }
        self.open_files.push_back((index, file));
        Ok(&mut self
            .open_files
            .back_mut()
            .expect("a file was just pushed")
            .1)
    }
}
