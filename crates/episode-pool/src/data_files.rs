//! Data files that are open, each with its footer parsed once.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
#[cfg(feature = "remote")]
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataset::{DataFile, Episode, EpisodeRows};

use crate::Error;
use crate::pool::Dataset;
use crate::storage::CountedStorage;

/// Data files kept open.
///
/// Neighbouring episodes share files, and an epoch's shuffled admissions come back to them; a bound keeps a dataset of
/// thousands of small files within any limit on open files.
const MAX_OPEN_FILES: usize = 16;

/// A file, or room for it: whoever reads from it has it alone.
type Slot = Arc<Mutex<Option<DataFile>>>;

/// Reads episodes' rows, for any number of threads; each file is opened once while it is among those last used.
#[derive(Debug, Default)]
pub(crate) struct DataFiles {
    /// Most recently used last.
    open: Mutex<VecDeque<(usize, Slot)>>,
    bytes_read: Arc<AtomicU64>,
}

impl DataFiles {
    /// Reads an episode's rows.
    pub(crate) fn read(&self, dataset: &Dataset, episode: &Episode) -> Result<EpisodeRows, Error> {
        let slot = self.slot(episode.data_file());
        let mut place = lock(&slot);
        let read = |place: &mut Option<DataFile>| {
            let file = match place {
                Some(file) => file,
                None => {
                    let storage = CountedStorage {
                        source: &dataset.bulk,
                        count: &self.bytes_read,
                    };
                    let file = dataset
                        .metadata
                        .open_data_file(&storage, episode.data_file())?;
                    place.insert(file)
                }
            };
            file.read_episode(episode)
        };
        read(&mut place).map_err(|source| Error::Rows {
            episode_index: episode.episode_index(),
            source,
        })
    }

    /// The bytes read so far, footers included.
    #[cfg(feature = "remote")]
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn slot(&self, file: usize) -> Slot {
        let mut open = lock(&self.open);
        let found = open.iter().position(|(number, _)| *number == file);
        let slot = found.and_then(|position| open.remove(position));
        let (_, slot) = slot.unwrap_or_default();
        if open.len() == MAX_OPEN_FILES {
            open.pop_front();
        }
        open.push_back((file, Arc::clone(&slot)));
        slot
    }
}

/// A panic while a file is read leaves it as it is after an error: every read begins by its own.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
