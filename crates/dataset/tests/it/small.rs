//! A small dataset to be bent: info.json, tables and rows as values, put into files at the end.

use std::sync::Arc;

use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int64Array, ListArray,
    RecordBatch, StringArray,
};
use arrow_schema::{Field, Schema};
use dataset::{EpisodeRows, Error, Metadata, Storage};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::memory::Memory;

pub(crate) const INFO: &str = "meta/info.json";
pub(crate) const EPISODES: &str = "meta/episodes/chunk-000/file-000.parquet";
pub(crate) const TASKS: &str = "meta/tasks.parquet";
pub(crate) const STATS: &str = "meta/stats.json";
pub(crate) const DATA: &str = "data/chunk-000/file-000.parquet";

/// Named columns.
pub(crate) type Table = Vec<(String, ArrayRef)>;

/// A dataset of one data file. `state` is a `[2]` feature: the row's number, and its half.
#[derive(Debug, Clone)]
pub(crate) struct Small {
    pub(crate) info: Value,
    pub(crate) episodes: Table,
    pub(crate) tasks: Table,
    pub(crate) data: Table,
    pub(crate) data_properties: WriterProperties,
}

impl Default for Small {
    fn default() -> Self {
        Self::new(&[3, 5, 2])
    }
}

impl Small {
    /// A dataset of 10 frames a second with episodes of these lengths.
    pub(crate) fn new(lengths: &[i64]) -> Self {
        let starts: Vec<i64> = lengths
            .iter()
            .scan(0, |end, length| {
                *end += length;
                Some(*end - length)
            })
            .collect();
        let total: i64 = lengths.iter().sum();
        let frames: Vec<(i64, i64)> = (0..)
            .zip(lengths)
            .flat_map(|(episode, length)| (0..*length).map(move |frame| (episode, frame)))
            .collect();
        let scalar = |dtype| json!({"dtype": dtype, "shape": [1], "names": null});
        let zeros = || lengths.iter().map(|_| 0);
        Self {
            info: json!({
                "codebase_version": "v3.0",
                "fps": 10,
                "total_episodes": lengths.len(),
                "total_frames": total,
                "robot_type": "so100",
                "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
                "video_path": null,
                "features": {
                    "state": {"dtype": "float32", "shape": [2], "names": ["x", "y"]},
                    "timestamp": scalar("float32"),
                    "frame_index": scalar("int64"),
                    "episode_index": scalar("int64"),
                    "index": scalar("int64"),
                    "task_index": scalar("int64"),
                },
            }),
            episodes: table([
                ("episode_index", ints(0..lengths.len() as i64)),
                ("tasks", string_lists(lengths.iter().map(|_| vec!["push"]))),
                ("length", ints(lengths.iter().copied())),
                ("data/chunk_index", ints(zeros())),
                ("data/file_index", ints(zeros())),
                ("dataset_from_index", ints(starts.iter().copied())),
                (
                    "dataset_to_index",
                    ints(
                        starts
                            .iter()
                            .zip(lengths)
                            .map(|(start, length)| start + length),
                    ),
                ),
                (
                    "stats/state/mean",
                    lists(lengths.iter().map(|_| vec![0.0; 1000])),
                ),
            ]),
            tasks: table([("task_index", ints([0])), ("task", strings(&["push"]))]),
            data: table([
                (
                    "state",
                    lists((0..total).map(|row| vec![row as f32, row as f32 / 2.0])),
                ),
                (
                    "timestamp",
                    floats(frames.iter().map(|(_, frame)| *frame as f32 / 10.0)),
                ),
                ("frame_index", ints(frames.iter().map(|(_, frame)| *frame))),
                (
                    "episode_index",
                    ints(frames.iter().map(|(episode, _)| *episode)),
                ),
                ("index", ints(0..total)),
                ("task_index", ints(frames.iter().map(|_| 0))),
            ]),
            data_properties: WriterProperties::default(),
        }
    }

    /// Adds a feature of one declared shape and type, with these values for the rows.
    pub(crate) fn with_feature(
        mut self,
        key: &str,
        dtype: &str,
        shape: &[usize],
        values: ArrayRef,
    ) -> Self {
        self.info["features"][key] = json!({"dtype": dtype, "shape": shape, "names": null});
        self.data.push((key.to_owned(), values));
        self
    }

    /// Adds a camera, of whose videos only the episode table tells: file, start and end for each episode.
    pub(crate) fn with_camera(mut self, key: &str, spans: &[(i64, f64, f64)]) -> Self {
        self.info["features"][key] = json!({"dtype": "video", "shape": [48, 64, 3], "names": null});
        self.info["video_path"] =
            json!("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4");
        let column = |name: &str| format!("videos/{key}/{name}");
        self.episodes.extend([
            (column("chunk_index"), ints(spans.iter().map(|_| 0))),
            (
                column("file_index"),
                ints(spans.iter().map(|(file, ..)| *file)),
            ),
            (
                column("from_timestamp"),
                doubles(spans.iter().map(|(_, from_s, _)| *from_s)),
            ),
            (
                column("to_timestamp"),
                doubles(spans.iter().map(|(.., to_s)| *to_s)),
            ),
        ]);
        self
    }

    /// Replaces a column of the data.
    pub(crate) fn with_data(mut self, name: &str, values: ArrayRef) -> Self {
        set(&mut self.data, name, values);
        self
    }

    /// Replaces a column of the episode table.
    pub(crate) fn with_episodes(mut self, name: &str, values: ArrayRef) -> Self {
        set(&mut self.episodes, name, values);
        self
    }

    /// The files.
    pub(crate) fn storage(&self) -> Memory {
        let mut memory = Memory::default();
        memory.insert(INFO, self.info.to_string());
        memory.insert(EPISODES, parquet(&self.episodes));
        memory.insert(TASKS, parquet(&self.tasks));
        memory.insert(DATA, parquet_with(&self.data, self.data_properties.clone()));
        memory
    }

    pub(crate) fn metadata(&self) -> Result<Metadata, Error> {
        Metadata::read(&self.storage())
    }

    /// All rows of the episode with this number.
    pub(crate) fn rows(&self, episode_index: usize) -> Result<EpisodeRows, Error> {
        read_rows(&self.storage(), episode_index)
    }
}

/// All rows of the episode with this number.
pub(crate) fn read_rows(storage: &dyn Storage, episode_index: usize) -> Result<EpisodeRows, Error> {
    let metadata = Metadata::read(storage)?;
    let episode = metadata.episode(episode_index).unwrap();
    metadata
        .open_data_file(storage, episode.data_file())?
        .read_episode(episode)
}

pub(crate) fn table<const N: usize>(columns: [(&str, ArrayRef); N]) -> Table {
    columns
        .into_iter()
        .map(|(name, values)| (name.to_owned(), values))
        .collect()
}

/// Replaces a column.
pub(crate) fn set(table: &mut Table, name: &str, values: ArrayRef) {
    table.iter_mut().find(|(found, _)| found == name).unwrap().1 = values;
}

/// Renames a column.
pub(crate) fn rename(table: &mut Table, name: &str, new: &str) {
    table.iter_mut().find(|(found, _)| found == name).unwrap().0 = new.to_owned();
}

/// Takes a column out.
pub(crate) fn drop_column(table: &mut Table, name: &str) {
    let before = table.len();
    table.retain(|(found, _)| found != name);
    assert_eq!(table.len(), before - 1, "{name}");
}

/// Some rows of a table.
pub(crate) fn slice(table: &Table, start: usize, len: usize) -> Table {
    table
        .iter()
        .map(|(name, values)| (name.clone(), values.slice(start, len)))
        .collect()
}

pub(crate) fn parquet(table: &Table) -> Vec<u8> {
    parquet_with(table, WriterProperties::default())
}

pub(crate) fn parquet_with(table: &Table, properties: WriterProperties) -> Vec<u8> {
    let field =
        |(name, values): &(String, ArrayRef)| Field::new(name, values.data_type().clone(), true);
    let schema = Arc::new(Schema::new(table.iter().map(field).collect::<Vec<_>>()));
    let columns = table.iter().map(|(_, values)| Arc::clone(values)).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

pub(crate) fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(crate) fn floats(values: impl IntoIterator<Item = f32>) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(values))
}

pub(crate) fn doubles(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

pub(crate) fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Lists of float32.
pub(crate) fn lists(rows: impl IntoIterator<Item = Vec<f32>>) -> ArrayRef {
    let rows = rows
        .into_iter()
        .map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
}

/// Lists of int64.
pub(crate) fn int_lists(rows: impl IntoIterator<Item = Vec<i64>>) -> ArrayRef {
    let rows = rows
        .into_iter()
        .map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
}

/// Lists of fixed size, of whatever `values` holds.
pub(crate) fn fixed_lists(values: ArrayRef, size: i32) -> ArrayRef {
    let field = Arc::new(Field::new("element", values.data_type().clone(), true));
    Arc::new(FixedSizeListArray::new(field, size, values, None))
}

/// Lists of text.
pub(crate) fn string_lists<'a>(rows: impl Iterator<Item = Vec<&'a str>>) -> ArrayRef {
    let mut builder =
        arrow_array::builder::ListBuilder::new(arrow_array::builder::StringBuilder::new());
    for row in rows {
        builder.append_value(row.into_iter().map(Some));
    }
    Arc::new(builder.finish())
}
