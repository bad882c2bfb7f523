//! What a run is measured by.

use std::time::Duration;

use episode_pool::pool_core::Coverage;
use episode_pool::{Batch, DecodeReport, EpisodePool, EpochReport};
use serde::Serialize;

/// Camera frames in a sample, each of a window's.
pub(crate) fn frames_per_sample(pool: &EpisodePool) -> usize {
    let cameras = pool.fields().iter().filter(|field| field.is_camera());
    cameras.map(|field| field.window_len().unwrap_or(1)).sum()
}

/// What came, and when.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) samples: u64,
    pub(crate) received: Coverage,
    /// The wait for every batch.
    pub(crate) waits_s: Vec<f64>,
    /// The same, for each sample of the batch.
    pub(crate) sample_latencies_ms: Vec<f64>,
    /// From the start to the last batch.
    pub(crate) elapsed: Duration,
}

impl Measured {
    pub(crate) fn record(&mut self, batch: &Batch, wait_s: f64) {
        for (&episode_index, &frame_index) in batch.episode_indices.iter().zip(&batch.frame_indices)
        {
            self.received.record(episode_index, frame_index);
        }
        self.samples += batch.len() as u64;
        self.waits_s.push(wait_s);
        self.sample_latencies_ms
            .push(wait_s * 1e3 / batch.len() as f64);
    }

    pub(crate) fn batches(&self) -> usize {
        self.waits_s.len()
    }
}

/// The counters of the caches of open videos.
#[derive(Debug, Serialize)]
pub(crate) struct VideoCacheSummary {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) evictions: u64,
    pub(crate) hit_rate: f64,
}

/// What decoding video has cost.
#[derive(Debug, Serialize)]
pub(crate) struct DecodeSummary {
    pub(crate) gops_decoded: u64,
    pub(crate) frames_decoded: u64,
    pub(crate) frames_used: u64,
    pub(crate) reuse: f64,
    pub(crate) decoder_opens: u64,
    pub(crate) peak_held_bytes: u64,
}

impl VideoCacheSummary {
    /// The sum over the workers' caches.
    pub(crate) fn new(reports: &[EpochReport]) -> Self {
        let sum = |counter: fn(&EpochReport) -> u64| reports.iter().map(counter).sum::<u64>();
        let hits = sum(|report| report.video_decoder_cache.hits);
        let misses = sum(|report| report.video_decoder_cache.misses);
        Self {
            hits,
            misses,
            evictions: sum(|report| report.video_decoder_cache.evictions),
            hit_rate: if hits + misses == 0 {
                0.0
            } else {
                hits as f64 / (hits + misses) as f64
            },
        }
    }
}

impl DecodeSummary {
    /// The sum over the workers.
    pub(crate) fn new(reports: &[EpochReport]) -> Self {
        let mut sum = DecodeReport::default();
        for report in reports {
            sum.merge(report.decode);
        }
        Self {
            gops_decoded: sum.gops_decoded,
            frames_decoded: sum.frames_decoded,
            frames_used: sum.frames_used,
            reuse: sum.reuse(),
            decoder_opens: sum.decoder_opens,
            peak_held_bytes: sum.peak_held_bytes,
        }
    }
}
