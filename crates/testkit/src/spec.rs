//! What a dataset to be written is like.

use crate::camera::Camera;
use crate::layout::{Row, Segment, Split};
use crate::table::{ParquetOptions, TextType};

/// A dataset to be written: change what matters, and call [`Spec::write`].
///
/// By default there is one task, no camera, and today's writer's layout: one data file with a row group for each episode,
/// `observation.state` and `action` of shape `[2]`, and the five columns that every dataset has.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Frames per second; default 10.
    pub fps: Fps,
    /// The number of frames of each episode; default 3, 5, 2.
    pub episode_lengths: Vec<usize>,
    /// The columns that hold no pictures, in the order of info.json.
    pub features: Vec<Feature>,
    /// The cameras; info.json has them before `timestamp`.
    pub cameras: Vec<Camera>,
    /// The tasks.
    pub tasks: Tasks,
    /// How the episodes are split into data files; default one file.
    pub data_files: Split,
    /// How the rows of a data file are split into row groups.
    pub row_groups: RowGroups,
    /// How the rows of the episode table are split into files; default one file.
    pub episode_files: Split,
    /// The name under which a column of the episode table is written, given its usual one; default the same.
    pub episode_column: fn(&str) -> String,
    /// How parquet files are written.
    pub parquet: ParquetOptions,
    /// The number of files in a chunk; default 1000.
    pub chunks_size: usize,
    /// The template of data files' paths.
    pub data_path: String,
    /// The template of video files' paths.
    pub video_path: String,
}

impl Default for Spec {
    fn default() -> Self {
        let mut features = vec![
            Feature::new("observation.state", Dtype::Float32, &[2], |row, _| {
                row.index as f64
            }),
            Feature::new("action", Dtype::Float32, &[2], |row, k| {
                row.index as f64 + k as f64 / 2.0
            }),
        ];
        features.extend(Feature::bookkeeping());
        Self {
            fps: Fps::from(10),
            episode_lengths: vec![3, 5, 2],
            features,
            cameras: Vec::new(),
            tasks: Tasks::default(),
            data_files: Split::OneFile,
            row_groups: RowGroups::PerEpisode,
            episode_files: Split::OneFile,
            episode_column: str::to_owned,
            parquet: ParquetOptions::default(),
            chunks_size: 1000,
            data_path: "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet".to_owned(),
            video_path: "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
                .to_owned(),
        }
    }
}

impl Spec {
    /// The default dataset, but of these frames per second and episode lengths.
    pub fn new(fps: impl Into<Fps>, episode_lengths: &[usize]) -> Self {
        Self {
            fps: fps.into(),
            episode_lengths: episode_lengths.to_vec(),
            ..Self::default()
        }
    }

    /// The feature named `key`, to be changed.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn feature_mut(&mut self, key: &str) -> &mut Feature {
        let feature = self.features.iter_mut().find(|feature| feature.key == key);
        feature.unwrap_or_else(|| panic!("no feature is named {key}"))
    }

    /// Every row of the dataset, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let frames = self
            .episode_lengths
            .iter()
            .enumerate()
            .flat_map(|(episode, &length)| (0..length).map(move |frame| (episode, frame)));
        frames
            .enumerate()
            .map(|(index, (episode_index, frame_index))| Row {
                episode_index,
                frame_index,
                index,
                timestamp_s: self.fps.seconds(frame_index),
                task_index: (self.tasks.of)(episode_index, frame_index),
            })
    }

    /// Where each episode lies in the videos of the camera at position `camera`.
    ///
    /// # Panics
    ///
    /// If there is no such camera, or its files do not fit the episodes.
    pub fn segments(&self, camera: usize) -> Vec<Segment> {
        let mut segments = Vec::new();
        for (file, episodes) in self.cameras[camera]
            .files
            .files(self.episode_lengths.len())
            .into_iter()
            .enumerate()
        {
            let mut first_frame = 0;
            for episode_index in episodes {
                let length = self.episode_lengths[episode_index];
                segments.push(Segment {
                    episode_index,
                    length,
                    camera,
                    file,
                    first_frame,
                });
                first_frame += length;
            }
        }
        segments
    }
}

/// Frames per second, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fps {
    /// The numerator.
    pub num: u32,
    /// The denominator.
    pub den: u32,
}

impl From<u32> for Fps {
    fn from(num: u32) -> Self {
        Self { num, den: 1 }
    }
}

impl From<(u32, u32)> for Fps {
    fn from((num, den): (u32, u32)) -> Self {
        Self { num, den }
    }
}

impl Fps {
    /// Frames per second, as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }

    /// The time of `frames` frames, in seconds.
    pub fn seconds(self, frames: usize) -> f64 {
        frames as f64 * f64::from(self.den) / f64::from(self.num)
    }
}

/// A column of the data files that holds no pictures.
#[derive(Debug, Clone)]
pub struct Feature {
    /// Its name.
    pub key: String,
    /// The type of what is stored.
    pub dtype: Dtype,
    /// The shape of what is stored for a row.
    pub shape: Vec<usize>,
    /// The form in which it is stored.
    pub storage: Storage,
    /// What info.json says of it; default the truth.
    pub declared: Declared,
    /// The `k`-th element of a row, counted row-major. It is cast to `dtype`: a bool is whether it differs from 0, a
    /// string its decimal digits.
    pub value: fn(row: Row, k: usize) -> f64,
}

impl Feature {
    /// A feature that is stored as today's writer does it, and declared as what it is.
    pub fn new(key: &str, dtype: Dtype, shape: &[usize], value: fn(Row, usize) -> f64) -> Self {
        let storage = match shape {
            [1] => Storage::Scalar,
            [_] => Storage::FixedSizeList,
            _ => Storage::List,
        };
        Self {
            key: key.to_owned(),
            dtype,
            shape: shape.to_vec(),
            storage,
            declared: Declared::Truly,
            value,
        }
    }

    /// The five columns that every dataset has.
    pub fn bookkeeping() -> [Self; 5] {
        [
            Self::new("timestamp", Dtype::Float32, &[1], |row, _| row.timestamp_s),
            Self::new("frame_index", Dtype::Int64, &[1], |row, _| {
                row.frame_index as f64
            }),
            Self::new("episode_index", Dtype::Int64, &[1], |row, _| {
                row.episode_index as f64
            }),
            Self::new("index", Dtype::Int64, &[1], |row, _| row.index as f64),
            Self::new("task_index", Dtype::Int64, &[1], |row, _| {
                row.task_index as f64
            }),
        ]
    }
}

/// The type of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Dtype {
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Bool,
    String,
}

impl Dtype {
    /// Its name in info.json.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::Float32 => "float32",
            Dtype::Float64 => "float64",
            Dtype::Int8 => "int8",
            Dtype::Int16 => "int16",
            Dtype::Int32 => "int32",
            Dtype::Int64 => "int64",
            Dtype::UInt8 => "uint8",
            Dtype::UInt16 => "uint16",
            Dtype::UInt32 => "uint32",
            Dtype::UInt64 => "uint64",
            Dtype::Bool => "bool",
            Dtype::String => "string",
        }
    }
}

/// The form in which a row's value is stored.
#[derive(Debug, Clone, Copy)]
pub enum Storage {
    /// One plain value, for the shape `[1]`.
    Scalar,
    /// A list, or lists of lists for several axes, also for the shape `[1]`.
    List,
    /// The same, as Arrow's lists of fixed size; parquet stores both alike, but for the Arrow schema that it carries.
    FixedSizeList,
    /// A list of so many elements, whatever the shape.
    Ragged(fn(Row) -> usize),
}

/// What info.json says of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// What it is.
    Truly,
    /// Something else.
    As(Dtype, Vec<usize>),
    /// Nothing: it is not listed.
    Not,
}

/// The task table, and who does what.
#[derive(Debug, Clone)]
pub struct Tasks {
    /// The rows (task_index, text), in the order in which they are written; default one.
    pub rows: Vec<(i64, String)>,
    /// The name of the text column; default `task`. pandas calls it `__index_level_0__` where the index has no name.
    pub column: String,
    /// The type of the text column; default `LargeUtf8`.
    pub text: TextType,
    /// The task_index of a frame, given episode and frame; default 0.
    pub of: fn(episode_index: usize, frame_index: usize) -> i64,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            rows: vec![(0, "push the block".to_owned())],
            column: "task".to_owned(),
            text: TextType::LargeUtf8,
            of: |_, _| 0,
        }
    }
}

/// How the rows of a data file are split into row groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowGroups {
    /// One for each episode, as today's writer does it.
    PerEpisode,
    /// So many rows each, whatever the episodes.
    Rows(usize),
}
