//! The local disk as a storage.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::{ReadSeek, Storage};

/// Levels of folders that are listed: a dataset has four, and a loop of links has no end.
const MAX_DEPTH: usize = 16;

/// A dataset in a folder of the local disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The dataset with this root, the folder that holds `meta`. Nothing is looked at yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The dataset's root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Storage for Folder {
    fn open(&self, path: &str) -> io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(File::open(self.root.join(path))?))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut paths = Vec::new();
        match collect(&self.root.join(dir), dir, 0, &mut paths) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && paths.is_empty() => {}
            result => result?,
        }
        paths.sort_unstable();
        Ok(paths)
    }
}

fn collect(folder: &Path, prefix: &str, depth: usize, paths: &mut Vec<String>) -> io::Result<()> {
    if depth == MAX_DEPTH {
        return Err(io::Error::other(format!(
            "`{prefix}` is more than {MAX_DEPTH} folders deep; is there a loop of links?"
        )));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A name that is not UTF-8 is none that a template gives.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{prefix}/{name}");
        // A link is followed; one that leads nowhere is listed, so that opening it says so.
        if entry.path().is_dir() {
            collect(&entry.path(), &path, depth + 1, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
