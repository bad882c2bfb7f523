//! The fewest frames that any loader must decode for an epoch of a dataset: for each mode, at several sizes of memory.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use benches::limit::{Frame, fewest_decodes};
use decode::{Decoder, Encoded, Video, VideoOptions};
use episode_pool::EpisodePool;
use episode_pool::dataset::Episode;
use pool_core::Step;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let root = args.next().ok_or("usage: limit DATASET [BYTES...]")?;
    let budgets = args
        .map(|bytes| bytes.parse::<u64>())
        .collect::<Result<Vec<_>, _>>()?;
    let pool = EpisodePool::builder(root.as_str()).build()?;
    let videos = Videos::measure(&root, &pool)?;
    for (mode, deltas_s) in [
        ("single", vec![0.0]),
        ("sarm", (-7..=0).map(f64::from).collect()),
    ] {
        let samples = videos.wanted(&pool, &deltas_s)?;
        let used: usize = samples
            .iter()
            .map(|frames| {
                frames
                    .iter()
                    .collect::<std::collections::HashSet<_>>()
                    .len()
            })
            .sum();
        for budget in &budgets {
            let fewest = fewest_decodes(&samples, budget / videos.picture_bytes);
            let line = format!(
                "{{\"mode\":\"{mode}\",\"decode_ahead_bytes\":{budget},\"samples\":{},\"frames_used\":{used},\"fewest_decodes\":{fewest:.0}}}",
                samples.len()
            );
            write_line(&line)?;
        }
    }
    Ok(())
}

fn write_line(line: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{line}")
}

/// Every frame of every video, and what it costs alone.
struct Videos {
    by_path: BTreeMap<String, (Video, Vec<Frame>)>,
    picture_bytes: u64,
}

impl Videos {
    /// Decodes each frame by itself, and counts.
    fn measure(root: &str, pool: &EpisodePool) -> Result<Self, Box<dyn Error>> {
        let (mut by_path, mut picture_bytes) = (BTreeMap::new(), 1);
        let mut decoder = Decoder::new();
        for episode in pool.metadata().episodes() {
            for camera in pool.metadata().info().camera_keys() {
                let Some(span) = episode.video(camera) else {
                    continue;
                };
                let path = span.path();
                if by_path.contains_key(path) {
                    continue;
                }
                let media = Box::new(File::open(Path::new(root).join(path))?);
                let video = Video::open(media, path, camera, &VideoOptions::default())?;
                let number = u32::try_from(by_path.len())?;
                let mut frames = Vec::new();
                // Backwards: a decoder goes on from one frame to the next where it can.
                for frame in (0..video.info().num_frames).rev() {
                    let gop = video.gop_of(frame).ok_or("a frame without a keyframe")?;
                    let before = decoder.stats().frames;
                    let never = AtomicBool::new(false);
                    decoder.pictures(&video, Encoded::default(), &[frame], &never, |_, _| {})?;
                    frames.push(Frame {
                        gop: (number, u32::try_from(gop)?),
                        number: u32::try_from(frame)?,
                        cost: u32::try_from(decoder.stats().frames - before)?,
                    });
                }
                frames.reverse();
                picture_bytes = picture_bytes.max(video.picture_bytes() as u64);
                by_path.insert(path.to_owned(), (video, frames));
            }
        }
        Ok(Self {
            by_path,
            picture_bytes,
        })
    }

    /// The frames of every sample of epoch 0.
    fn wanted(
        &self,
        pool: &EpisodePool,
        deltas_s: &[f64],
    ) -> Result<Vec<Vec<Frame>>, Box<dyn Error>> {
        let mut samples = Vec::new();
        for step in pool.plan(0)? {
            let Step::Emit(emission) = step else {
                continue;
            };
            let metadata = pool.metadata();
            let episode = metadata
                .episode(emission.episode_index)
                .ok_or("an unknown episode")?;
            let fps = metadata.info().fps();
            let mut frames = Vec::new();
            for camera in metadata.info().camera_keys() {
                let offsets = window::Offsets::from_seconds(camera, deltas_s, fps, 1e-4)?;
                let first = self.first(episode, camera)?;
                let rows = offsets.indices(emission.frame_index, episode.length());
                frames.extend(rows.map(|row| first[row]));
            }
            samples.push(frames);
        }
        Ok(samples)
    }

    /// A camera's frames from an episode's first on.
    fn first(&self, episode: &Episode, camera: &str) -> Result<&[Frame], Box<dyn Error>> {
        let span = episode.video(camera).ok_or("an episode without a video")?;
        let (video, frames) = &self.by_path[span.path()];
        let (first, _) = video.nearest(span.from_timestamp_s())?;
        Ok(&frames[first..])
    }
}
