//! What can go wrong between a path and a batch.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a pool could not be built or an epoch not go on.
///
/// The message speaks of the loader's own step; [`source`](std::error::Error::source) holds the layer's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dataset's root or one of its files could not be reached.
    #[error("cannot reach the dataset")]
    Source(#[from] prefetch::Error),

    /// The dataset's metadata could not be read, or files that it names are not there.
    #[error("cannot read the dataset")]
    Dataset(#[source] dataset::Error),

    /// The `delta_timestamps` are not whole numbers of frames, or name unknown features.
    #[error("delta_timestamps do not fit the dataset")]
    DeltaTimestamps(#[from] window::Error),

    /// The topology, the episode filter, or an option of the plan is not valid.
    #[error("cannot plan the epoch")]
    Plan(#[from] pool_core::Error),

    /// A state does not lead to a position.
    #[error("cannot resume")]
    Resume(#[from] resume::Error),

    /// A text or a file is no saved state, or not one that can be gone on from.
    #[error(
        "the saved state cannot be used: {reason}; expected what a loader's state_dict gives, or {{\"batches_consumed\": 1200, \
         \"batch_size\": 32}}"
    )]
    State {
        /// What is wrong.
        reason: String,
    },

    /// A saved state is of another run.
    #[error("the saved state does not fit: {differences}; {remedy}")]
    StateDiffers {
        /// What differs: each with its name, what it was and what it is.
        differences: String,
        /// What to do.
        remedy: &'static str,
    },

    /// An option has a value that nothing could be done with.
    #[error("`{option}` is {found}; expected {expected}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value given.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },

    /// The file of keep-ranges could not be read.
    #[error("cannot read the keep-ranges file `{}`", path.display())]
    KeepRangesFile {
        /// The file's path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The file of keep-ranges does not say what it should.
    #[error(
        "the keep-ranges file `{}` is not valid: {reason}; expected an object such as {{\"3\": [[0, 40], [60, 90]]}}, \
         an episode's number to its half-open ranges of frames",
        path.display()
    )]
    KeepRanges {
        /// The file's path.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },

    /// The features' shapes and the windows ask for too large a sample.
    #[error(
        "one sample would take more than {limit_bytes} bytes; shorten the windows, or check the shapes in info.json"
    )]
    SampleTooLarge {
        /// The most that a sample may take.
        limit_bytes: usize,
    },

    /// A batch would be too large.
    #[error(
        "a batch of {batch_size} samples of {sample_bytes} bytes would take more than {limit_bytes} bytes; \
         choose a smaller batch size"
    )]
    BatchTooLarge {
        /// The number of samples asked for.
        batch_size: usize,
        /// The memory that one sample takes.
        sample_bytes: usize,
        /// The most that a batch may take.
        limit_bytes: usize,
    },

    /// A camera's declared shape is not that of a picture.
    #[error(
        "camera `{camera}`: info.json declares the shape {found:?}; expected [height, width, channels] or \
         [channels, height, width]"
    )]
    CameraShape {
        /// The camera's feature key.
        camera: String,
        /// The declared shape.
        found: Vec<usize>,
    },

    /// An episode's rows could not be read.
    #[error("cannot read the rows of episode {episode_index}")]
    Rows {
        /// The episode.
        episode_index: usize,
        /// What the dataset layer said.
        source: dataset::Error,
    },

    /// A row's task is not in the task table.
    #[error(
        "episode {episode_index}, frame {frame_index}: task_index {found} is not in meta/tasks.parquet, which knows {known}"
    )]
    UnknownTask {
        /// The episode.
        episode_index: usize,
        /// The frame in the episode.
        frame_index: usize,
        /// The value in the row.
        found: i64,
        /// The values of the table, as text.
        known: String,
    },

    /// A camera's video file could not be opened.
    #[error(
        "cannot open the video of camera `{camera}` of episode {episode_index}, frame {frame_index}"
    )]
    OpenVideo {
        /// The camera's feature key.
        camera: String,
        /// The episode.
        episode_index: usize,
        /// The frame in the episode for which the sample was made.
        frame_index: usize,
        /// What the source said.
        source: prefetch::Error,
    },

    /// A file could not be opened to be indexed.
    #[error("cannot index `{file}`")]
    Index {
        /// The file.
        file: String,
        /// What its layer said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The bytes of a frame could not be fetched.
    #[error("cannot fetch the cameras of episode {episode_index}, frame {frame_index}")]
    Fetch {
        /// The episode.
        episode_index: usize,
        /// The frame in the episode for which the sample was made.
        frame_index: usize,
        /// What the source said.
        source: Arc<prefetch::Error>,
    },

    /// The cache is too small for an episode.
    #[error(
        "`cache_bytes` is {cache_bytes}, and episode {episode_index} needs {needed_bytes} bytes of video at hand; \
         let the cache hold as many, and room for a pool of episodes: many times as many"
    )]
    CacheTooSmall {
        /// The episode.
        episode_index: usize,
        /// The bytes that it needs.
        needed_bytes: u64,
        /// The cache's limit.
        cache_bytes: u64,
    },

    /// A camera's frame could not be read.
    #[error("cannot read camera `{camera}` of episode {episode_index}, frame {frame_index}")]
    Frame {
        /// The camera's feature key.
        camera: String,
        /// The episode.
        episode_index: usize,
        /// The frame in the episode for which the sample was made.
        frame_index: usize,
        /// What the decode layer said.
        source: decode::Error,
    },

    /// A video does not hold the interval that the episode table promises.
    #[error(
        "camera `{camera}`: episode {episode_index} should lie in `{file}` from {wanted_from_s:.4} s to {wanted_to_s:.4} s, \
         but the file holds frames from {found_from_s:.4} s to {found_to_s:.4} s; \
         the episode table and the video do not belong together"
    )]
    VideoInterval {
        /// The camera's feature key.
        camera: String,
        /// The episode.
        episode_index: usize,
        /// The video file.
        file: String,
        /// When the episode's first frame should show, in seconds on the file's clock.
        wanted_from_s: f64,
        /// When the episode's last frame should show.
        wanted_to_s: f64,
        /// When the file's first frame shows.
        found_from_s: f64,
        /// When the file's last frame shows.
        found_to_s: f64,
    },

    /// A picture is not of the size that `info.json` declares.
    #[error(
        "camera `{camera}`: `{file}` holds pictures of {found_height}x{found_width} (height x width), \
         but info.json declares {expected_height}x{expected_width}"
    )]
    PictureSize {
        /// The camera's feature key.
        camera: String,
        /// The file that holds the picture.
        file: String,
        /// Height in the file, in pixels.
        found_height: usize,
        /// Width in the file, in pixels.
        found_width: usize,
        /// Declared height.
        expected_height: usize,
        /// Declared width.
        expected_width: usize,
    },

    /// The episode table names no video file for a camera.
    #[error("camera `{camera}`: the episode table has no video file for episode {episode_index}")]
    NoVideo {
        /// The camera's feature key.
        camera: String,
        /// The episode.
        episode_index: usize,
    },

    /// A global frame index outside the dataset.
    #[error("frame {index} is not in the dataset, which holds the frames 0 to {}", total_frames.saturating_sub(1))]
    NoSuchFrame {
        /// The index asked for.
        index: usize,
        /// The number of frames in the dataset.
        total_frames: usize,
    },

    /// The consumer owns no episode, so its epoch would be empty.
    #[error(
        "rank {rank} of {world_size}, worker {worker} of {num_workers} owns no episode: there is nothing to emit; \
         use fewer consumers, or shard by episodes"
    )]
    NothingToEmit {
        /// The consumer's rank.
        rank: usize,
        /// The number of ranks.
        world_size: usize,
        /// The consumer's worker.
        worker: usize,
        /// The number of workers of the rank.
        num_workers: usize,
    },

    /// The system gave no thread for a worker of a loader.
    #[error("cannot start worker {worker} of the loader; use fewer workers")]
    SpawnWorker {
        /// The worker.
        worker: usize,
        /// What the operating system said.
        source: io::Error,
    },

    /// The system gave no thread to decode with.
    #[error("cannot start decode thread {thread}; choose a smaller `num_threads`")]
    SpawnDecodeThread {
        /// The thread's number.
        thread: usize,
        /// What the operating system said.
        source: io::Error,
    },

    /// A worker thread of a loader ended without a result.
    #[error("worker {worker} of the loader ended unexpectedly")]
    WorkerDied {
        /// The worker.
        worker: usize,
    },
}
