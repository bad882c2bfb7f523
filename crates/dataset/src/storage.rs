//! Where files come from: the one service that this crate needs from outside.

use std::io::{self, Read, Seek};

use crate::Error;

/// A file that can be read from any position.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The files of one dataset.
///
/// Paths are relative to the dataset's root, with `/` between their parts, and never step out of it.
pub trait Storage: Send + Sync {
    /// Opens the file `path`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] when there is no such file, and whatever else opening may meet.
    fn open(&self, path: &str) -> io::Result<Box<dyn ReadSeek>>;

    /// The paths of all files below the folder `dir`, at any depth, sorted; none when there is no such folder.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] where files can be opened but not listed, as on a web server; and when a folder cannot be read.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
}

/// Reads a file whole, if it is not larger than `limit` bytes.
pub(crate) fn read_whole(storage: &dyn Storage, path: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let reader = open(storage, path)?;
    let mut bytes = Vec::new();
    let failed = |source| Error::Io {
        action: "read",
        path: path.to_owned(),
        source,
    };
    let read = reader
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if read as u64 > limit {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            what: "size in bytes",
            found: read as u64,
            limit,
        });
    }
    Ok(bytes)
}

/// Opens a file.
pub(crate) fn open(storage: &dyn Storage, path: &str) -> Result<Box<dyn ReadSeek>, Error> {
    storage.open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::Missing {
            path: path.to_owned(),
            needed_for: None,
            source: Some(source),
        },
        _ => Error::Io {
            action: "open",
            path: path.to_owned(),
            source,
        },
    })
}

/// The paths of all files below a folder, sorted; none where the storage cannot list.
pub(crate) fn list(storage: &dyn Storage, folder: &str) -> Result<Option<Vec<String>>, Error> {
    let failed = |source| Error::Io {
        action: "list",
        path: folder.to_owned(),
        source,
    };
    let mut paths = match storage.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
        listed => listed.map_err(failed)?,
    };
    // The promise is the implementor's; what depends on it is checked cheaply.
    if !paths.is_sorted() {
        paths.sort_unstable();
    }
    Ok(Some(paths))
}
