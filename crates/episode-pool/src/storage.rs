//! The bridge between two layers that do not know each other: `dataset` asks for files, `prefetch` has them.

use std::io;

use dataset::{ReadSeek, Storage};
use prefetch::Source;

/// A source, as the storage that `dataset` reads metadata and rows from.
#[derive(Debug)]
pub(crate) struct SourceStorage<'a>(pub(crate) &'a Source);

impl Storage for SourceStorage<'_> {
    fn open(&self, path: &str) -> io::Result<Box<dyn ReadSeek>> {
        match self.0.open(path) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(error) => Err(io::Error::new(error.io_kind(), error)),
        }
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.0
            .list(dir)
            .map_err(|error| io::Error::new(error.io_kind(), error))
    }
}
