//! One consumer's epoch: the plan's steps, carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use decode::CacheStats;
use pool_core::{Coverage, CoverageReport, Emission, Share};

use crate::ahead::{Ahead, Means, Next, SamplePictures};
use crate::assemble::{self, FrameId};
use crate::cameras::{CameraWriter, Cameras, VideoSource};
use crate::course::Course;
use crate::data_files::DataFiles;
use crate::pool::{Dataset, share_coverage};
use crate::resident::Residents;
use crate::{Array, Batches, DecodeReport, Error, FetchReport, Sample};

/// The samples of one epoch, in the planned order.
///
/// Ends at the first error: what comes after it would be an epoch with a hole.
#[derive(Debug)]
#[must_use = "an epoch does nothing until it is iterated"]
pub struct Epoch {
    dataset: Arc<Dataset>,
    epoch: u64,
    owned: Owned,
    ahead: Ahead,
    data_files: DataFiles,
    residents: Residents,
    cameras: CameraWriter,
    emitted: Coverage,
    skipped: u64,
    /// Those in the pool.
    num_episodes: usize,
    peak_episodes: usize,
    failed: bool,
    interrupted: Arc<AtomicBool>,
}

/// The frames that a consumer is to emit.
#[derive(Debug)]
pub(crate) enum Owned {
    /// All of a share.
    Share(Share),
    /// Those of a course, which may be of many shares, and not all of each.
    Course(Box<Course>),
}

impl Owned {
    pub(crate) fn coverage(&self) -> Coverage {
        match self {
            Self::Share(share) => share_coverage(share),
            Self::Course(course) => course.coverage(),
        }
    }
}

/// What an epoch did so far.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EpochReport {
    /// The epoch.
    pub epoch: u64,
    /// The frames emitted, against those that the consumer owns.
    pub coverage: CoverageReport,
    /// The digest of the frames emitted: sums over consumers are those of the fleet.
    pub emitted: Coverage,
    /// The frames that were passed over at the start, when resuming.
    pub skipped: u64,
    /// The most episodes that were in memory at once.
    pub peak_resident_episodes: usize,
    /// The most memory that their rows took, in bytes.
    pub peak_resident_bytes: usize,
    /// The counters of the cache of open videos.
    pub video_decoder_cache: CacheStats,
    /// What decoding video has cost.
    pub decode: DecodeReport,
    /// What fetching from a remote source has cost.
    pub fetch: FetchReport,
}

impl Epoch {
    pub(crate) fn new(
        dataset: Arc<Dataset>,
        epoch: u64,
        course: Course,
        owned: Owned,
        skipped: u64,
        means: Means,
    ) -> Self {
        let max_open_videos = dataset.options.video_decoder_cache_size;
        let videos = VideoSource::of(means.fetch.as_ref());
        let cameras = Cameras::new(Arc::clone(&dataset), max_open_videos, videos);
        let cameras = Arc::new(cameras);
        let interrupted = Arc::new(AtomicBool::new(false));
        let num_painters = means.decode.as_ref();
        let num_painters = num_painters.map_or(1, |means| means.num_painters);
        Self {
            dataset,
            epoch,
            owned,
            ahead: Ahead::new(course, &cameras, means, Arc::clone(&interrupted)),
            data_files: DataFiles::default(),
            residents: Residents::default(),
            cameras: CameraWriter::new(cameras, num_painters),
            emitted: Coverage::default(),
            skipped,
            num_episodes: 0,
            peak_episodes: 0,
            failed: false,
            interrupted,
        }
    }

    /// The samples in batches of `batch_size`; with `drop_last`, without a last one that is not full.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] when `batch_size` is 0, [`Error::BatchTooLarge`] when a batch would take more than 64 GiB.
    pub fn batches(self, batch_size: usize, drop_last: bool) -> Result<Batches, Error> {
        Batches::new(self, batch_size, drop_last)
    }

    /// The epoch's number.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of samples still to come.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.ahead.remaining()
    }

    /// The digest of the frames that are to be emitted in this epoch, or in this part of it.
    #[must_use]
    pub fn owned(&self) -> Coverage {
        self.owned.coverage()
    }

    /// What the epoch did so far.
    #[must_use]
    pub fn report(&self) -> EpochReport {
        EpochReport {
            epoch: self.epoch,
            coverage: CoverageReport::new(self.owned(), self.emitted),
            emitted: self.emitted,
            skipped: self.skipped,
            peak_resident_episodes: self.peak_episodes,
            peak_resident_bytes: self.residents.peak_bytes(),
            video_decoder_cache: self.cameras.cameras().cache_stats(),
            decode: DecodeReport {
                frames_used: self.cameras.frames_used(),
                ..self.ahead.report()
            },
            fetch: self.ahead.fetch_report(),
        }
    }

    /// A mark that ends the epoch where it is, once another thread sets it: what is half done is let go of.
    #[must_use]
    pub fn interrupter(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    /// Whether it ended before its end.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    pub(crate) fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// Writes the next frames into the rows of `arrays`, as many as these have, or as are left, or fewer where some are left out. Ends the
    /// epoch when it fails.
    pub(crate) fn write_next(
        &mut self,
        arrays: &mut [Array],
        num_rows: usize,
    ) -> Result<Vec<Emission>, Error> {
        if self.failed {
            return Ok(Vec::new());
        }
        let mut emissions = Vec::with_capacity(num_rows);
        let mut failure = None;
        for _ in 0..num_rows {
            if self.is_interrupted() {
                break;
            }
            match self.advance(arrays, emissions.len()) {
                Ok(Advance::Emitted(emission)) => emissions.push(emission),
                Ok(Advance::LeftOut) => {}
                Ok(Advance::AtEnd) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        // Whatever is wrong with an earlier sample's pictures comes first.
        let interrupted = Arc::clone(&self.interrupted);
        let done = self
            .cameras
            .flush(arrays, &interrupted)
            .and_then(|()| failure.map_or(Ok(()), Err));
        if let Some(fetches) = self.ahead.fetches() {
            fetches.settle();
        }
        self.failed = done.is_err() || self.is_interrupted();
        if self.is_interrupted() {
            emissions.clear();
        }
        done.map(|()| emissions)
    }

    /// Goes on to the next emission.
    fn advance(&mut self, arrays: &mut [Array], row: usize) -> Result<Advance, Error> {
        while let Some(next) = self.ahead.next(self.cameras.decoder()) {
            match next {
                Next::Admit(episode_index) => {
                    self.num_episodes += 1;
                    self.peak_episodes = self.peak_episodes.max(self.num_episodes);
                    // What is fetched ahead is taken when it is wanted.
                    if self.ahead.fetches().is_none() {
                        self.admit(episode_index)?;
                    }
                }
                Next::Evict(episode_index) => {
                    self.num_episodes -= 1;
                    self.residents.evict(episode_index);
                }
                Next::Emit(emission, pictures) => {
                    let advanced = self.emit(emission, pictures, arrays, row);
                    self.ahead.release();
                    return advanced;
                }
            }
        }
        Ok(Advance::AtEnd)
    }

    /// Reads an episode's rows.
    fn admit(&mut self, episode_index: usize) -> Result<(), Error> {
        let episode = self.dataset.episode(episode_index);
        let rows = self.data_files.read(&self.dataset, episode)?;
        self.residents.admit(episode_index, rows);
        Ok(())
    }

    fn emit(
        &mut self,
        emission: Emission,
        pictures: Result<SamplePictures, Error>,
        arrays: &mut [Array],
        row: usize,
    ) -> Result<Advance, Error> {
        let frame = FrameId {
            episode_index: emission.episode_index,
            frame_index: emission.frame_index,
        };
        if let Some(fetches) = self.ahead.fetches()
            && fetches.is_left_out(frame.episode_index)
        {
            return Ok(Advance::LeftOut);
        }
        let pictures = pictures.and_then(|pictures| {
            self.take_rows(frame.episode_index)?;
            Ok(pictures)
        });
        let pictures = match (pictures, self.ahead.fetches()) {
            (Ok(pictures), _) => pictures,
            (Err(error), Some(fetches)) => {
                fetches.leave_out(frame.episode_index, error)?;
                return Ok(Advance::LeftOut);
            }
            (Err(error), None) => return Err(error),
        };
        if self.is_interrupted() {
            return Ok(Advance::AtEnd);
        }
        let resident = self
            .residents
            .get(frame.episode_index)
            .expect("the plan admits an episode before it emits from it");
        let sample = (frame, pictures);
        assemble::write(
            &self.dataset,
            &mut self.cameras,
            resident,
            sample,
            arrays,
            row,
        )?;
        self.emitted.record(frame.episode_index, frame.frame_index);
        Ok(Advance::Emitted(emission))
    }

    /// Takes the rows of an episode that was fetched ahead, where they were not taken before.
    fn take_rows(&mut self, episode_index: usize) -> Result<(), Error> {
        if self.residents.get(episode_index).is_some() {
            return Ok(());
        }
        let fetches = self.ahead.fetches();
        match fetches.map(|fetches| fetches.take_rows(episode_index)) {
            Some(rows) => match rows? {
                Some(rows) => {
                    self.residents.admit(episode_index, rows);
                    Ok(())
                }
                // Nothing more is waited for.
                None if self.is_interrupted() => Ok(()),
                None => self.admit(episode_index),
            },
            None => self.admit(episode_index),
        }
    }
}

/// How the epoch went on.
enum Advance {
    Emitted(Emission),
    /// A frame that could not be fetched.
    LeftOut,
    AtEnd,
}

impl Iterator for Epoch {
    type Item = Result<Sample, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut arrays = assemble::arrays(&self.dataset.fields, 1);
        let emission = loop {
            match self.write_next(&mut arrays, 1) {
                Ok(emissions) if emissions.is_empty() && !self.failed && self.remaining() > 0 => {}
                Ok(emissions) => break *emissions.first()?,
                Err(error) => return Some(Err(error)),
            }
        };
        let frame = FrameId {
            episode_index: emission.episode_index,
            frame_index: emission.frame_index,
        };
        Some(Ok(Sample::new(&self.dataset, frame, emission.seed, arrays)))
    }
}
