//! What can go wrong between a source's name and an open file.

use std::io;

/// Why a source could not be parsed, listed or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL's scheme is one that this version does not read.
    #[error(
        "cannot read `{url}`: sources of the kind `{scheme}` are not supported yet; \
         download the dataset and give the path of its directory"
    )]
    UnsupportedScheme {
        /// The URL as given, without any query.
        url: String,
        /// The part before `://`.
        scheme: String,
    },

    /// The root of the source is not a directory that can be read.
    #[error(
        "cannot read the dataset directory `{path}`; expected a directory that holds `meta/info.json`, \
         such as `~/datasets/pusht`"
    )]
    Root {
        /// The path as given.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// A key that is empty, absolute, or steps out of the root.
    #[error("`{key}` is not a path inside a dataset: {reason}")]
    Key {
        /// The key as given.
        key: String,
        /// Which rule it breaks.
        reason: &'static str,
    },

    /// A file or directory could not be read.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was being done: `open`, `list`.
        action: &'static str,
        /// The whole path of the file.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// Directories lie deeper than any dataset's, as in a loop of links.
    #[error("`{path}` lies more than {limit} directories deep; is there a loop of links?")]
    TooDeep {
        /// The directory that was not entered.
        path: String,
        /// The deepest level that is listed.
        limit: usize,
    },
}

impl Error {
    /// Whether the thing asked for does not exist, as opposed to being unreadable.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.io_kind() == io::ErrorKind::NotFound
    }

    /// The kind an [`io::Error`] made of this error should have.
    #[must_use]
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::Root { source, .. } | Self::Io { source, .. } => source.kind(),
            Self::UnsupportedScheme { .. } => io::ErrorKind::Unsupported,
            Self::Key { .. } | Self::TooDeep { .. } => io::ErrorKind::InvalidInput,
        }
    }
}
