//! The folder `meta/`: info.json, the episode table, the task table.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array};
use serde_json::{Value, json};

use crate::camera::{Camera, CameraKind, ToTimestamp};
use crate::columns;
use crate::layout::{Row, chunk_and_file};
use crate::spec::{Declared, Spec};
use crate::table;

/// The text of info.json. Features stand in the order of the spec, which a map of JSON values would not keep.
pub(crate) fn info(spec: &Spec) -> String {
    let mut features: Vec<(&str, Value)> = Vec::new();
    let mut cameras = Some(
        spec.cameras
            .iter()
            .map(|camera| (camera.key.as_str(), declared_camera(camera, spec))),
    );
    for feature in &spec.features {
        if feature.key == "timestamp" {
            features.extend(cameras.take().into_iter().flatten());
        }
        let (dtype, shape) = match &feature.declared {
            Declared::Truly => (feature.dtype, &feature.shape),
            Declared::As(dtype, shape) => (*dtype, shape),
            Declared::Not => continue,
        };
        features.push((
            &feature.key,
            json!({ "dtype": dtype.name(), "shape": shape, "names": null }),
        ));
    }
    features.extend(cameras.take().into_iter().flatten());

    let has_video = spec
        .cameras
        .iter()
        .any(|camera| camera.kind == CameraKind::Video);
    let num_episodes = spec.episode_lengths.len();
    object(&[
        ("codebase_version", json!("v3.0").to_string()),
        ("fps", fps(spec).to_string()),
        (
            "features",
            object(
                &features
                    .iter()
                    .map(|(key, value)| (*key, value.to_string()))
                    .collect::<Vec<_>>(),
            ),
        ),
        ("total_episodes", num_episodes.to_string()),
        (
            "total_frames",
            spec.episode_lengths.iter().sum::<usize>().to_string(),
        ),
        ("total_tasks", spec.tasks.rows.len().to_string()),
        ("chunks_size", spec.chunks_size.to_string()),
        ("data_files_size_in_mb", json!(100).to_string()),
        ("video_files_size_in_mb", json!(200).to_string()),
        ("data_path", json!(spec.data_path).to_string()),
        (
            "video_path",
            json!(has_video.then_some(&spec.video_path)).to_string(),
        ),
        ("robot_type", Value::Null.to_string()),
        (
            "splits",
            json!({ "train": format!("0:{num_episodes}") }).to_string(),
        ),
    ])
}

/// A JSON object of members that are JSON already, in this order.
fn object(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{}: {value}", json!(key)))
        .collect();
    format!("{{\n{}\n}}", members.join(",\n"))
}

/// A whole number where it is one, as today's writer has it.
fn fps(spec: &Spec) -> Value {
    if spec.fps.den == 1 {
        json!(spec.fps.num)
    } else {
        json!(spec.fps.as_f64())
    }
}

fn declared_camera(camera: &Camera, spec: &Spec) -> Value {
    let shape = [camera.height, camera.width, 3];
    let names = ["height", "width", "channels"];
    match camera.kind {
        CameraKind::Image => json!({ "dtype": "image", "shape": shape, "names": names }),
        CameraKind::Video => json!({ "dtype": "video", "shape": shape, "names": names, "info": {
            "video.height": camera.height,
            "video.width": camera.width,
            "video.codec": camera.encoder.codec(),
            "video.pix_fmt": camera.encoder.pixel_format,
            "video.fps": fps(spec),
            "video.channels": 3,
            "has_audio": false,
            "is_depth_map": false,
        } }),
    }
}

/// Writes the episode table.
pub(crate) fn write_episodes(spec: &Spec, root: &Path) {
    let all = episode_columns(spec);
    for (file, episodes) in spec
        .episode_files
        .files(spec.episode_lengths.len())
        .into_iter()
        .enumerate()
    {
        let (chunk, file) = chunk_and_file(file, spec.chunks_size);
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        for (name, column) in &all {
            columns.push((
                (spec.episode_column)(name),
                column.slice(episodes.start, episodes.len()),
            ));
        }
        for (name, value) in [
            ("meta/episodes/chunk_index", chunk),
            ("meta/episodes/file_index", file),
        ] {
            columns.push((
                (spec.episode_column)(name),
                integers(episodes.clone().map(|_| value)),
            ));
        }
        let path = root.join(format!(
            "meta/episodes/chunk-{chunk:03}/file-{file:03}.parquet"
        ));
        table::write(&path, columns, &[episodes.len()], spec.parquet);
    }
}

/// The columns of the episode table, a row for each episode.
fn episode_columns(spec: &Spec) -> Vec<(String, ArrayRef)> {
    let lengths = &spec.episode_lengths;
    let ends: Vec<usize> = lengths
        .iter()
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .collect();
    let data_files = spec.data_files.files(lengths.len()).into_iter().enumerate();
    let data_files: Vec<(usize, usize)> = data_files
        .flat_map(|(file, episodes)| episodes.map(move |_| chunk_and_file(file, spec.chunks_size)))
        .collect();

    let mut columns = vec![
        ("episode_index".to_owned(), integers(0..lengths.len())),
        ("tasks".to_owned(), columns::string_lists(&task_texts(spec))),
        ("length".to_owned(), integers(lengths.iter().copied())),
        (
            "data/chunk_index".to_owned(),
            integers(data_files.iter().map(|&(chunk, _)| chunk)),
        ),
        (
            "data/file_index".to_owned(),
            integers(data_files.iter().map(|&(_, file)| file)),
        ),
        (
            "dataset_from_index".to_owned(),
            integers(ends.iter().zip(lengths).map(|(end, length)| end - length)),
        ),
        (
            "dataset_to_index".to_owned(),
            integers(ends.iter().copied()),
        ),
    ];
    for (position, camera) in spec.cameras.iter().enumerate() {
        if camera.kind != CameraKind::Video {
            continue;
        }
        let segments = spec.segments(position);
        let places = segments
            .iter()
            .map(|segment| chunk_and_file(segment.file, spec.chunks_size));
        let from_s = camera.start_times_s(&segments, spec.fps);
        let to_s = |frames_to_end: usize| {
            from_s
                .iter()
                .zip(lengths)
                .map(|(from_s, length)| from_s + spec.fps.seconds(length - frames_to_end))
                .collect()
        };
        let to_s: Option<Vec<f64>> = match camera.to_timestamp {
            ToTimestamp::End => Some(to_s(0)),
            ToTimestamp::LastFrame => Some(to_s(1)),
            ToTimestamp::Missing => None,
        };
        let name = |column: &str| format!("videos/{}/{column}", camera.key);
        columns.push((
            name("chunk_index"),
            integers(places.clone().map(|(chunk, _)| chunk)),
        ));
        columns.push((name("file_index"), integers(places.map(|(_, file)| file))));
        columns.push((name("from_timestamp"), Arc::new(Float64Array::from(from_s))));
        columns.extend(to_s.map(|to_s| {
            (
                name("to_timestamp"),
                Arc::new(Float64Array::from(to_s)) as ArrayRef,
            )
        }));
    }
    columns
}

/// The texts of each episode's tasks, each once; a task_index that the task table lacks has none.
fn task_texts(spec: &Spec) -> Vec<Vec<&str>> {
    let mut texts: Vec<Vec<&str>> = vec![Vec::new(); spec.episode_lengths.len()];
    for Row {
        episode_index,
        task_index,
        ..
    } in spec.rows()
    {
        let text = spec
            .tasks
            .rows
            .iter()
            .find(|(index, _)| *index == task_index)
            .map(|(_, text)| text.as_str());
        let known = &mut texts[episode_index];
        known.extend(text.filter(|text| !known.contains(text)));
    }
    texts
}

/// Writes the task table.
pub(crate) fn write_tasks(spec: &Spec, root: &Path) {
    let tasks = &spec.tasks;
    let indices: ArrayRef = Arc::new(Int64Array::from_iter_values(
        tasks.rows.iter().map(|(index, _)| *index),
    ));
    let texts: Vec<&str> = tasks.rows.iter().map(|(_, text)| text.as_str()).collect();
    let columns = vec![
        ("task_index".to_owned(), indices),
        (tasks.column.clone(), table::text(&texts, tasks.text)),
    ];
    table::write(
        &root.join("meta/tasks.parquet"),
        columns,
        &[tasks.rows.len()],
        spec.parquet,
    );
}

fn integers(values: impl Iterator<Item = usize>) -> ArrayRef {
    let value = |value| i64::try_from(value).expect("a test's numbers are small");
    Arc::new(Int64Array::from_iter_values(values.map(value)))
}
