//! `episode-pool info`: what is in a dataset.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::Args;
use episode_pool::dataset::{Feature, Metadata};
use episode_pool::{EpisodePool, Warning};
use serde::Serialize;

use crate::error::Error;
use crate::json;
use crate::table::{Align, Table, count, thousands};

/// Which dataset, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The dataset: its root directory, or a URL (hf://, s3://, gs://, https://).
    path: String,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InfoArgs, out: &mut impl Write) -> Result<(), Error> {
    // A pool with no options but the path checks the whole metadata, and reads nothing else.
    let pool = EpisodePool::builder(&args.path).build()?;
    let summary = Summary::new(&args.path, pool.metadata(), pool.warnings());
    if args.json {
        json::write_pretty(out, &summary)
    } else {
        summary.write_text(out).map_err(Error::Output)
    }
}

/// What is in a dataset. The counts are those of the files, not those that info.json promises.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    path: &'a str,
    codebase_version: &'a str,
    robot_type: Option<&'a str>,
    fps: f64,
    total_episodes: usize,
    total_frames: usize,
    duration_s: f64,
    episode_frames: EpisodeFrames,
    data_files: usize,
    features: Vec<FeatureSummary<'a>>,
    cameras: Vec<CameraSummary<'a>>,
    tasks: Vec<TaskSummary<'a>>,
    warnings: Vec<String>,
}

/// How long episodes are.
#[derive(Debug, Serialize)]
struct EpisodeFrames {
    min: usize,
    mean: f64,
    max: usize,
}

#[derive(Debug, Serialize)]
struct FeatureSummary<'a> {
    key: &'a str,
    dtype: &'static str,
    shape: &'a [usize],
    names: &'a [String],
}

#[derive(Debug, Serialize)]
struct CameraSummary<'a> {
    key: &'a str,
    dtype: &'static str,
    height: Option<usize>,
    width: Option<usize>,
    is_depth: bool,
    codec: Option<&'a str>,
    video_files: usize,
}

#[derive(Debug, Serialize)]
struct TaskSummary<'a> {
    task_index: i64,
    task: &'a str,
}

impl<'a> Summary<'a> {
    fn new(path: &'a str, metadata: &'a Metadata, warnings: &[Warning]) -> Self {
        let info = metadata.info();
        let episodes = metadata.episodes();
        let lengths = || episodes.iter().map(|episode| episode.length());
        let total_frames = metadata.total_frames();
        let feature = |feature: &'a Feature| FeatureSummary {
            key: feature.key(),
            dtype: feature.dtype().name(),
            shape: feature.shape(),
            names: feature.names(),
        };
        let camera = |feature: &'a Feature| {
            let size = feature.picture_size();
            let videos = episodes
                .iter()
                .filter_map(|episode| episode.video(feature.key()));
            CameraSummary {
                key: feature.key(),
                dtype: feature.dtype().name(),
                height: size.map(|size| size.height),
                width: size.map(|size| size.width),
                is_depth: feature.is_depth(),
                codec: feature.info_text("codec"),
                video_files: videos
                    .map(|video| video.path())
                    .collect::<BTreeSet<_>>()
                    .len(),
            }
        };
        let features = info.features().iter();
        let tasks = metadata.tasks().iter();
        Self {
            path,
            codebase_version: info.codebase_version(),
            robot_type: info.robot_type(),
            fps: info.fps(),
            total_episodes: episodes.len(),
            total_frames,
            duration_s: total_frames as f64 / info.fps(),
            episode_frames: EpisodeFrames {
                min: lengths().min().unwrap_or(0),
                mean: total_frames as f64 / episodes.len().max(1) as f64,
                max: lengths().max().unwrap_or(0),
            },
            data_files: metadata.data_files().len(),
            features: features.clone().map(feature).collect(),
            cameras: features
                .filter(|feature| feature.is_camera())
                .map(camera)
                .collect(),
            tasks: tasks
                .map(|(task_index, task)| TaskSummary { task_index, task })
                .collect(),
            warnings: warnings.iter().map(Warning::to_string).collect(),
        }
    }

    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.path)?;
        writeln!(
            out,
            "  LeRobotDataset {}{}",
            self.codebase_version,
            self.robot()
        )?;
        writeln!(
            out,
            "  {} in {} and {}, {} fps, {:.1} s",
            count(self.total_frames as u64, "frame"),
            count(self.total_episodes as u64, "episode"),
            count(self.data_files as u64, "data file"),
            self.fps,
            self.duration_s,
        )?;
        let EpisodeFrames { min, mean, max } = &self.episode_frames;
        writeln!(
            out,
            "  an episode has {} to {} frames, {mean:.1} on average",
            thousands(*min as u64),
            thousands(*max as u64)
        )?;

        let mut features = Table::new(&[
            ("feature", Align::Left),
            ("type", Align::Left),
            ("shape", Align::Left),
        ]);
        for feature in &self.features {
            features.push([
                feature.key.to_owned(),
                feature.dtype.to_owned(),
                format!("{:?}", feature.shape),
            ]);
        }
        writeln!(out)?;
        features.write(out)?;

        if !self.cameras.is_empty() {
            let mut cameras = Table::new(&[
                ("camera", Align::Left),
                ("height x width", Align::Right),
                ("stored as", Align::Left),
                ("files", Align::Right),
            ]);
            for camera in &self.cameras {
                let side = |side: Option<usize>| {
                    side.map_or_else(|| "?".to_owned(), |side| side.to_string())
                };
                cameras.push([
                    camera.key.to_owned(),
                    format!("{} x {}", side(camera.height), side(camera.width)),
                    camera.stored_as(),
                    camera.video_files.to_string(),
                ]);
            }
            writeln!(out)?;
            cameras.write(out)?;
        }

        let mut tasks = Table::new(&[("task", Align::Right), ("", Align::Left)]);
        for task in &self.tasks {
            tasks.push([task.task_index.to_string(), task.task.to_owned()]);
        }
        writeln!(out)?;
        tasks.write(out)
    }

    fn robot(&self) -> String {
        self.robot_type
            .map(|robot| format!(", robot {robot}"))
            .unwrap_or_default()
    }
}

impl CameraSummary<'_> {
    /// `video, av1`; `image, depth`.
    fn stored_as(&self) -> String {
        let depth = self.is_depth.then_some("depth");
        [Some(self.dtype), self.codec, depth]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ")
    }
}
