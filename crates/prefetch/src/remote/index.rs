//! What opening a dataset's files reads of them, kept in one file: so that thousands of files can be opened without a request.
//!
//! ```text
//! "EPOOLIDX"            8 bytes
//! bytes of files        one part after another
//! directory             JSON: which part of which file lies where, with a digest of each
//! its length            8 bytes, little-endian
//! its SHA-256           32 bytes
//! "EPOOLIDX"            8 bytes
//! ```
//!
//! A part is used only if the file is still the one that it was read from: of the same commit, or else of the same size and etag.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FileStat, Remote};
use crate::{Error, Source};

const MAGIC: &[u8; 8] = b"EPOOLIDX";
const VERSION: u32 = 1;
const TRAILER_BYTES: usize = 8 + 32 + 8;
/// Far more than the directory of any dataset.
const MAX_DIRECTORY_BYTES: u64 = 1 << 30;

#[derive(Debug, Serialize, Deserialize)]
struct Directory {
    version: u32,
    revision: Option<String>,
    files: BTreeMap<String, Entry>,
}

/// What is known of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    size: u64,
    etag: Option<String>,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Part {
    /// Where it starts in its file.
    start: u64,
    len: u64,
    /// Where it starts here.
    at: u64,
    digest: String,
}

/// An index that is in use.
#[derive(Debug)]
pub(super) struct Index {
    file: File,
    directory: Directory,
}

impl Index {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let damaged = |reason: &str| Error::Index {
            path: path.display().to_string(),
            reason: reason.to_owned(),
        };
        let failed = |error: io::Error| damaged(&error.to_string());
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut trailer = [0; TRAILER_BYTES];
        let trailer_at = len.checked_sub(TRAILER_BYTES as u64);
        let trailer_at = trailer_at.ok_or_else(|| damaged("it is too short to be one"))?;
        file.read_exact_at(&mut trailer, trailer_at)
            .map_err(failed)?;
        let (directory_len, rest) = trailer.split_at(8);
        let (digest, magic) = rest.split_at(32);
        if magic != MAGIC {
            return Err(damaged("it does not end as one; it may be cut short"));
        }
        let directory_len = u64::from_le_bytes(directory_len.try_into().expect("8 bytes"));
        let directory_at = trailer_at.checked_sub(directory_len);
        let directory_at = directory_at.filter(|_| directory_len <= MAX_DIRECTORY_BYTES);
        let directory_at = directory_at.ok_or_else(|| damaged("its directory's length is off"))?;
        let mut directory = vec![0; directory_len as usize];
        file.read_exact_at(&mut directory, directory_at)
            .map_err(failed)?;
        if Sha256::digest(&directory)[..] != *digest {
            return Err(damaged("its directory is damaged"));
        }
        let directory: Directory =
            serde_json::from_slice(&directory).map_err(|error| damaged(&error.to_string()))?;
        if directory.version != VERSION {
            let version = directory.version;
            return Err(damaged(&format!(
                "it is of version {version}, and this program knows version {VERSION}"
            )));
        }
        Ok(Self { file, directory })
    }

    /// Whether it is of the commit that is being read.
    pub(super) fn is_of(&self, revision: Option<&str>) -> bool {
        revision.is_some() && self.directory.revision.as_deref() == revision
    }

    /// What it knows of a file.
    pub(super) fn stat(&self, key: &str) -> Option<FileStat> {
        let entry = self.directory.files.get(key)?;
        Some(FileStat {
            size: entry.size,
            etag: entry.etag.clone(),
        })
    }

    /// The part of a file that holds a position, and where it starts; none that is damaged.
    pub(super) fn part(&self, key: &str, position: u64) -> Option<(u64, Bytes)> {
        let parts = &self.directory.files.get(key)?.parts;
        let holds = |part: &&Part| position >= part.start && position - part.start < part.len;
        let part = parts.iter().find(holds)?;
        let len = usize::try_from(part.len).ok()?;
        let file_len = self.file.metadata().ok()?.len();
        if part.at.checked_add(part.len)? > file_len {
            return None;
        }
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, part.at).ok()?;
        (digest(&bytes) == part.digest).then_some((part.start, bytes.into()))
    }
}

/// Writes an index.
#[derive(Debug)]
pub struct IndexWriter {
    file: BufWriter<File>,
    path: PathBuf,
    unfinished: PathBuf,
    at: u64,
    directory: Directory,
}

impl IndexWriter {
    /// Begins an index of the files of `source`. The file at `path` is replaced once all is written.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when nothing can be written there.
    pub fn create(path: &Path, source: &Source) -> Result<Self, Error> {
        let unfinished = path.with_extension(format!("{}.part", std::process::id()));
        let mut writer = Self {
            file: BufWriter::new(File::create(&unfinished).map_err(failed(path))?),
            path: path.to_owned(),
            unfinished,
            at: 0,
            directory: Directory {
                version: VERSION,
                revision: source.revision().map(str::to_owned),
                files: BTreeMap::new(),
            },
        };
        writer.write(MAGIC)?;
        Ok(writer)
    }

    /// Adds what was read of a file: where each part starts, and its bytes.
    ///
    /// # Errors
    ///
    /// - [`Error::Index`] when it cannot be written.
    /// - As for [`Source::open`], where the source is asked about the file.
    pub fn add(
        &mut self,
        source: &Source,
        key: &str,
        parts: &[(u64, Vec<u8>)],
    ) -> Result<(), Error> {
        let Some(remote) = source.remote() else {
            return Ok(());
        };
        let FileStat { size, etag } = remote.stat(key)?;
        let mut entry = Entry {
            size,
            etag,
            parts: Vec::with_capacity(parts.len()),
        };
        for (start, bytes) in parts {
            entry.parts.push(Part {
                start: *start,
                len: bytes.len() as u64,
                at: self.at,
                digest: digest(bytes),
            });
            self.write(bytes)?;
        }
        self.directory.files.insert(key.to_owned(), entry);
        Ok(())
    }

    /// Puts the index in its place; its size in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when it cannot be written.
    pub fn finish(mut self) -> Result<u64, Error> {
        let directory = serde_json::to_vec(&self.directory);
        let directory = directory.map_err(|error| failed(&self.path)(error.into()))?;
        self.write(&directory)?;
        self.write(&(directory.len() as u64).to_le_bytes())?;
        self.write(&Sha256::digest(&directory))?;
        self.write(MAGIC)?;
        let failed = failed(&self.path);
        self.file.flush().map_err(&failed)?;
        self.file.get_ref().sync_all().map_err(&failed)?;
        fs::rename(&self.unfinished, &self.path).map_err(&failed)?;
        Ok(self.at)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(failed(&self.path))?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for IndexWriter {
    /// What is not finished is of no use.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |error| Error::Index {
        path: path.clone(),
        reason: error.to_string(),
    }
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Remote {
    /// The part of a file that is in the index and holds a position, if the file is still the same.
    pub(super) fn indexed(&self, key: &str, position: u64) -> Option<(u64, Bytes)> {
        let index = self.index.get()?;
        if !index.is_of(self.revision()) {
            let (then, now) = (index.stat(key)?, self.stat(key).ok()?);
            if then != now || now.etag.is_none() {
                return None;
            }
        }
        index.part(key, position)
    }
}
