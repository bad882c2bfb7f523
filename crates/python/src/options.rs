//! Options, as the Python sources hand them over: a dict with every key.

use std::collections::BTreeMap;
use std::path::PathBuf;

use episode_pool::decode::Layout;
use episode_pool::pool_core::{Admission, ShardUnit, Topology};
use episode_pool::resume::EpochEnd;
use episode_pool::{Builder, EpisodePool, Fetch, FrameType, LoaderOptions, OnFetchError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error;

/// The options of a dataset. `None` leaves the library's default.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PoolOptions {
    episodes: Option<Vec<usize>>,
    exclude_episodes: Option<Vec<usize>>,
    drop_n_first_frames: usize,
    drop_n_last_frames: usize,
    keep_ranges_file: Option<PathBuf>,
    delta_timestamps: BTreeMap<String, Vec<f64>>,
    tolerance_s: f64,
    episode_pool_size: usize,
    buffer_size: Option<usize>,
    shard_unit: String,
    max_num_shards: Option<usize>,
    seed: u64,
    shuffle: bool,
    uint8: bool,
    resize: Option<(usize, usize)>,
    num_threads: Option<usize>,
    decode_ahead_bytes: Option<u64>,
    video_decoder_cache_size: Option<usize>,
    admission: String,
    data_root: Option<String>,
    index: Option<PathBuf>,
    cache_dir: Option<PathBuf>,
    cache_bytes: Option<u64>,
    warm_cache: bool,
    prefetch_episodes: usize,
    fetch: String,
    on_fetch_error: String,
    /// Rank and number of ranks; without them, as the environment says.
    place: Option<(usize, usize)>,
}

impl PoolOptions {
    pub(crate) fn builder(self, source: &str) -> PyResult<Builder> {
        let shard_unit = match self.shard_unit.as_str() {
            "episode" => ShardUnit::Episode,
            "file" => ShardUnit::File,
            other => return Err(unknown("shard_unit", other, "\"episode\" or \"file\"")),
        };
        let admission = match self.admission.as_str() {
            "shuffled" => Admission::Shuffled,
            "file_grouped" => Admission::FileGrouped,
            other => {
                let expected = "\"shuffled\" or \"file_grouped\"";
                return Err(unknown("admission", other, expected));
            }
        };
        let fetch = match self.fetch.as_str() {
            "ranges" => Fetch::Ranges,
            "files" => Fetch::Files,
            other => return Err(unknown("fetch", other, "\"ranges\" or \"files\"")),
        };
        let on_fetch_error = match self.on_fetch_error.as_str() {
            "fail" => OnFetchError::Fail,
            "skip_episode" => OnFetchError::SkipEpisode,
            other => {
                let expected = "\"fail\" or \"skip_episode\"";
                return Err(unknown("on_fetch_error", other, expected));
            }
        };
        let frame_type = if self.uint8 {
            FrameType::U8
        } else {
            FrameType::F32
        };
        let mut builder = EpisodePool::builder(source)
            .exclude_episodes(self.exclude_episodes.unwrap_or_default())
            .drop_n_first_frames(self.drop_n_first_frames)
            .drop_n_last_frames(self.drop_n_last_frames)
            .delta_timestamps(self.delta_timestamps)
            .tolerance_s(self.tolerance_s)
            .episode_pool_size(self.episode_pool_size)
            .shard_unit(shard_unit)
            .seed(self.seed)
            .shuffle(self.shuffle)
            .admission(admission)
            .warm_cache(self.warm_cache)
            .prefetch_episodes(self.prefetch_episodes)
            .fetch(fetch)
            .on_fetch_error(on_fetch_error)
            .frame_layout(Layout::Chw)
            .frame_type(frame_type);
        if let Some(episodes) = self.episodes {
            builder = builder.episodes(episodes);
        }
        if let Some(path) = self.keep_ranges_file {
            builder = builder.keep_ranges_file(path);
        }
        if let Some(frames) = self.buffer_size {
            builder = builder.buffer_size(frames);
        }
        if let Some(shards) = self.max_num_shards {
            builder = builder.max_num_shards(shards);
        }
        if let Some((height, width)) = self.resize {
            builder = builder.resize(height, width);
        }
        if let Some(threads) = self.num_threads {
            builder = builder.num_threads(threads);
        }
        if let Some(bytes) = self.decode_ahead_bytes {
            builder = builder.decode_ahead_bytes(bytes);
        }
        if let Some(decoders) = self.video_decoder_cache_size {
            builder = builder.video_decoder_cache_size(decoders);
        }
        if let Some(source) = self.data_root {
            builder = builder.data_root(source);
        }
        if let Some(path) = self.index {
            builder = builder.index(path);
        }
        if let Some(dir) = self.cache_dir {
            builder = builder.cache_dir(dir);
        }
        if let Some(bytes) = self.cache_bytes {
            builder = builder.cache_bytes(bytes);
        }
        match self.place {
            Some((rank, world_size)) => {
                let topology = Topology::new(rank, world_size, 0, 0);
                Ok(builder.topology(topology.map_err(|e| error::to_python(&e.into()))?))
            }
            None => builder
                .topology_from_env()
                .map_err(|e| error::to_python(&e)),
        }
    }
}

/// The options of a loader.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct BatchOptions {
    batch_size: usize,
    drop_last: bool,
    prefetch_batches: usize,
    epoch_end: String,
    canonical_consumers: Option<usize>,
}

impl BatchOptions {
    pub(crate) fn into_options(self) -> PyResult<LoaderOptions> {
        let epoch_end = match self.epoch_end.as_str() {
            "exact" => EpochEnd::Exact,
            "drop_tail" => EpochEnd::DropTail,
            "wrap" => EpochEnd::Wrap,
            other => {
                let expected = "\"exact\", \"drop_tail\" or \"wrap\"";
                return Err(unknown("epoch_end", other, expected));
            }
        };
        Ok(LoaderOptions {
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            prefetch_batches: self.prefetch_batches,
            epoch_end,
            canonical_consumers: self.canonical_consumers,
        })
    }
}

fn unknown(option: &str, found: &str, expected: &str) -> PyErr {
    PyValueError::new_err(format!("`{option}` is {found:?}; expected {expected}"))
}
