//! An index of a remote dataset: what opening its files reads of them, so that an epoch can begin without asking each file for its header.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use dataset::{DataFile, Metadata, ReadSeek, Storage};
use decode::{Decoder, Video, VideoOptions};
use prefetch::{IndexWriter, Reader, Source};
use sha2::{Digest, Sha256};

use crate::pool::Dataset;
use crate::storage::SourceStorage;
use crate::{EpisodePool, Error, Warning};

/// Where an index lies in a dataset that brings its own.
pub(crate) const PUBLISHED: &str = "meta/episode-pool.index";
/// The folder of a cache in which those lie that were made here.
const FOLDER: &str = "episode-pool-index-v1";
/// Files that are opened at once.
const NUM_THREADS: usize = 16;
/// The most that is taken over of a published index: far more than any dataset's.
const MAX_INDEX_BYTES: u64 = 16 << 30;

/// What an index came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexReport {
    /// The index's file.
    pub path: PathBuf,
    /// The files that were opened for it.
    pub files: usize,
    /// Its size in bytes.
    pub bytes: u64,
}

impl EpisodePool {
    /// Makes an index of the metadata and of the files of the selected episodes: at `path`, or where [`Builder::build`](crate::Builder::build) looks for it, in the
    /// cache's folder. `progress` is told after every file how many are done, of how many.
    ///
    /// A file at `path` can be published with the dataset as `meta/episode-pool.index`, where it is looked for next.
    ///
    /// # Errors
    ///
    /// - [`Error::Source`] for a directory, which needs no index; when the source fails; when the index cannot be written.
    /// - What opening the files can meet.
    pub fn write_index(
        &self,
        path: Option<&Path>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<IndexReport, Error> {
        let dataset = &self.dataset;
        if !dataset.bulk.is_remote() {
            return Err(Error::Source(prefetch::Error::NothingToFetch {
                path: dataset.bulk.name(),
            }));
        }
        let path = match path {
            Some(path) => path.to_owned(),
            None => local_path(&dataset.options.cache.dir, &dataset.bulk),
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(unwritable(&path))?;
        }
        let files = files(dataset);
        let mut writer = IndexWriter::create(&path, &dataset.bulk)?;
        if !dataset.has_data_root {
            let metadata = RecordingStorage {
                source: &dataset.bulk,
                files: Mutex::default(),
            };
            Metadata::read(&metadata).map_err(Error::Dataset)?;
            let files = metadata.files.into_inner();
            for (key, parts) in files.unwrap_or_else(PoisonError::into_inner) {
                let parts = std::mem::take(&mut *lock(&parts));
                writer.add(&dataset.bulk, &key, &joined(parts))?;
            }
        }
        let writer = Mutex::new(writer);
        let (next, done, stopped) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicBool::new(false),
        );
        let work = || -> Result<(), Error> {
            let mut decoder = Decoder::new();
            while !stopped.load(Ordering::Relaxed)
                && let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let parts = file.open(dataset, &mut decoder);
                let added = parts
                    .and_then(|parts| Ok(lock(&writer).add(&dataset.bulk, file.path, &parts)?));
                added.inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, files.len());
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..NUM_THREADS.min(files.len()))
                .map(|_| scope.spawn(work))
                .collect();
            // A panic of one of them is this one's.
            threads
                .into_iter()
                .try_for_each(|thread| match thread.join() {
                    Ok(done) => done,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
        })?;
        let writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(IndexReport {
            bytes: writer.finish()?,
            files: files.len(),
            path,
        })
    }
}

/// Uses the index that was chosen, or else the one in the cache's folder, or else one that is published with the dataset.
pub(crate) fn find(
    bulk: &Source,
    chosen: Option<&Path>,
    cache: &Path,
) -> Result<Option<Warning>, Error> {
    let stale = |path: &Path, reason| {
        Some(Warning::IndexNotUsed {
            path: path.to_owned(),
            reason,
        })
    };
    let use_it = |path: &Path| match bulk.use_index(path) {
        Ok(true) => Ok(None),
        Ok(false) => Ok(stale(path, "it is of another revision".to_owned())),
        Err(error) => Err(error),
    };
    if !bulk.is_remote() {
        return Ok(None);
    }
    if let Some(path) = chosen {
        return Ok(use_it(path)?);
    }
    let local = local_path(cache, bulk);
    if !local.exists() && !take_over(bulk, &local) {
        return Ok(None);
    }
    // What nobody has chosen ends nothing.
    Ok(use_it(&local).unwrap_or_else(|error| stale(&local, error.to_string())))
}

/// Copies the index that is published with a dataset; whether there is one.
fn take_over(bulk: &Source, local: &Path) -> bool {
    let copy = || -> io::Result<()> {
        let failed = |error: prefetch::Error| io::Error::new(error.io_kind(), error);
        let mut published = bulk.open(PUBLISHED).map_err(failed)?.take(MAX_INDEX_BYTES);
        if let Some(folder) = local.parent() {
            fs::create_dir_all(folder)?;
        }
        let unfinished = local.with_extension(format!("{}.part", std::process::id()));
        let copied = File::create(&unfinished)
            .and_then(|mut file| io::copy(&mut published, &mut file))
            .and_then(|_| fs::rename(&unfinished, local));
        copied.inspect_err(|_| drop(fs::remove_file(&unfinished)))
    };
    match copy() {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::debug!("no index is taken from `{}`: {error}", bulk.name());
            }
            false
        }
    }
}

/// Where the index of a source lies that was made here: one for each commit.
fn local_path(cache: &Path, bulk: &Source) -> PathBuf {
    let digest = Sha256::new()
        .chain_update(bulk.name())
        .chain_update([0])
        .chain_update(bulk.revision().unwrap_or_default())
        .finalize();
    let name: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
    cache.join(FOLDER).join(name)
}

/// A file of the dataset, and how it is opened.
struct IndexedFile<'a> {
    path: &'a str,
    /// Of a video; none for a data file.
    camera: Option<&'a str>,
}

/// The files of the selected episodes.
fn files(dataset: &Dataset) -> Vec<IndexedFile<'_>> {
    let mut files = BTreeMap::new();
    for episode in dataset.selection.episodes() {
        let episode = dataset.episode(episode.episode_index());
        if let Some(path) = dataset.metadata.data_files().get(episode.data_file()) {
            files.insert(path.as_str(), None);
        }
        for field in dataset.fields.iter().filter(|field| field.is_camera()) {
            if let Some(span) = episode.video(field.key()) {
                files.insert(span.path(), Some(field.key()));
            }
        }
    }
    let files = files.into_iter();
    files
        .map(|(path, camera)| IndexedFile { path, camera })
        .collect()
}

impl IndexedFile<'_> {
    /// Opens the file; what was read of it.
    fn open(&self, dataset: &Dataset, decoder: &mut Decoder) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let parts = Parts::default();
        let recording = Box::new(Recording {
            reader: dataset.bulk.open(self.path)?,
            position: 0,
            parts: Arc::clone(&parts),
        });
        match self.camera {
            Some(camera) => {
                let options = VideoOptions::default();
                let video = Video::open_with(decoder, recording, self.path, camera, &options);
                drop(video.map_err(|source| Error::Index {
                    file: self.path.to_owned(),
                    source: Box::new(source),
                })?);
            }
            None => {
                let file = DataFile::open(recording, self.path, &dataset.metadata);
                drop(file.map_err(|source| Error::Index {
                    file: self.path.to_owned(),
                    source: Box::new(source),
                })?);
            }
        }
        let parts = std::mem::take(&mut *lock(&parts));
        Ok(joined(parts))
    }
}

type Parts = Arc<Mutex<BTreeMap<u64, Vec<u8>>>>;

/// A reader that keeps what is read.
#[derive(Debug)]
struct Recording {
    reader: Reader,
    position: u64,
    /// By where they start.
    parts: Parts,
}

impl Read for Recording {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buf)?;
        let mut parts = lock(&self.parts);
        let known = parts.entry(self.position).or_default();
        if known.len() < len {
            *known = buf[..len].to_vec();
        }
        self.position += len as u64;
        Ok(len)
    }
}

impl Seek for Recording {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.position = self.reader.seek(pos)?;
        Ok(self.position)
    }
}

/// A storage that keeps what is read of its files.
#[derive(Debug)]
struct RecordingStorage<'a> {
    source: &'a Source,
    files: Mutex<BTreeMap<String, Parts>>,
}

impl Storage for RecordingStorage<'_> {
    fn open(&self, path: &str) -> io::Result<Box<dyn ReadSeek>> {
        let reader = self.source.open(path);
        let reader = reader.map_err(|error| io::Error::new(error.io_kind(), error))?;
        let parts = Arc::clone(lock(&self.files).entry(path.to_owned()).or_default());
        Ok(Box::new(Recording {
            reader,
            position: 0,
            parts,
        }))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        SourceStorage(self.source).list(dir)
    }
}

/// Parts that touch or overlap, as one.
fn joined(parts: BTreeMap<u64, Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
    let mut joined: Vec<(u64, Vec<u8>)> = Vec::new();
    for (start, bytes) in parts.into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
        if let Some((first, known)) = joined.last_mut()
            && start <= *first + known.len() as u64
        {
            let overlap = (*first + known.len() as u64 - start) as usize;
            known.extend(bytes.get(overlap..).unwrap_or_default());
            continue;
        }
        joined.push((start, bytes));
    }
    joined
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |error| {
        Error::Source(prefetch::Error::Index {
            path: path.clone(),
            reason: error.to_string(),
        })
    }
}

/// Nothing panics while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_touch_are_one() {
        let parts = [(0, "abcd"), (2, "cd"), (3, "defg"), (7, "h"), (20, "xyz")];
        let parts = parts.map(|(start, text)| (start, text.as_bytes().to_vec()));
        assert_eq!(
            joined(BTreeMap::from(parts)),
            [(0, b"abcdefgh".to_vec()), (20, b"xyz".to_vec())]
        );
    }
}
