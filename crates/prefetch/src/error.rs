//! What can go wrong between a source's name and an open file.

use std::io;

/// Why a source could not be parsed, listed or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source's name is no path and no URL of a known kind.
    #[error("`{url}` names no dataset: {reason}; expected {expected}")]
    Url {
        /// The URL as given, without user, password and query.
        url: String,
        /// Which rule it breaks.
        reason: String,
        /// What there is.
        expected: &'static str,
    },

    /// The source is of a kind that was left out when this was built.
    #[error(
        "cannot read `{url}`: this build has no remote sources of this kind; build it with the feature `{feature}`"
    )]
    NotBuiltIn {
        /// The URL, without anything secret.
        url: String,
        /// The Cargo feature that brings it.
        feature: &'static str,
    },

    /// What a service needs to be reached is not there or wrong.
    #[error("cannot use `{url}`: {reason}")]
    Settings {
        /// The URL, without anything secret.
        url: String,
        /// What is missing or wrong.
        reason: String,
    },

    /// A remote source did not give what was asked for.
    #[error("cannot {action} `{url}`: {reason}{}{}", tries(*attempts), hint.as_ref().map_or(String::new(), |hint| format!("; {hint}")))]
    Remote {
        /// What was being done: `open`, `list`, `read bytes 0 to 99 of`.
        action: String,
        /// The file's or the folder's URL, without anything secret.
        url: String,
        /// What the server said, or what went wrong on the way.
        reason: String,
        /// The status of the last answer, if there was one.
        status: Option<u16>,
        /// How often it was tried.
        attempts: u32,
        /// What to do.
        hint: Option<String>,
        /// What an [`io::Error`] made of this error should be.
        kind: io::ErrorKind,
    },

    /// The folder in which fetched bytes are to be kept cannot be used.
    #[error(
        "cannot {action} `{path}`, to keep there what is fetched; choose another cache folder, on a disk of this machine"
    )]
    Cache {
        /// What was being done: `make`, `lock`.
        action: &'static str,
        /// The folder.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// More bytes are to be at hand at once than the cache may ever hold.
    #[error(
        "{needed} bytes are needed at once, and the cache may hold {max_bytes}; let it hold at least {needed}"
    )]
    CacheTooSmall {
        /// The bytes needed.
        needed: u64,
        /// The cache's limit.
        max_bytes: u64,
    },

    /// An index of a dataset's files cannot be read or written.
    #[error("cannot use the index `{path}`: {reason}; make it anew with `episode-pool index`")]
    Index {
        /// The index's file.
        path: String,
        /// What is wrong.
        reason: String,
    },

    /// There is nothing to fetch from a directory.
    #[error("`{path}` is a directory of this machine, from which nothing needs to be fetched")]
    NothingToFetch {
        /// The directory.
        path: String,
    },

    /// The source cannot tell which files it holds.
    #[error("`{url}` lies on a web server, which cannot be asked for the files in a folder")]
    CannotList {
        /// The folder's URL.
        url: String,
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
            Self::Root { source, .. } | Self::Io { source, .. } | Self::Cache { source, .. } => {
                source.kind()
            }
            Self::CacheTooSmall { .. } => io::ErrorKind::QuotaExceeded,
            Self::Index { .. } => io::ErrorKind::InvalidData,
            Self::Remote { kind, .. } => *kind,
            Self::NotBuiltIn { .. } | Self::CannotList { .. } => io::ErrorKind::Unsupported,
            Self::Url { .. }
            | Self::Settings { .. }
            | Self::Key { .. }
            | Self::TooDeep { .. }
            | Self::NothingToFetch { .. } => io::ErrorKind::InvalidInput,
        }
    }
}

/// How often something was tried, where it was more than once.
fn tries(attempts: u32) -> String {
    if attempts > 1 {
        format!(" (tried {attempts} times)")
    } else {
        String::new()
    }
}
