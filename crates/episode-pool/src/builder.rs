//! Options, and how they become a pool.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use dataset::{Episode, Metadata};
use decode::{Layout, Size};
use pool_core::{Admission, EpisodeInfo, Filter, Selection, ShardUnit, Topology};
use prefetch::{CacheOptions, Source, SourceOptions};
use window::DeltaTimestamps;

use crate::pool::Dataset;
use crate::schema::{self, FrameFormat};
use crate::storage::SourceStorage;
use crate::{EpisodePool, Error, Warning, cameras, keep_ranges};

/// The longest side of a resized frame, in pixels.
const MAX_SIDE_PX: usize = 8192;

/// The most decode threads: far more than a machine has cores.
const MAX_THREADS: usize = 1024;

const DEFAULT_DECODE_AHEAD_BYTES: u64 = 512 << 20;

/// The most videos that are kept open unless asked for: each holds a file and its index.
const MAX_DEFAULT_DECODERS: usize = 128;
/// The same for all workers of a rank together, which may be threads of one process with its limit on open files.
const MAX_DEFAULT_RANK_DECODERS: usize = 512;

/// For a remote source, whose open videos hold no file, but must be asked for their headers once more when they are opened again.
const MAX_DEFAULT_REMOTE_DECODERS: usize = 4096;

/// The most memory that one sample may take. A window of a hundred 4K pictures fits; a shape or a window beyond it is a
/// mistake, and would end the process where memory is reserved.
const MAX_SAMPLE_BYTES: usize = 4 << 30;

/// The numbers that a camera's pixels are given as. Depth maps are 16-bit codes whatever is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameType {
    /// 0 to 255.
    #[default]
    U8,
    /// 0.0 to 1.0: the 8-bit value over 255.
    F32,
}

/// How much of a remote video file an episode has fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fetch {
    /// The packets of its own frames, and the file's header.
    #[default]
    Ranges,
    /// All of it. Episodes of one file share what is fetched while one of them is in the pool.
    Files,
}

/// What to do when an episode cannot be fetched, after all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFetchError {
    /// End the epoch with the error.
    #[default]
    Fail,
    /// Leave out the episode's frames from there on, and report it in the epoch's [`FetchReport`](crate::FetchReport). Batches keep their
    /// turns, and so does a saved state; those that frames are missing from are shorter, and one without any is passed over.
    SkipEpisode,
}

/// The options of a built pool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Windows by feature key, in seconds.
    pub delta_timestamps: BTreeMap<String, Vec<f64>>,
    /// The most episodes in memory at once.
    pub episode_pool_size: usize,
    /// The seed of every order.
    pub seed: u64,
    /// Whether frames are drawn at random; otherwise they come in the dataset's order.
    pub shuffle: bool,
    /// In what order episodes come into the pool, when frames are drawn at random.
    pub admission: Admission,
    /// What ranks and workers share out among themselves.
    pub shard_unit: ShardUnit,
    /// The number of groups that data files are put in, when files are shared out.
    pub max_num_shards: Option<usize>,
    /// How far, in seconds, a delta or a video frame may lie from where it should.
    pub tolerance_s: f64,
    /// Whether a frame is `[H, W, C]` or `[C, H, W]`.
    pub frame_layout: Layout,
    /// The numbers that pixels are given as.
    pub frame_type: FrameType,
    /// The size of every camera's frames; none for each as it is stored.
    pub resize: Option<Size>,
    /// The most video files open at once, for each consumer.
    pub video_decoder_cache_size: usize,
    /// The threads that decode video, for all workers of a rank.
    pub num_threads: usize,
    /// The most memory that decoded frames may take before they are emitted, in bytes, for all workers of a rank.
    pub decode_ahead_bytes: u64,
    /// Where fetched video is kept while it is needed.
    pub cache: CacheOptions,
    /// How many episodes are fetched before they are admitted, for each consumer.
    pub prefetch_episodes: usize,
    /// How much of a video file is fetched.
    pub fetch: Fetch,
    /// What to do when an episode cannot be fetched.
    pub on_fetch_error: OnFetchError,
}

/// Builds an [`EpisodePool`]; made by [`EpisodePool::builder`].
///
/// | option | default | why |
/// |---|---|---|
/// | `episodes` | all | |
/// | `exclude_episodes` | none | |
/// | `drop_n_first_frames`, `drop_n_last_frames` | 0 | |
/// | `delta_timestamps` | none | a key without deltas gives its frame's own value |
/// | `episode_pool_size` | 64 | batches mix about as well as a global shuffle's; rows are small |
/// | `seed` | 0 | |
/// | `shuffle` | true | |
/// | `admission` | `Shuffled` | `FileGrouped` mixes less, and goes with `Fetch::Files` |
/// | `topology` | a single consumer | a library does not guess from the environment |
/// | `shard_unit` | `Episode` | no consumer idles, and shares are balanced by frames |
/// | `max_num_shards` | every file is a shard | only for `ShardUnit::File` |
/// | `tolerance_s` | 1e-4 | as lerobot's |
/// | `frame_layout` | `Hwc` | as pictures are stored |
/// | `frame_type` | `U8` | a quarter of the memory; the division is cheaper on the accelerator |
/// | `resize` | as stored | |
/// | `num_threads` | the cores that the process may use | decoding is what takes time |
/// | `decode_ahead_bytes` | 512 MiB | frames decoded once for all samples that will want them soon; more saves decoding, most of all with long GOPs |
/// | `video_decoder_cache_size` | (pool + 1) x cameras, at most 128, and 512 over the rank's workers; for a remote source twice as many, and 4096 | the pool's working set, within usual limits on open files, of which remote ones take none |
/// | `data_root` | the source itself | |
/// | `index` | the one in the cache's folder, else `meta/episode-pool.index` of the dataset, else none | |
/// | `source_options` | 6 attempts, 30 s of silence, 16 requests at once | |
/// | `cache_dir` | `EPISODE_POOL_CACHE`, else a folder in the user's caches | |
/// | `cache_bytes` | 32 GiB | |
/// | `warm_cache` | false | what nobody needs is deleted |
/// | `prefetch_episodes` | 8 | |
/// | `fetch` | `Ranges` | no byte that is not needed |
/// | `on_fetch_error` | `Fail` | nothing is left out unless asked for |
#[derive(Debug, Clone)]
#[must_use = "call `build` to get the pool"]
pub struct Builder {
    source: String,
    data_root: Option<String>,
    index: Option<PathBuf>,
    source_options: SourceOptions,
    filter: Filter,
    keep_ranges_file: Option<PathBuf>,
    topology: Topology,
    buffer_size: Option<usize>,
    decoder_cache_size: Option<usize>,
    options: Options,
}

impl Builder {
    pub(crate) fn new(source: String) -> Self {
        Self {
            source,
            data_root: None,
            index: None,
            source_options: SourceOptions::default(),
            filter: Filter::default(),
            keep_ranges_file: None,
            topology: Topology::single(),
            buffer_size: None,
            decoder_cache_size: None,
            options: Options {
                delta_timestamps: BTreeMap::new(),
                episode_pool_size: 64,
                seed: 0,
                shuffle: true,
                admission: Admission::Shuffled,
                shard_unit: ShardUnit::Episode,
                max_num_shards: None,
                tolerance_s: 1e-4,
                frame_layout: Layout::Hwc,
                frame_type: FrameType::U8,
                resize: None,
                video_decoder_cache_size: 0,
                num_threads: std::thread::available_parallelism()
                    .map_or(1, NonZero::get)
                    .min(MAX_THREADS),
                decode_ahead_bytes: DEFAULT_DECODE_AHEAD_BYTES,
                cache: CacheOptions::default(),
                prefetch_episodes: 8,
                fetch: Fetch::default(),
                on_fetch_error: OnFetchError::default(),
            },
        }
    }

    /// Emits only these episodes, by their numbers in the dataset.
    pub fn episodes(mut self, episodes: impl IntoIterator<Item = usize>) -> Self {
        self.filter.episodes = Some(episodes.into_iter().collect());
        self
    }

    /// Emits no frame of these episodes.
    pub fn exclude_episodes(mut self, episodes: impl IntoIterator<Item = usize>) -> Self {
        self.filter.exclude_episodes = episodes.into_iter().collect();
        self
    }

    /// Emits none of the first `frames` frames of every episode; windows may still look into them.
    pub fn drop_n_first_frames(mut self, frames: usize) -> Self {
        self.filter.drop_n_first_frames = frames;
        self
    }

    /// Emits none of the last `frames` frames of every episode; windows may still look into them.
    pub fn drop_n_last_frames(mut self, frames: usize) -> Self {
        self.filter.drop_n_last_frames = frames;
        self
    }

    /// Emits only the frames that a JSON file names: `{"3": [[0, 40], [60, 90]]}`, half-open ranges by episode.
    /// Episodes that it does not name are emitted whole; windows may still look into frames left out.
    pub fn keep_ranges_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.keep_ranges_file = Some(path.into());
        self
    }

    /// Windows by feature key: seconds relative to the emitted frame, each a whole number of frames.
    pub fn delta_timestamps(mut self, deltas: BTreeMap<String, Vec<f64>>) -> Self {
        self.options.delta_timestamps = deltas;
        self
    }

    /// The number of whole episodes whose rows are kept in memory, and across which frames are drawn.
    pub fn episode_pool_size(mut self, episodes: usize) -> Self {
        self.options.episode_pool_size = episodes;
        self
    }

    /// Accepted for those who come from a shuffle buffer, ignored, and warned about.
    pub fn buffer_size(mut self, frames: usize) -> Self {
        self.buffer_size = Some(frames);
        self
    }

    /// The seed of every order and of every sample's own seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Whether to draw at random, or to keep the dataset's order.
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.options.shuffle = shuffle;
        self
    }

    /// In what order episodes come into the pool, when frames are drawn at random.
    pub fn admission(mut self, admission: Admission) -> Self {
        self.options.admission = admission;
        self
    }

    /// Which consumer of the fleet this is.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = topology;
        self
    }

    /// Takes rank and number of ranks from the environment: `RANK`/`WORLD_SIZE`, else `SLURM_PROCID`/`SLURM_NTASKS`, else
    /// `OMPI_COMM_WORLD_RANK`/`OMPI_COMM_WORLD_SIZE`, else a single rank. No workers.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] when variables are set in part, contradict each other or are no numbers.
    pub fn topology_from_env(mut self) -> Result<Self, Error> {
        self.topology = Topology::from_vars(|name| std::env::var(name).ok())?;
        Ok(self)
    }

    /// What the consumers share out among themselves.
    pub fn shard_unit(mut self, unit: ShardUnit) -> Self {
        self.options.shard_unit = unit;
        self
    }

    /// With [`ShardUnit::File`]: the number of groups that files are put in before they are shared out.
    pub fn max_num_shards(mut self, shards: usize) -> Self {
        self.options.max_num_shards = Some(shards);
        self
    }

    /// How far, in seconds, a delta may lie from a whole number of frames, and a video frame from its time.
    pub fn tolerance_s(mut self, tolerance_s: f64) -> Self {
        self.options.tolerance_s = tolerance_s;
        self
    }

    /// Whether a frame is `[H, W, C]` or `[C, H, W]`.
    pub fn frame_layout(mut self, layout: Layout) -> Self {
        self.options.frame_layout = layout;
        self
    }

    /// The numbers that pixels are given as.
    pub fn frame_type(mut self, frame_type: FrameType) -> Self {
        self.options.frame_type = frame_type;
        self
    }

    /// Gives every camera's frames in this size, whatever their aspect ratio: bilinear, antialiased where they get smaller, as torchvision's
    /// `resize(..., antialias=True)` does it to within 2 levels. Depth codes are those of the nearest pixel.
    pub fn resize(mut self, height: usize, width: usize) -> Self {
        self.options.resize = Some(Size { height, width });
        self
    }

    /// The threads that decode video, 1 to 1024: for all workers of a rank together, or, where a worker iterates by itself, its part of
    /// them. They change nothing about what is emitted.
    pub fn num_threads(mut self, threads: usize) -> Self {
        self.options.num_threads = threads;
        self
    }

    /// The most memory that decoded frames may take before they are emitted, in bytes, for all workers of a rank together. (What a single
    /// sample wants is decoded in any case.) It changes nothing about what is emitted.
    pub fn decode_ahead_bytes(mut self, bytes: u64) -> Self {
        self.options.decode_ahead_bytes = bytes;
        self
    }

    /// The most video files open at once, for each consumer.
    pub fn video_decoder_cache_size(mut self, decoders: usize) -> Self {
        self.decoder_cache_size = Some(decoders);
        self
    }

    /// Where rows and videos lie, if not beside the metadata: a directory or a URL with the same layout, such as a bucket near the machines.
    pub fn data_root(mut self, source: impl Into<String>) -> Self {
        self.data_root = Some(source.into());
        self
    }

    /// An index of a remote dataset's files, made by [`EpisodePool::write_index`], so that none need be asked for its header.
    pub fn index(mut self, path: impl Into<PathBuf>) -> Self {
        self.index = Some(path.into());
        self
    }

    /// How remote sources are asked: attempts, patience, requests at once.
    pub fn source_options(mut self, options: SourceOptions) -> Self {
        self.source_options = options;
        self
    }

    /// The folder in which video from a remote source is kept while it is needed, on a disk of this machine. Processes that share it fetch
    /// nothing twice.
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.options.cache.dir = dir.into();
        self
    }

    /// The most bytes in that folder, for all processes that share it. Episodes for which there is no room are read from the source as they
    /// are wanted, which is slow.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.options.cache.max_bytes = bytes;
        self
    }

    /// Whether what nobody needs stays in that folder until the room is needed, for later epochs and runs.
    pub fn warm_cache(mut self, keep: bool) -> Self {
        self.options.cache.keep = keep;
        self
    }

    /// How many episodes are fetched from a remote source before they are admitted, for each consumer: at least the next one.
    pub fn prefetch_episodes(mut self, episodes: usize) -> Self {
        self.options.prefetch_episodes = episodes;
        self
    }

    /// How much of a remote video file is fetched.
    pub fn fetch(mut self, fetch: Fetch) -> Self {
        self.options.fetch = fetch;
        self
    }

    /// What to do when an episode cannot be fetched.
    pub fn on_fetch_error(mut self, action: OnFetchError) -> Self {
        self.options.on_fetch_error = action;
        self
    }

    /// Checks every option, reads the dataset's metadata, and works out this consumer's share.
    ///
    /// # Errors
    ///
    /// - [`Error::Option`] for a value outside an option's range.
    /// - [`Error::Source`], [`Error::Dataset`] when the dataset is not there or not whole.
    /// - [`Error::SampleTooLarge`] when shapes and windows ask for more than 4 GiB a sample.
    /// - [`Error::DeltaTimestamps`] for deltas that are not whole frames, or of unknown features.
    /// - [`Error::Plan`] for an unknown episode or an empty selection.
    /// - [`Error::KeepRanges`], [`Error::KeepRangesFile`] for the file of that option.
    pub fn build(mut self) -> Result<EpisodePool, Error> {
        self.check_options()?;
        if let Some(path) = &self.keep_ranges_file {
            self.filter.keep_ranges = keep_ranges::read(path)?;
        }
        let source = Source::with_options(&self.source, &self.source_options)?;
        let has_data_root = self.data_root.is_some();
        let bulk = match &self.data_root {
            Some(data_root) => Source::with_options(data_root, &self.source_options)?,
            None => source.clone(),
        };
        #[cfg(feature = "remote")]
        let index_warning = {
            let chosen = self.index.as_deref();
            crate::index::find(&bulk, chosen, &self.options.cache.dir)?
        };
        #[cfg(not(feature = "remote"))]
        let index_warning: Option<Warning> = None;

        let storage = SourceStorage(&source);
        let metadata = Metadata::read(&storage).map_err(Error::Dataset)?;
        let info = metadata.info();

        let known: Vec<&str> = info.features().iter().map(dataset::Feature::key).collect();
        let windows = DeltaTimestamps::new(
            &self.options.delta_timestamps,
            info.fps(),
            self.options.tolerance_s,
            &known,
        )?;
        let format = FrameFormat {
            layout: self.options.frame_layout,
            element: self.options.frame_type,
            resize: self.options.resize,
        };
        let fields = schema::fields(info, &windows, format)?;

        let sample_bytes = schema::sample_bytes(&fields)
            .filter(|&bytes| bytes <= MAX_SAMPLE_BYTES)
            .ok_or(Error::SampleTooLarge {
                limit_bytes: MAX_SAMPLE_BYTES,
            })?;

        let episodes: Vec<EpisodeInfo> = metadata
            .episodes()
            .iter()
            .map(|episode| EpisodeInfo {
                episode_index: episode.episode_index(),
                length: episode.length(),
                file: episode.data_file(),
            })
            .collect();
        let selection = Selection::new(&episodes, &self.filter)?;

        let chosen = selection
            .episodes()
            .iter()
            .filter_map(|episode| metadata.episode(episode.episode_index()));
        metadata
            .check_files(&SourceStorage(&bulk), chosen)
            .map_err(Error::Dataset)?;

        let num_cameras = info.camera_keys().count();
        self.options.video_decoder_cache_size = self
            .decoder_cache_size
            .unwrap_or_else(|| self.default_decoders(num_cameras, bulk.is_remote()));

        check_cache(&self.options, &bulk, &metadata, &selection)?;

        let last_episodes = cameras::last_episodes(&metadata);
        let mut warnings: Vec<Warning> = metadata
            .warnings()
            .iter()
            .cloned()
            .map(Warning::Dataset)
            .collect();
        warnings.extend(index_warning);
        warnings.extend(selection.warnings().iter().cloned().map(Warning::Planning));
        warnings.extend(
            self.buffer_size
                .map(|buffer_size| Warning::BufferSizeIgnored {
                    buffer_size,
                    episode_pool_size: self.options.episode_pool_size,
                }),
        );

        let dataset = Arc::new(Dataset {
            source,
            bulk,
            has_data_root,
            metadata,
            selection,
            fields,
            sample_bytes,
            last_episodes,
            options: self.options,
            fingerprint: OnceLock::new(),
        });
        let pool = EpisodePool::new(dataset, self.topology, warnings)?;
        for warning in pool.warnings() {
            tracing::warn!("{warning}");
        }
        Ok(pool)
    }

    /// The pool's working set, within the limits of a worker and of its rank.
    fn default_decoders(&self, num_cameras: usize, is_remote: bool) -> usize {
        let working_set = self
            .options
            .episode_pool_size
            .saturating_add(1)
            .saturating_mul(num_cameras);
        let (limit, rank_limit, working_set) = if is_remote {
            let limit = MAX_DEFAULT_REMOTE_DECODERS;
            (limit, limit, working_set.saturating_mul(2))
        } else {
            (MAX_DEFAULT_DECODERS, MAX_DEFAULT_RANK_DECODERS, working_set)
        };
        let limit = limit.min(rank_limit / self.topology.consumers_per_rank());
        working_set.min(limit.max(num_cameras)).max(1)
    }

    fn check_options(&self) -> Result<(), Error> {
        let at_least_one = |option, found: Option<usize>| match found {
            Some(0) => Err(Error::Option {
                option,
                found: "0".to_owned(),
                expected: "at least 1",
            }),
            _ => Ok(()),
        };
        at_least_one("episode_pool_size", Some(self.options.episode_pool_size))?;
        at_least_one("max_num_shards", self.options.max_num_shards)?;
        at_least_one("video_decoder_cache_size", self.decoder_cache_size)?;
        let num_threads = self.options.num_threads;
        if !(1..=MAX_THREADS).contains(&num_threads) {
            return Err(Error::Option {
                option: "num_threads",
                found: num_threads.to_string(),
                expected: "1 to 1024",
            });
        }
        if let Some(Size { height, width }) = self.options.resize
            && ![height, width]
                .iter()
                .all(|side| (1..=MAX_SIDE_PX).contains(side))
        {
            return Err(Error::Option {
                option: "resize",
                found: format!("{height}x{width}"),
                expected: "sides of 1 to 8192 pixels, the height first",
            });
        }
        let tolerance_s = self.options.tolerance_s;
        if !(tolerance_s.is_finite() && tolerance_s >= 0.0) {
            return Err(Error::Option {
                option: "tolerance_s",
                found: tolerance_s.to_string(),
                expected: "a finite number of seconds, 0 or more",
            });
        }
        Ok(())
    }
}

/// Refuses a cache that has no room for a single episode, as far as can be told from a listing: of whole files, their sizes; of ranges, the
/// episode's part of each by its frames.
fn check_cache(
    options: &Options,
    bulk: &Source,
    metadata: &Metadata,
    selection: &Selection,
) -> Result<(), Error> {
    let mut frames: BTreeMap<&str, u64> = BTreeMap::new();
    for episode in metadata.episodes() {
        for path in video_paths(metadata, episode) {
            *frames.entry(path).or_default() += episode.length() as u64;
        }
    }
    let bytes_of = |episode: &Episode| -> u64 {
        let part = |path| {
            let size = bulk.listed_size(path).unwrap_or(0);
            match options.fetch {
                Fetch::Files => size,
                Fetch::Ranges => {
                    let part = u128::from(size) * episode.length() as u128;
                    let all = u128::from(frames[path].max(1));
                    u64::try_from(part / all).unwrap_or(u64::MAX)
                }
            }
        };
        video_paths(metadata, episode).map(part).sum()
    };
    let chosen = selection.episodes().iter();
    let largest = chosen
        .filter_map(|episode| metadata.episode(episode.episode_index()))
        .map(|episode| (bytes_of(episode), episode.episode_index()))
        .max();
    match largest {
        Some((needed_bytes, episode_index)) if needed_bytes > options.cache.max_bytes => {
            Err(Error::CacheTooSmall {
                episode_index,
                needed_bytes,
                cache_bytes: options.cache.max_bytes,
            })
        }
        _ => Ok(()),
    }
}

fn video_paths<'a>(
    metadata: &'a Metadata,
    episode: &'a Episode,
) -> impl Iterator<Item = &'a str> + 'a {
    let cameras = metadata.info().camera_keys();
    cameras.filter_map(|camera| Some(episode.video(camera)?.path()))
}
