//! A dataset written to a temporary folder.

use std::path::{Path, PathBuf};

use arrow_array::ArrayRef;
use serde_json::Value;
use tempfile::TempDir;

use crate::camera::{Camera, CameraKind};
use crate::layout::{self, Row, chunk_and_file};
use crate::spec::{RowGroups, Spec};
use crate::video::{self, VideoOptions};
use crate::{columns, meta, picture, table};

/// A dataset in a temporary folder.
#[derive(Debug)]
#[must_use = "dropping the dataset deletes its folder"]
pub struct Dataset {
    folder: TempDir,
    spec: Spec,
}

impl Spec {
    /// Writes the dataset. The same spec gives the same bytes, but for what the version of FFmpeg changes.
    ///
    /// # Panics
    ///
    /// If the spec contradicts itself, a file cannot be written, or there are videos to make and the program `ffmpeg` is
    /// missing or refuses.
    pub fn write(self) -> Dataset {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let dataset = Dataset { folder, spec: self };
        dataset.write_data();
        for (position, camera) in dataset.spec.cameras.iter().enumerate() {
            if camera.kind == CameraKind::Video {
                dataset.write_videos(camera, position);
            }
        }
        meta::write_episodes(&dataset.spec, dataset.root());
        meta::write_tasks(&dataset.spec, dataset.root());
        write_text(
            &dataset.root().join("meta/info.json"),
            &meta::info(&dataset.spec),
        );
        dataset
    }
}

impl Dataset {
    /// The dataset's root.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// What it was written from.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The path of the data file with ordinal `file`.
    pub fn data_file(&self, file: usize) -> PathBuf {
        let (chunk, file) = chunk_and_file(file, self.spec.chunks_size);
        let path = layout::path(
            &self.spec.data_path,
            &[("chunk_index", &chunk), ("file_index", &file)],
        );
        self.root().join(path)
    }

    /// The path of the video file with ordinal `file` of the camera named `key`.
    pub fn video_file(&self, key: &str, file: usize) -> PathBuf {
        let (chunk, file) = chunk_and_file(file, self.spec.chunks_size);
        let values: [(&str, &dyn std::fmt::Display); 3] = [
            ("video_key", &key),
            ("chunk_index", &chunk),
            ("file_index", &file),
        ];
        self.root()
            .join(layout::path(&self.spec.video_path, &values))
    }

    /// Changes info.json. The members of its objects come out sorted by name.
    ///
    /// # Panics
    ///
    /// If it cannot be read or written.
    pub fn edit_info(&self, edit: impl FnOnce(&mut Value)) {
        let path = self.root().join("meta/info.json");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
        let mut info = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("parse {}: {error}", path.display()));
        edit(&mut info);
        write_text(&path, &format!("{info:#}"));
    }

    fn write_data(&self) {
        let spec = &self.spec;
        let rows: Vec<Row> = spec.rows().collect();
        let mut start = 0;
        for (file, episodes) in spec
            .data_files
            .files(spec.episode_lengths.len())
            .into_iter()
            .enumerate()
        {
            let lengths = &spec.episode_lengths[episodes];
            let len = lengths.iter().sum();
            let row_groups = match spec.row_groups {
                RowGroups::PerEpisode => lengths.to_vec(),
                RowGroups::Rows(rows) => (0..len)
                    .step_by(rows)
                    .map(|first| rows.min(len - first))
                    .collect(),
            };
            let columns = self.data_columns(&rows[start..start + len]);
            table::write(&self.data_file(file), columns, &row_groups, spec.parquet);
            start += len;
        }
    }

    fn data_columns(&self, rows: &[Row]) -> Vec<(String, ArrayRef)> {
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        for feature in &self.spec.features {
            columns.push((feature.key.clone(), columns::feature(feature, rows)));
        }
        for (position, camera) in self.spec.cameras.iter().enumerate() {
            if camera.kind == CameraKind::Image {
                let png = |row: &Row| {
                    let pixels = camera.picture(row.episode_index, row.frame_index, position);
                    picture::png(&pixels, camera.height, camera.width)
                };
                let files: Vec<Vec<u8>> = rows.iter().map(png).collect();
                let paths: Vec<String> = rows
                    .iter()
                    .map(|row| format!("frame-{:06}.png", row.frame_index))
                    .collect();
                columns.push((camera.key.clone(), columns::images(&files, &paths)));
            }
        }
        columns
    }

    fn write_videos(&self, camera: &Camera, position: usize) {
        let options = VideoOptions {
            height: camera.height,
            width: camera.width,
            fps: self.spec.fps,
            raw_format: camera.raw_format.clone(),
            encoder: camera.encoder.clone(),
        };
        for segments in self
            .spec
            .segments(position)
            .chunk_by(|a, b| a.file == b.file)
        {
            let path = self.video_file(&camera.key, segments[0].file);
            let folder = path.parent().expect("a video lies in a folder");
            std::fs::create_dir_all(folder)
                .unwrap_or_else(|error| panic!("make {}: {error}", folder.display()));
            let frames = segments.iter().flat_map(|segment| {
                (0..segment.length)
                    .map(|frame| camera.picture(segment.episode_index, frame, position))
            });
            video::encode(&path, &options, frames);
        }
    }
}

fn write_text(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
}
