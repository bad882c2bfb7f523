//! Sources: what a URL names, and the files beneath it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::{Error, key};

/// Levels of directories below the root that [`Source::list`] enters: a dataset needs four
/// (`videos/CAMERA/chunk-000/file-000.mp4`), and a loop of links has no end.
const MAX_DEPTH: usize = 16;

/// The root of a dataset, from which files are listed and opened by key.
///
/// Cheap to clone; safe to use from several threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    root: PathBuf,
}

impl Source {
    /// Parses a local path or a `file://` URL, and checks that it is a directory.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedScheme`] for any other URL, [`Error::Root`] when the directory does not exist or cannot be
    /// read.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let path = match url.split_once("://") {
            None => url,
            Some(("file", path)) => path,
            Some((scheme, _)) => {
                // A query may hold a signature or a token: it never enters a message.
                let url = url.split(['?', '#']).next().unwrap_or_default().to_owned();
                return Err(Error::UnsupportedScheme {
                    url,
                    scheme: scheme.to_owned(),
                });
            }
        };
        Self::local(Path::new(path))
    }

    /// The source for a local directory.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] when `root` does not exist, is not a directory, or cannot be read.
    pub fn local(root: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Root {
            path: root.display().to_string(),
            source,
        };
        let metadata = fs::metadata(root).map_err(failed)?;
        if !metadata.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// The source's name for people: for a local source, its path.
    #[must_use]
    pub fn name(&self) -> String {
        self.root.display().to_string()
    }

    /// Opens the file that `key` names.
    ///
    /// # Errors
    ///
    /// [`Error::Key`] for a key that is not inside the source, [`Error::Io`] when the file cannot be opened.
    pub fn open(&self, key: &str) -> Result<Reader, Error> {
        key::check(key)?;
        let path = self.root.join(key);
        let failed = |source| Error::Io {
            action: "open",
            path: path.display().to_string(),
            source,
        };
        // Asked before opening, which waits for ever on a named pipe.
        let metadata = fs::metadata(&path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if !metadata.is_file() {
            let reason = "it is a pipe, a socket or a device, not a file";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        let file = File::open(&path).map_err(failed)?;
        Ok(Reader { file })
    }

    /// The keys of all files below the directory `dir`, at any depth, sorted; links are followed.
    ///
    /// A directory that does not exist has no files.
    ///
    /// # Errors
    ///
    /// [`Error::Key`] for a key that is not inside the source, [`Error::Io`] for a directory that cannot be read,
    /// [`Error::TooDeep`] beyond 16 levels.
    pub fn list(&self, dir: &str) -> Result<Vec<String>, Error> {
        key::check(dir)?;
        let mut keys = Vec::new();
        if self.root.join(dir).exists() {
            self.collect(dir, 0, &mut keys)?;
        }
        keys.sort_unstable();
        Ok(keys)
    }

    fn collect(&self, dir: &str, depth: usize, keys: &mut Vec<String>) -> Result<(), Error> {
        let path = self.root.join(dir);
        let shown = || path.display().to_string();
        let failed = |source| Error::Io {
            action: "list",
            path: shown(),
            source,
        };
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep {
                path: shown(),
                limit: MAX_DEPTH,
            });
        }
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A name that is not UTF-8 can be no key: no template renders to it.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let key = format!("{dir}/{name}");
            match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_dir() => self.collect(&key, depth + 1, keys)?,
                // A dangling link is listed: opening it then says what is wrong.
                Ok(_) | Err(_) => keys.push(key),
            }
        }
        Ok(())
    }
}

/// An open file of a source.
#[derive(Debug)]
pub struct Reader {
    file: File,
}

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.file.read(buf)
    }
}

impl Seek for Reader {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.file.seek(pos)
    }
}
