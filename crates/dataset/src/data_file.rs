//! Data files: the rows of some episodes, read an episode at a time.

use std::sync::Arc;

use crate::convert;
use crate::limits::MAX_EPISODE_FRAMES;
use crate::parquet::File;
use crate::{
    Column, DType, Episode, EpisodeRows, Error, Feature, Metadata, ReadSeek, Tasks, Values,
};

/// The column that tells a row's task.
const TASK_INDEX: &str = "task_index";

/// An open data file, whose footer is parsed once.
///
/// - Its rows are those of its episodes, in their order, and no others.
#[derive(Debug)]
pub struct DataFile {
    path: String,
    file: File,
    /// Its position in [`Metadata::data_files`].
    data_file: usize,
    /// The global number of the frame in its first row.
    first_index: usize,
    features: Vec<Feature>,
    /// What to read: the features' columns, then columns of `checks` that are no features.
    columns: Vec<String>,
    tasks: Arc<Tasks>,
}

impl DataFile {
    /// Opens the data file `path`, one of [`Metadata::data_files`], and parses its footer.
    ///
    /// # Errors
    ///
    /// - [`Error::Damaged`] for a file that is no Parquet file: a Git LFS pointer, a web page, one without a footer.
    /// - [`Error::Corrupt`], [`Error::TooLarge`] for a footer that cannot be right.
    /// - [`Error::MissingColumn`] when a feature has no column.
    /// - [`Error::RowCount`] when the file does not hold as many rows as its episodes have.
    /// - [`Error::NotItsDataFile`] when no episode lies in `path`.
    pub fn open(reader: Box<dyn ReadSeek>, path: &str, metadata: &Metadata) -> Result<Self, Error> {
        let data_file = metadata
            .data_files()
            .iter()
            .position(|known| known == path)
            .ok_or_else(|| Error::NotItsDataFile {
                path: path.to_owned(),
                episode_index: None,
            })?;
        let file = File::open(reader, path, metadata.reader())?;
        let episodes = metadata.episodes_of(data_file);
        let first_index = episodes.first().map_or(0, Episode::from_index);
        let expected = episodes.iter().map(Episode::length).sum();
        if file.num_rows() != expected {
            return Err(Error::RowCount {
                path: path.to_owned(),
                found: file.num_rows(),
                expected,
                num_episodes: episodes.len(),
            });
        }
        let features: Vec<Feature> = metadata
            .info()
            .features()
            .iter()
            .filter(|feature| feature.dtype() != DType::Video)
            .cloned()
            .collect();
        let mut columns: Vec<String> = features
            .iter()
            .map(|feature| feature.key().to_owned())
            .collect();
        if let Some(missing) = columns.iter().find(|column| !file.has_column(column)) {
            return Err(Error::MissingColumn {
                path: path.to_owned(),
                column: missing.clone(),
                reason: "info.json declares it as a feature",
            });
        }
        for check in Check::ALL {
            let name = check.column();
            if metadata.info().feature(name).is_none() && file.has_column(name) {
                columns.push(name.to_owned());
            }
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            data_file,
            first_index,
            features,
            columns,
            tasks: metadata.shared_tasks(),
        })
    }

    /// The file's path in the dataset.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads the rows of one of the file's episodes: every feature that is not a video.
    ///
    /// Only the row groups in which the episode lies are read, and of large ones only its pages, where the file has a page
    /// index.
    ///
    /// # Errors
    ///
    /// - [`Error::NotItsDataFile`] when the episode lies in another file.
    /// - [`Error::Shape`], [`Error::Type`], [`Error::Value`] for values that are not what info.json declares: of another
    ///   shape, null, or not the same in the declared type.
    /// - [`Error::ForeignRow`] when `episode_index`, `frame_index` or `index` of a row are not the episode's own.
    /// - [`Error::UnknownTask`] when a row's `task_index` is not in the task table.
    /// - [`Error::Corrupt`], [`Error::Unsupported`], [`Error::TooLarge`], [`Error::Io`] when reading fails.
    pub fn read_episode(&mut self, episode: &Episode) -> Result<EpisodeRows, Error> {
        let len = episode.length();
        let first_row = episode
            .from_index()
            .checked_sub(self.first_index)
            .filter(|_| episode.data_file() == self.data_file)
            .filter(|first_row| len <= self.file.num_rows().saturating_sub(*first_row))
            .ok_or_else(|| Error::NotItsDataFile {
                path: self.path.clone(),
                episode_index: Some(episode.episode_index()),
            })?;
        if len > MAX_EPISODE_FRAMES {
            return Err(Error::TooLarge {
                path: self.path.clone(),
                what: "number of frames in one episode",
                found: len as u64,
                limit: MAX_EPISODE_FRAMES as u64,
            });
        }
        let names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut stored = self
            .file
            .read(&names, first_row..first_row + len)?
            .into_iter();
        let mut columns = Vec::with_capacity(self.features.len());
        for (feature, stored) in self.features.iter().zip(stored.by_ref()) {
            columns.push(Column {
                name: feature.key().to_owned(),
                shape: feature.row_shape().to_vec(),
                values: convert::column(stored, &self.path, feature, first_row)?,
            });
        }
        let mut undeclared = Vec::new();
        for (name, stored) in names[self.features.len()..].iter().zip(stored) {
            undeclared.push((*name, convert::shaped(stored, &self.path, name, &[])?.0));
        }
        let rows = EpisodeRows {
            episode_index: episode.episode_index(),
            len,
            columns,
        };
        for check in Check::ALL {
            let declared = rows.column(check.column()).map(Column::values);
            let values = undeclared
                .iter()
                .find(|(name, _)| *name == check.column())
                .map(|(_, values)| values);
            if let Some(values) = declared.or(values) {
                self.check(check, values, episode, first_row)?;
            }
        }
        self.check_tasks(&rows, first_row)?;
        Ok(rows)
    }

    fn check(
        &self,
        check: Check,
        values: &Values,
        episode: &Episode,
        first_row: usize,
    ) -> Result<(), Error> {
        for frame in 0..episode.length() {
            let expected = check.expected(episode, frame);
            let found = convert::number(values, frame);
            if found.and_then(convert::Number::exact) != i128::try_from(expected).ok() {
                return Err(Error::ForeignRow {
                    path: self.path.clone(),
                    row: first_row + frame,
                    episode_index: episode.episode_index(),
                    column: check.column(),
                    found: found.map_or_else(|| "no number".to_owned(), |found| found.to_string()),
                    expected,
                });
            }
        }
        Ok(())
    }

    fn check_tasks(&self, rows: &EpisodeRows, first_row: usize) -> Result<(), Error> {
        let Some(Values::I64(values)) = rows.column(TASK_INDEX).map(Column::values) else {
            return Ok(());
        };
        match values
            .iter()
            .zip(first_row..)
            .find(|(task_index, _)| self.tasks.get(**task_index).is_none())
        {
            None => Ok(()),
            Some((found, row)) => Err(Error::UnknownTask {
                path: self.path.clone(),
                row,
                found: *found,
                known: self.tasks.known(),
            }),
        }
    }
}

/// What a row says of its own place.
#[derive(Debug, Clone, Copy)]
enum Check {
    EpisodeIndex,
    FrameIndex,
    Index,
}

impl Check {
    const ALL: [Self; 3] = [Self::EpisodeIndex, Self::FrameIndex, Self::Index];

    fn column(self) -> &'static str {
        match self {
            Self::EpisodeIndex => "episode_index",
            Self::FrameIndex => "frame_index",
            Self::Index => "index",
        }
    }

    fn expected(self, episode: &Episode, frame: usize) -> usize {
        match self {
            Self::EpisodeIndex => episode.episode_index(),
            Self::FrameIndex => frame,
            Self::Index => episode.from_index() + frame,
        }
    }
}
