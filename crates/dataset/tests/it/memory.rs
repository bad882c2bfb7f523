//! A dataset in memory, which counts what is read of it.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset::{ReadSeek, Storage};

/// Files by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    files: BTreeMap<String, Arc<[u8]>>,
    /// Files that cannot be opened.
    locked: Vec<String>,
    bytes_read: Arc<AtomicUsize>,
}

impl Memory {
    /// The files below a folder, but for its videos.
    pub(crate) fn load(root: &Path) -> Self {
        let mut memory = Self::default();
        memory.load_folder(root, "");
        memory
    }

    /// A bundled dataset, but for its videos.
    pub(crate) fn fixture(name: &str) -> Self {
        Self::load(&testkit::fixtures::dataset(name))
    }

    fn load_folder(&mut self, folder: &Path, prefix: &str) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{prefix}{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                self.load_folder(&entry.path(), &format!("{path}/"));
            } else if !path.ends_with(".mp4") {
                self.insert(&path, std::fs::read(entry.path()).unwrap());
            }
        }
    }

    pub(crate) fn insert(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.to_owned(), bytes.into().into());
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(path).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> &[u8] {
        &self.files[path]
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Makes a file one that may not be read.
    pub(crate) fn lock(&mut self, path: &str) {
        self.locked.push(path.to_owned());
    }

    /// The bytes read since this was asked last.
    pub(crate) fn take_bytes_read(&self) -> usize {
        self.bytes_read.swap(0, Ordering::Relaxed)
    }
}

impl Storage for Memory {
    fn open(&self, path: &str) -> io::Result<Box<dyn ReadSeek>> {
        if self.locked.iter().any(|locked| locked == path) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        let bytes = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Counted {
            file: Cursor::new(Arc::clone(bytes)),
            bytes_read: Arc::clone(&self.bytes_read),
        }))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{dir}/");
        Ok(self
            .paths()
            .filter(|path| path.starts_with(&prefix))
            .map(str::to_owned)
            .collect())
    }
}

struct Counted {
    file: Cursor<Arc<[u8]>>,
    bytes_read: Arc<AtomicUsize>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.bytes_read.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
