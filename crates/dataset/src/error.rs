//! What can go wrong between a dataset's files and its columns.

use std::fmt;
use std::io;

use crate::{DType, Reader};

/// Why a dataset, or a part of it, cannot be read.
///
/// Paths are relative to the dataset's root. Rows are counted from 0 within a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not there.
    #[error("`{path}` is missing{}", NeededFor(needed_for.as_deref()))]
    Missing {
        /// The file.
        path: String,
        /// What says that it should be there.
        needed_for: Option<String>,
        /// What the storage said, where it was asked.
        source: Option<io::Error>,
    },

    /// A file or folder could not be read.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was being done: `open`, `read`, `list`.
        action: &'static str,
        /// The file or folder.
        path: String,
        /// What the storage said.
        source: io::Error,
    },

    /// A file is not of the format that its name says.
    #[error("`{path}` ({size_bytes} bytes, from `{start}` to `{end}`) {damage}")]
    Damaged {
        /// The file.
        path: String,
        /// Its size, in bytes.
        size_bytes: u64,
        /// Its first bytes, escaped.
        start: String,
        /// Its last bytes, escaped.
        end: String,
        /// What it seems to be.
        damage: Damage,
    },

    /// The Parquet reader could not make sense of a file's contents.
    #[error("`{path}` holds damaged data: {reason}; compare it with its original")]
    Corrupt {
        /// The file.
        path: String,
        /// What the reader said.
        reason: String,
    },

    /// A file asks for more than any dataset needs.
    #[error("`{path}`: its {what} would be {found}; the limit is {limit}")]
    TooLarge {
        /// The file.
        path: String,
        /// What is too large.
        what: &'static str,
        /// What the file asks for.
        found: u64,
        /// The most that is read.
        limit: u64,
    },

    /// A column is stored in a way that the reader in use cannot decode.
    #[error(
        "`{path}`: column `{column}` is stored as {found}, which the {reader} reader does not decode"
    )]
    Unsupported {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// How it is stored.
        found: String,
        /// The reader.
        reader: Reader,
    },

    /// A JSON file is not well-formed, or not of the right structure.
    #[error("cannot parse `{path}`")]
    Json {
        /// The file.
        path: String,
        /// What is wrong, and where.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The dataset is in another version of the format.
    #[error(
        "`meta/info.json`: codebase_version is {}, but only v3.0 is read; a dataset of v2.1 is converted by \
         `python -m lerobot.scripts.convert_dataset_v21_to_v30 --repo-id=<user>/<name>`, an older one must be brought to v2.1 \
         first",
        Quoted(found.as_deref())
    )]
    Version {
        /// The version found, if there is any.
        found: Option<String>,
    },

    /// A field of info.json has a value that nothing could be done with.
    #[error("`meta/info.json`: `{field}` is {found}; expected {expected}")]
    Info {
        /// The field.
        field: String,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },

    /// A path template of info.json cannot be filled in.
    #[error("`meta/info.json`: `{field}` is `{template}`: {reason}")]
    Template {
        /// The field: `data_path` or `video_path`.
        field: &'static str,
        /// Its value.
        template: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A table has no episode at all.
    #[error("the episode table in `meta/episodes` lists no episode; was the dataset finalised?")]
    NoEpisodes,

    /// A file lacks a column.
    #[error("`{path}` has no column `{column}`; expected it because {reason}")]
    MissingColumn {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// What says that it should be there.
        reason: &'static str,
    },

    /// A file has two columns of one name.
    #[error("`{path}` has two columns `{column}`")]
    DuplicateColumn {
        /// The file.
        path: String,
        /// The column.
        column: String,
    },

    /// A value is not one that the column may hold.
    #[error("`{path}`, column `{column}`, row {row}: found {found}, expected {expected}")]
    Value {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// The row.
        row: usize,
        /// The value.
        found: String,
        /// What it should be.
        expected: String,
    },

    /// A column's values cannot be of the type that they should have.
    #[error("`{path}`: column `{column}` is stored as {found}; expected {expected}")]
    Type {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// The stored type.
        found: String,
        /// The declared type, or that of the format.
        expected: DType,
    },

    /// A row's value is not of the declared shape.
    #[error(
        "`{path}`, column `{column}`, row {row}: the stored value has the shape {found:?}, but info.json declares {declared:?}"
    )]
    Shape {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// The row.
        row: usize,
        /// The stored shape, as far as it is one.
        found: Vec<usize>,
        /// The declared shape.
        declared: Vec<usize>,
    },

    /// Two statements of the episode table contradict each other.
    #[error("`{path}`: episode {episode_index}: `{field}` is {found}, but {expected}")]
    Episode {
        /// The file.
        path: String,
        /// The episode.
        episode_index: usize,
        /// The field.
        field: String,
        /// Its value.
        found: String,
        /// What it should be, and why.
        expected: String,
    },

    /// info.json counts more than the tables hold.
    #[error(
        "`meta/info.json`: `{field}` is {promised}, but the episode table holds {found}; if files of `meta/episodes` are \
         missing, as after an upload that was cut short, add them; if the dataset was cut on purpose, set `{field}` to {found}"
    )]
    Totals {
        /// The field of info.json.
        field: &'static str,
        /// Its value.
        promised: usize,
        /// The number found.
        found: usize,
    },

    /// A data file does not hold the rows that the episode table says.
    #[error(
        "`{path}` has {found} rows, but the `length` of its {num_episodes} episodes in the episode table sum to {expected}; \
         the file and the table do not belong together, or one of them is cut short"
    )]
    RowCount {
        /// The data file.
        path: String,
        /// The rows in it.
        found: usize,
        /// The sum of the lengths of its episodes.
        expected: usize,
        /// The number of its episodes.
        num_episodes: usize,
    },

    /// The rows at an episode's place are not its own.
    #[error(
        "`{path}`, row {row}: `{column}` is {found}, expected {expected} for episode {episode_index}; \
         the file and the episode table do not belong together"
    )]
    ForeignRow {
        /// The data file.
        path: String,
        /// The row.
        row: usize,
        /// The episode that should be there.
        episode_index: usize,
        /// The column that says otherwise.
        column: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: usize,
    },

    /// A row's task is not in the task table.
    #[error(
        "`{path}`, row {row}: `task_index` is {found}, which is not in `meta/tasks.parquet`; the numbers there are {known}"
    )]
    UnknownTask {
        /// The data file.
        path: String,
        /// The row.
        row: usize,
        /// The value in the row.
        found: i64,
        /// The values of the table.
        known: String,
    },

    /// A path is not a data file of the dataset, or an episode not in the data file it was asked of.
    #[error("`{path}` is no data file of {}", OfEpisode(*episode_index))]
    NotItsDataFile {
        /// The data file.
        path: String,
        /// The episode that was to be read, if any.
        episode_index: Option<usize>,
    },
}

impl Error {
    /// Whether a file that should be there is not.
    #[must_use]
    pub fn is_missing_file(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

/// What a file that is not of its format seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The pointer that Git leaves in place of a large file.
    LfsPointer,
    /// A web page, or a server's error message.
    Html,
    /// A Parquet file without its end.
    NotFinalised,
    /// Nothing.
    Empty,
    /// Something else.
    Unknown,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LfsPointer => {
                "is a Git LFS pointer in place of the file: run `git lfs pull` in the dataset's repository"
            }
            Self::Html => "is a web page in place of the file: the server answered with a message instead of it",
            Self::NotFinalised => {
                "is a Parquet file without its footer: the recording was not finalised, or a copy was cut short; finalise or \
                 repair it where it was recorded, or take that episode out"
            }
            Self::Empty => "is empty: the recording was not finalised, or a copy was cut short",
            Self::Unknown => "is not of the format that its name says: if it was being recorded, it was not finalised",
        })
    }
}

/// Shows what needs a missing file.
struct NeededFor<'a>(Option<&'a str>);

impl fmt::Display for NeededFor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(reason) => write!(f, ", but {reason}"),
            None => Ok(()),
        }
    }
}

/// Shows a version, or that there is none.
struct Quoted<'a>(Option<&'a str>);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(text) => write!(f, "`{}`", text.escape_debug()),
            None => f.write_str("missing"),
        }
    }
}

/// Shows an episode, or the dataset.
struct OfEpisode(Option<usize>);

impl fmt::Display for OfEpisode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(episode_index) => write!(f, "episode {episode_index}"),
            None => f.write_str("this dataset"),
        }
    }
}
