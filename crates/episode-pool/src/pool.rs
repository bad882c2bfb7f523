//! The pool itself: a dataset, options and a place in the fleet, from which epochs are made.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use dataset::{Episode, Metadata};
use pool_core::{Coverage, Plan, PlanOptions, Selection, Sharding, Share, Topology};
use prefetch::{FetchStats, Source};
use resume::{Position, State};

use crate::ahead::{DecodeMeans, DecodeThreads, Means, SamplePictures};
use crate::assemble::{self, FrameId};
use crate::builder::{Builder, Options};
use crate::cameras::{CameraWriter, Cameras, VideoSource};
use crate::course::Course;
use crate::data_files::DataFiles;
use crate::epoch::Owned;
use crate::fetch::FetchMeans;
use crate::resident::Resident;
use crate::schema::FieldKind;
use crate::state_dict::Fingerprint;
use crate::{Epoch, Error, Field, Sample, Warning};

/// The most workers of one rank: far more than a machine has cores.
const MAX_WORKERS: usize = 1024;

/// What all consumers of one dataset share: nothing in it changes after building.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// Where the metadata lies.
    pub(crate) source: Source,
    /// Where rows and videos lie.
    pub(crate) bulk: Source,
    /// Whether these are two sources.
    pub(crate) has_data_root: bool,
    pub(crate) metadata: Metadata,
    pub(crate) selection: Selection,
    pub(crate) fields: Vec<Field>,
    /// The memory that one sample's arrays take.
    pub(crate) sample_bytes: usize,
    pub(crate) last_episodes: BTreeMap<String, usize>,
    pub(crate) options: Options,
    pub(crate) fingerprint: OnceLock<Fingerprint>,
}

impl Dataset {
    /// What tells the dataset and the selection from others; worked out when it is first asked for.
    pub(crate) fn fingerprint(&self) -> &Fingerprint {
        self.fingerprint.get_or_init(|| {
            let episodes = self.metadata.episodes().iter();
            let lengths = episodes.map(|episode| (episode.episode_index(), episode.length()));
            Fingerprint::new(
                self.source.revision().map(str::to_owned),
                lengths,
                &self.selection,
            )
        })
    }

    /// An episode of a plan.
    pub(crate) fn episode(&self, episode_index: usize) -> &Episode {
        self.metadata
            .episode(episode_index)
            .expect("the plan was made from the metadata's episodes")
    }

    /// The data file that an episode's rows lie in, for messages.
    pub(crate) fn data_file_name(&self, episode_index: usize) -> &str {
        self.metadata
            .episode(episode_index)
            .and_then(|episode| self.metadata.data_files().get(episode.data_file()))
            .map_or("data", String::as_str)
    }

    fn has_videos(&self) -> bool {
        self.fields
            .iter()
            .any(|field| matches!(field.kind, FieldKind::Video { .. }))
    }
}

/// One consumer's view of a dataset: rank and worker, options, and the share of episodes that follows from them.
///
/// Made by [`EpisodePool::builder`]. Cheap to clone; each [`epoch`](Self::epoch) is independent of the others.
///
/// - All is checked when the pool is built: an epoch fails only for what a file holds.
/// - Building reads the metadata, never rows or video.
#[derive(Debug, Clone)]
pub struct EpisodePool {
    pub(crate) dataset: Arc<Dataset>,
    topology: Topology,
    share: Share,
    warnings: Arc<[Warning]>,
}

impl EpisodePool {
    /// Starts to build a pool over the dataset at `source`: a directory, or a URL of any kind that [`prefetch::Source`] reads.
    pub fn builder(source: impl Into<String>) -> Builder {
        Builder::new(source.into())
    }

    pub(crate) fn new(
        dataset: Arc<Dataset>,
        topology: Topology,
        mut warnings: Vec<Warning>,
    ) -> Result<Self, Error> {
        if topology.num_workers() > MAX_WORKERS {
            return Err(Error::Option {
                option: "num_workers",
                found: topology.num_workers().to_string(),
                expected: "0 to 1024",
            });
        }
        let sharding = Sharding {
            unit: dataset.options.shard_unit,
            max_num_shards: dataset.options.max_num_shards,
        };
        let share = Share::new(&dataset.selection, &topology, &sharding)?;
        let plan_warnings = Plan::check(&share, &plan_options(&dataset.options, 0))?;
        let planning = share.warnings().iter().cloned().chain(plan_warnings);
        warnings.extend(planning.map(Warning::Planning));
        Ok(Self {
            dataset,
            topology,
            share,
            warnings: warnings.into(),
        })
    }

    /// The same dataset and options for another consumer of the fleet.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] for more than 1024 workers a rank.
    pub fn with_topology(&self, topology: Topology) -> Result<Self, Error> {
        Self::new(Arc::clone(&self.dataset), topology, Vec::new())
    }

    /// The dataset's metadata.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.dataset.metadata
    }

    /// The fields of every sample, in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.dataset.fields
    }

    /// The consumer's place in the fleet.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// What was asked of the dataset's sources so far, by all consumers of this process together; all 0 for a directory.
    #[must_use]
    pub fn fetch_stats(&self) -> FetchStats {
        let Dataset { source, bulk, .. } = &*self.dataset;
        let mut stats = source.fetch_stats();
        if self.dataset.has_data_root {
            let bulk = bulk.fetch_stats();
            stats.requests += bulk.requests;
            stats.retries += bulk.retries;
            stats.bytes_fetched += bulk.bytes_fetched;
        }
        stats
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.dataset.options
    }

    /// What building found worth telling. Each was logged once, too.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The number of frames that this consumer emits in an epoch.
    #[must_use]
    pub fn num_frames(&self) -> u64 {
        self.share.num_frames()
    }

    /// The digest of the frames that this consumer emits in an epoch.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        share_coverage(&self.share)
    }

    /// The digest of the frames that the whole fleet emits in an epoch.
    #[must_use]
    pub fn fleet_coverage(&self) -> Coverage {
        self.dataset.selection.coverage()
    }

    /// The order of one epoch for this consumer, without reading anything.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] for an invalid option.
    pub fn plan(&self, epoch: u64) -> Result<Plan, Error> {
        Ok(Plan::new(
            &self.share,
            &plan_options(&self.dataset.options, epoch),
        )?)
    }

    /// The samples of one epoch, from its beginning.
    ///
    /// # Errors
    ///
    /// [`Error::NothingToEmit`] when this consumer is the only one of its rank and owns no episode.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch, Error> {
        self.epoch_from(epoch, 0)
    }

    /// The samples of one epoch after the first `samples` of this consumer.
    ///
    /// Nothing is read to get there.
    ///
    /// # Errors
    ///
    /// [`Error::NothingToEmit`] when this consumer is the only one of its rank and owns no episode.
    pub fn epoch_from(&self, epoch: u64, samples: u64) -> Result<Epoch, Error> {
        if self.num_frames() == 0 && self.topology.consumers_per_rank() == 1 {
            return Err(self.nothing_to_emit());
        }
        let course = Course::of_one(&self.share, plan_options(self.options(), epoch), samples);
        let owned = Owned::Share(self.share.clone());
        let skipped = samples.min(self.num_frames());
        let means = self.own_means()?;
        Ok(Epoch::new(
            Arc::clone(&self.dataset),
            epoch,
            course,
            owned,
            skipped,
            means,
        ))
    }

    /// Starts the threads of a worker that iterates by itself: the rank's other workers have their part of its threads, in processes of
    /// their own.
    pub(crate) fn own_means(&self) -> Result<Means, Error> {
        let num_threads = self.options().num_threads / self.topology.consumers_per_rank();
        let num_threads = num_threads.max(1);
        self.means(num_threads, num_threads)
    }

    /// Starts the threads that the dataset needs. Each consumer may write pictures by `num_painters` more.
    pub(crate) fn means(&self, num_threads: usize, num_painters: usize) -> Result<Means, Error> {
        let num_consumers = self.topology.consumers_per_rank();
        let decode = if self.dataset.has_videos() {
            Some(DecodeMeans {
                threads: Arc::new(DecodeThreads::start(num_threads)?),
                budget_bytes: self.options().decode_ahead_bytes / num_consumers as u64,
                num_consumers,
                num_painters,
            })
        } else {
            None
        };
        Ok(Means {
            decode,
            fetch: FetchMeans::start(&self.dataset)?,
        })
    }

    /// Where a rank stands after `state.batches_consumed` batches of `state.batch_size` samples, counted over all epochs,
    /// when its workers' batches are taken in turn.
    ///
    /// # Errors
    ///
    /// [`Error::Resume`] when the state leads nowhere, as with a batch size of 0.
    pub fn position(&self, state: &State, drop_last: bool) -> Result<Position, Error> {
        let shares = self.worker_frames()?;
        Ok(state.position(&shares, drop_last)?)
    }

    /// How many frames each worker of this rank emits in an epoch.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] as for [`with_topology`](Self::with_topology).
    pub fn worker_frames(&self) -> Result<Vec<u64>, Error> {
        let topology = self.topology;
        let sharding = Sharding {
            unit: self.options().shard_unit,
            max_num_shards: self.options().max_num_shards,
        };
        let selection = &self.dataset.selection;
        let (world_size, num_workers) = (topology.world_size(), topology.num_workers());
        let shares = Share::fleet(selection, world_size, num_workers, &sharding)?;
        let workers = topology.consumers_per_rank();
        let own = shares.iter().skip(topology.rank() * workers).take(workers);
        Ok(own.map(Share::num_frames).collect())
    }

    /// How many batches this rank takes in an epoch, over all its workers: known before anything is read.
    ///
    /// Every frame is emitted exactly once, so ranks may differ, by about the longest episode's frames over the batch size.
    /// Trainers that must take equally many steps on every rank choose how a [`Loader`](crate::Loader) ends an epoch,
    /// by [`LoaderOptions::epoch_end`](crate::LoaderOptions::epoch_end).
    ///
    /// # Errors
    ///
    /// [`Error::Resume`] when `batch_size` is 0.
    pub fn num_batches(&self, batch_size: usize, drop_last: bool) -> Result<u64, Error> {
        let shares = self.worker_frames()?;
        Ok(resume::batches_per_epoch(
            &shares,
            batch_size as u64,
            drop_last,
        )?)
    }

    /// The sample of one frame by its global index (the `index` column), whatever the plan and the filters say.
    ///
    /// Each call reads the frame's episode anew: meant for looking, not for training.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchFrame`] outside the dataset, and everything that reading can meet.
    pub fn sample(&self, index: usize) -> Result<Sample, Error> {
        let dataset = &self.dataset;
        let metadata = &dataset.metadata;
        let found = metadata
            .locate(index)
            .and_then(|(episode_index, frame_index)| {
                Some((metadata.episode(episode_index)?, frame_index))
            });
        let (episode, frame_index) = found.ok_or_else(|| Error::NoSuchFrame {
            index,
            total_frames: metadata.total_frames(),
        })?;
        let episode_index = episode.episode_index();
        let resident = Resident {
            rows: DataFiles::default().read(dataset, episode)?,
        };
        let cameras = Cameras::new(Arc::clone(dataset), 1, VideoSource::Direct);
        let cameras = Arc::new(cameras);
        let mut cameras = CameraWriter::new(cameras, 1);
        let frame = FrameId {
            episode_index,
            frame_index,
        };
        let mut arrays = assemble::arrays(&dataset.fields, 1);
        assemble::write(
            dataset,
            &mut cameras,
            &resident,
            (frame, SamplePictures::default()),
            &mut arrays,
            0,
        )?;
        cameras.flush(&mut arrays, &AtomicBool::new(false))?;
        let seed = pool_core::emission_seed(dataset.options.seed, 0, episode_index, frame_index);
        Ok(Sample::new(dataset, frame, seed, arrays))
    }

    pub(crate) fn nothing_to_emit(&self) -> Error {
        Error::NothingToEmit {
            rank: self.topology.rank(),
            world_size: self.topology.world_size(),
            worker: self.topology.worker(),
            num_workers: self.topology.num_workers(),
        }
    }
}

/// The digest of a share's frames.
pub(crate) fn share_coverage(share: &Share) -> Coverage {
    let mut coverage = Coverage::default();
    for episode in share.episodes() {
        episode
            .frames()
            .for_each(|frame| coverage.record(episode.episode_index(), frame));
    }
    coverage
}

fn plan_options(options: &Options, epoch: u64) -> PlanOptions {
    PlanOptions {
        seed: options.seed,
        epoch,
        episode_pool_size: options.episode_pool_size,
        shuffle: options.shuffle,
        admission: options.admission,
        ..PlanOptions::default()
    }
}
