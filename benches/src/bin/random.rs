//! Random access to single frames on one thread, over all videos of a dataset: the counterpart of `peers.py random`.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use decode::{Decoder, Layout, Pixels, Video, VideoOptions};
use episode_pool::EpisodePool;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(root), Some(seconds)) = (args.next(), args.next()) else {
        return Err("usage: random DATASET SECONDS".into());
    };
    let seconds = Duration::try_from_secs_f64(seconds.parse()?)?;
    let videos = open(&root)?;
    let ends: Vec<usize> = videos
        .iter()
        .scan(0, |end, video| {
            *end += video.info().num_frames;
            Some(*end)
        })
        .collect();
    let num_frames = *ends.last().ok_or("the dataset has no videos")?;

    let mut decoder = Decoder::new();
    let mut draws = Draws(1);
    let (mut frames, mut rgb) = (0_u64, Vec::new());
    let start = Instant::now();
    while start.elapsed() < seconds {
        let number = draws.below(num_frames);
        let file = ends.partition_point(|&end| end <= number);
        let video = &videos[file];
        let info = video.info();
        let frame = number + info.num_frames - ends[file];
        let time_s = info.start_s + frame as f64 * video.frame_interval_s();
        rgb.resize(info.height * info.width * 3, 0);
        decoder.decode(video, &[time_s], 1e-3, Layout::Hwc, Pixels::U8(&mut rgb))?;
        frames += 1;
    }
    // One thread that never waits: what the clock says is what the CPU did, on a quiet machine.
    let rate = frames as f64 / start.elapsed().as_secs_f64();
    let line = format!("{{\"frames\":{frames},\"frames_per_cpu_s\":{rate:.1}}}");
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// Every video of a dataset, once.
fn open(root: &str) -> Result<Vec<Video>, Box<dyn Error>> {
    let pool = EpisodePool::builder(root).build()?;
    let metadata = pool.metadata();
    let mut paths = std::collections::BTreeSet::new();
    for episode in metadata.episodes() {
        let cameras = metadata.info().camera_keys();
        paths.extend(cameras.filter_map(|camera| Some(episode.video(camera)?.path().to_owned())));
    }
    paths
        .iter()
        .map(|path| {
            let media = Box::new(File::open(Path::new(root).join(path))?);
            Ok(Video::open(media, path, "bench", &VideoOptions::default())?)
        })
        .collect()
}

/// Numbers that look random (an LCG's upper bits), the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}
