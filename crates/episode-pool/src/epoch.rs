//! One consumer's epoch: the plan's steps, carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use decode::CacheStats;
use pool_core::{Coverage, CoverageReport, Emission, Share};

use crate::ahead::{Ahead, Means, Next};
use crate::assemble::{self, FrameId};
use crate::cameras::{CameraWriter, Cameras};
use crate::course::Course;
use crate::pool::{Dataset, share_coverage};
use crate::resident::Residents;
use crate::{Array, Batches, DecodeReport, Error, Sample};

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
    residents: Residents,
    cameras: CameraWriter,
    emitted: Coverage,
    skipped: u64,
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
}

impl Epoch {
    pub(crate) fn new(
        dataset: Arc<Dataset>,
        epoch: u64,
        course: Course,
        owned: Owned,
        skipped: u64,
        means: Option<Means>,
    ) -> Self {
        let max_open_videos = dataset.options.video_decoder_cache_size;
        let cameras = Arc::new(Cameras::new(Arc::clone(&dataset), max_open_videos));
        let interrupted = Arc::new(AtomicBool::new(false));
        let num_painters = means.as_ref().map_or(1, |means| means.num_painters);
        Self {
            dataset,
            epoch,
            owned,
            ahead: Ahead::new(course, &cameras, means, Arc::clone(&interrupted)),
            residents: Residents::default(),
            cameras: CameraWriter::new(cameras, num_painters),
            emitted: Coverage::default(),
            skipped,
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
        }
    }

    /// A mark that ends the epoch where it is, once another thread sets it: what is half done is let go of.
    #[must_use]
    pub fn interrupter(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    pub(crate) fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// Writes the next frames into the rows of `arrays`, as many as these have, or as are left. Ends the epoch when it fails.
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
        for row in 0..num_rows {
            if self.is_interrupted() {
                break;
            }
            match self.advance(arrays, row) {
                Ok(Some(emission)) => emissions.push(emission),
                Ok(None) => break,
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
        self.failed = done.is_err() || self.is_interrupted();
        if self.is_interrupted() {
            emissions.clear();
        }
        done.map(|()| emissions)
    }

    fn advance(&mut self, arrays: &mut [Array], row: usize) -> Result<Option<Emission>, Error> {
        let dataset = &self.dataset;
        while let Some(next) = self.ahead.next(self.cameras.decoder()) {
            match next {
                Next::Admit(episode_index) => {
                    let episode = dataset
                        .metadata
                        .episode(episode_index)
                        .expect("the plan was made from the metadata's episodes");
                    self.residents
                        .admit(&dataset.source, &dataset.metadata, episode)?;
                    self.peak_episodes = self.peak_episodes.max(self.residents.len());
                }
                Next::Evict(episode_index) => self.residents.evict(episode_index),
                Next::Emit(emission, pictures) => {
                    let frame = FrameId {
                        episode_index: emission.episode_index,
                        frame_index: emission.frame_index,
                    };
                    let resident = self
                        .residents
                        .get(frame.episode_index)
                        .expect("the plan admits an episode before it emits from it");
                    let sample = (frame, pictures);
                    assemble::write(dataset, &mut self.cameras, resident, sample, arrays, row)?;
                    self.ahead.release();
                    self.emitted.record(frame.episode_index, frame.frame_index);
                    return Ok(Some(emission));
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Epoch {
    type Item = Result<Sample, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut arrays = assemble::arrays(&self.dataset.fields, 1);
        let emission = match self.write_next(&mut arrays, 1) {
            Ok(emissions) => *emissions.first()?,
            Err(error) => return Some(Err(error)),
        };
        let frame = FrameId {
            episode_index: emission.episode_index,
            frame_index: emission.frame_index,
        };
        Some(Ok(Sample::new(&self.dataset, frame, emission.seed, arrays)))
    }
}
