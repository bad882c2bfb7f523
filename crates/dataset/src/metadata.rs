//! Everything below `meta/`, read once and checked against itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::episodes::{self, Table};
use crate::{DataFile, Episode, Error, Info, Stats, Storage, Tasks, Warning, intervals, storage};

/// Which of the Parquet readers to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reader {
    /// arrow-rs' `parquet`.
    #[default]
    Parquet,
    /// arrow2 and parquet2, an independent implementation to compare with, for files that are known to be whole: on some
    /// damaged pages it never ends. It cannot decode booleans in v2 data pages.
    #[cfg(feature = "arrow2")]
    Arrow2,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "parquet",
            #[cfg(feature = "arrow2")]
            Self::Arrow2 => "arrow2",
        })
    }
}

/// The metadata of a dataset.
///
/// - The episodes follow one another without gaps: each starts, in global frame numbers, where the one before it ends,
///   and the first at 0.
/// - An episode's number is its own: it need not be its position.
#[derive(Debug, Clone)]
pub struct Metadata {
    reader: Reader,
    info: Info,
    tasks: Arc<Tasks>,
    stats: Option<Stats>,
    episodes: Vec<Episode>,
    /// Positions in `episodes`, by episode number.
    positions: BTreeMap<usize, usize>,
    data_files: Vec<String>,
    total_frames: usize,
    warnings: Vec<Warning>,
}

impl Metadata {
    /// Reads `meta/info.json`, all of `meta/episodes/**.parquet` (but not its statistics), `meta/tasks.parquet`, and
    /// `meta/stats.json` if it is there.
    ///
    /// Neither data nor videos are looked at; [`check_files`](Self::check_files) sees whether they are there.
    ///
    /// # Errors
    ///
    /// - [`Error::Missing`], [`Error::Io`], [`Error::Damaged`], [`Error::Corrupt`], [`Error::Json`] for a file that is not
    ///   there or not whole.
    /// - [`Error::Version`] unless info.json says `v3.0`.
    /// - [`Error::Info`], [`Error::Template`] for a field of info.json that cannot be used.
    /// - [`Error::MissingColumn`], [`Error::Value`] for a table without what it needs.
    /// - [`Error::Episode`] for an episode whose `length` does not fit its `dataset_from_index` and `dataset_to_index`, that does
    ///   not begin where the one before it ended, or that is there twice with different values.
    /// - [`Error::Totals`] when info.json counts more episodes or frames than the tables hold. When it counts fewer, that is
    ///   a warning: nothing is lost.
    pub fn read(storage: &dyn Storage) -> Result<Self, Error> {
        Self::read_with(storage, Reader::default())
    }

    /// The same as [`read`](Self::read), with a Parquet reader of your choice, which its data files are read with, too.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_with(storage: &dyn Storage, reader: Reader) -> Result<Self, Error> {
        let (info, mut warnings) = Info::read(storage)?;
        let Table {
            episodes,
            data_files,
        } = episodes::read(storage, reader, &info, &mut warnings)?;
        let total_frames = episodes
            .last()
            .map_or(0, |last| last.from_index() + last.length());
        check_totals(
            "total_episodes",
            info.total_episodes(),
            episodes.len(),
            &mut warnings,
        )?;
        check_totals(
            "total_frames",
            info.total_frames(),
            total_frames,
            &mut warnings,
        )?;
        intervals::check(&info, &episodes, &mut warnings);
        let tasks = Arc::new(Tasks::read(storage, reader, &info)?);
        let stats = Stats::read(storage, &mut warnings);
        let positions = episodes
            .iter()
            .enumerate()
            .map(|(position, episode)| (episode.episode_index(), position))
            .collect();
        Ok(Self {
            reader,
            info,
            tasks,
            stats,
            episodes,
            positions,
            data_files,
            total_frames,
            warnings,
        })
    }

    /// The Parquet reader in use.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.reader
    }

    /// What info.json says.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// All episodes, in the order of the dataset's frames.
    #[must_use]
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// The episode with this number.
    #[must_use]
    pub fn episode(&self, episode_index: usize) -> Option<&Episode> {
        self.episodes.get(*self.positions.get(&episode_index)?)
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(crate) fn shared_tasks(&self) -> Arc<Tasks> {
        Arc::clone(&self.tasks)
    }

    /// The features' statistics, if the dataset has any.
    #[must_use]
    pub fn stats(&self) -> Option<&Stats> {
        self.stats.as_ref()
    }

    /// The paths of the data files, in the order of the frames that they hold.
    #[must_use]
    pub fn data_files(&self) -> &[String] {
        &self.data_files
    }

    /// The number of frames in all episodes.
    #[must_use]
    pub fn total_frames(&self) -> usize {
        self.total_frames
    }

    /// What is odd about the dataset.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The episode and the frame within it of the frame with the global number `index` (the column `index`).
    #[must_use]
    pub fn locate(&self, index: usize) -> Option<(usize, usize)> {
        let after = self
            .episodes
            .partition_point(|episode| episode.from_index() <= index);
        let episode = self.episodes.get(after.checked_sub(1)?)?;
        let frame_index = index - episode.from_index();
        (frame_index < episode.length()).then_some((episode.episode_index(), frame_index))
    }

    /// Opens the data file at position `data_file` of [`data_files`](Self::data_files).
    ///
    /// # Errors
    ///
    /// As [`DataFile::open`], and [`Error::Missing`] when the file is not there.
    ///
    /// # Panics
    ///
    /// When there is no such position.
    pub fn open_data_file(
        &self,
        storage: &dyn Storage,
        data_file: usize,
    ) -> Result<DataFile, Error> {
        let path = &self.data_files[data_file];
        let reader = storage::open(storage, path).map_err(|error| match error {
            Error::Missing { path, source, .. } => Error::Missing {
                needed_for: Some(self.needs_data_file(data_file)),
                path,
                source,
            },
            error => error,
        })?;
        DataFile::open(reader, path, self)
    }

    /// Checks that the data and video files of these episodes are there, without opening any.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] for the first file that is not there, naming the field of the episode table that leads to it;
    /// [`Error::Io`] when a folder cannot be read. Nothing is checked where the storage cannot list.
    pub fn check_files<'a>(
        &self,
        storage: &dyn Storage,
        episodes: impl IntoIterator<Item = &'a Episode>,
    ) -> Result<(), Error> {
        let mut listed = Listed {
            storage,
            folders: BTreeMap::new(),
        };
        for episode in episodes {
            let path = &self.data_files[episode.data_file()];
            if !listed.contains(path)? {
                return Err(Error::Missing {
                    path: path.clone(),
                    needed_for: Some(self.needs_data_file(episode.data_file())),
                    source: None,
                });
            }
            for (camera, span) in episode.videos() {
                if !listed.contains(span.path())? {
                    let episode_index = episode.episode_index();
                    return Err(Error::Missing {
                        path: span.path().to_owned(),
                        needed_for: Some(format!(
                            "`videos/{camera}/file_index` of the episode table says that it holds episode {episode_index} \
                             of camera `{camera}`"
                        )),
                        source: None,
                    });
                }
            }
        }
        Ok(())
    }

    /// The episodes of a data file, which follow one another.
    pub(crate) fn episodes_of(&self, data_file: usize) -> &[Episode] {
        let start = self
            .episodes
            .partition_point(|episode| episode.data_file() < data_file);
        let end = self
            .episodes
            .partition_point(|episode| episode.data_file() <= data_file);
        &self.episodes[start..end]
    }

    /// What a message says of why a data file should be there.
    fn needs_data_file(&self, data_file: usize) -> String {
        let first = self
            .episodes_of(data_file)
            .first()
            .map_or(0, Episode::episode_index);
        format!("`data/file_index` of the episode table says that it holds episode {first}")
    }
}

fn check_totals(
    field: &'static str,
    promised: Option<usize>,
    found: usize,
    warnings: &mut Vec<Warning>,
) -> Result<(), Error> {
    match promised {
        Some(promised) if promised > found => Err(Error::Totals {
            field,
            promised,
            found,
        }),
        Some(promised) if promised < found => {
            warnings.push(Warning::Totals {
                field,
                promised,
                found,
            });
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The files of a storage, listed a top-level folder at a time.
struct Listed<'a> {
    storage: &'a dyn Storage,
    /// None where a folder cannot be listed.
    folders: BTreeMap<String, Option<Vec<String>>>,
}

impl Listed<'_> {
    fn contains(&mut self, path: &str) -> Result<bool, Error> {
        let Some((folder, _)) = path.split_once('/') else {
            // A file in the root itself: there is no folder to list.
            return match storage::open(self.storage, path) {
                Ok(_) => Ok(true),
                Err(error) if error.is_missing_file() => Ok(false),
                Err(error) => Err(error),
            };
        };
        if !self.folders.contains_key(folder) {
            let paths = storage::list(self.storage, folder)?;
            self.folders.insert(folder.to_owned(), paths);
        }
        // Where nothing can be listed, whoever opens the file finds out.
        Ok(self.folders[folder].as_ref().is_none_or(|paths| {
            paths
                .binary_search_by(|found| found.as_str().cmp(path))
                .is_ok()
        }))
    }
}
