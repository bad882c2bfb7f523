//! The bridge between two layers that do not know each other: `dataset` asks for files, `prefetch` has them.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dataset::{ReadSeek, Storage};
use prefetch::{Reader, Source};

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

/// The same, with the bytes counted that are read.
#[derive(Debug)]
pub(crate) struct CountedStorage<'a> {
    pub(crate) source: &'a Source,
    pub(crate) count: &'a Arc<AtomicU64>,
}

#[derive(Debug)]
struct Counted {
    reader: Reader,
    count: Arc<AtomicU64>,
}

impl Storage for CountedStorage<'_> {
    fn open(&self, path: &str) -> io::Result<Box<dyn ReadSeek>> {
        match self.source.open(path) {
            Ok(reader) => Ok(Box::new(Counted {
                reader,
                count: Arc::clone(self.count),
            })),
            Err(error) => Err(io::Error::new(error.io_kind(), error)),
        }
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        SourceStorage(self.source).list(dir)
    }
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buf)?;
        self.count.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

impl Seek for Counted {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.reader.seek(pos)
    }
}
