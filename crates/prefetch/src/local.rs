//! Sources of this machine: a directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::Error;

/// Levels of directories below the root that listing enters: a dataset needs four
/// (`videos/CAMERA/chunk-000/file-000.mp4`), and a loop of links has no end.
const MAX_DEPTH: usize = 16;

/// A directory that holds a dataset.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) fn new(root: &Path) -> Result<Self, Error> {
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

    pub(crate) fn name(&self) -> String {
        self.root.display().to_string()
    }

    pub(crate) fn open(&self, key: &str) -> Result<File, Error> {
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
        File::open(&path).map_err(failed)
    }

    pub(crate) fn list(&self, dir: &str) -> Result<Vec<String>, Error> {
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
