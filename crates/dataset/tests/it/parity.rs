//! The bundled datasets, against what lerobot's own reader returned for them.

use dataset::{Column, Metadata, Values};
use serde_json::Value;
use testkit::{FIXTURES, Truth};

use crate::memory::Memory;

#[test]
fn every_plain_item_of_the_truth_is_read_exactly() {
    for name in FIXTURES {
        let storage = Memory::fixture(name);
        let metadata = Metadata::read(&storage).unwrap();
        let truth = Truth::read(name);
        assert_eq!(metadata.info().fps(), truth.fps, "{name}");
        for item in &truth.plain {
            let (episode_index, frame_index) = metadata.locate(item.dataset_index).unwrap();
            let episode = metadata.episode(episode_index).unwrap();
            let mut file = metadata
                .open_data_file(&storage, episode.data_file())
                .unwrap();
            let rows = file.read_episode(episode).unwrap();
            let mut compared = 0;
            for (key, expected) in &item.item {
                if key == "task" {
                    let Values::I64(tasks) = rows.column("task_index").unwrap().values() else {
                        panic!("{name}: task_index is an int64");
                    };
                    assert_eq!(
                        metadata.tasks().get(tasks[frame_index]),
                        expected.as_str(),
                        "{name}"
                    );
                    continue;
                }
                let column = rows
                    .column(key)
                    .unwrap_or_else(|| panic!("{name} has no column {key}"));
                assert_eq!(
                    row(column, frame_index),
                    *expected,
                    "{name}, item {}, {key}",
                    item.dataset_index
                );
                compared += 1;
            }
            let tabular = rows
                .columns()
                .iter()
                .filter(|column| !matches!(column.values(), Values::Bytes(_)));
            assert_eq!(
                compared,
                tabular.count(),
                "{name}: every column is in the truth"
            );
        }
    }
}

/// One row of a column, nested as its shape has it.
fn row(column: &Column, row: usize) -> Value {
    let width: usize = column.shape().iter().product();
    let mut elements =
        (row * width..(row + 1) * width).map(|position| element(column.values(), position));
    nested(column.shape(), &mut elements)
}

fn nested(shape: &[usize], elements: &mut impl Iterator<Item = Value>) -> Value {
    match shape {
        [] => elements.next().unwrap(),
        [axis, inner @ ..] => (0..*axis).map(|_| nested(inner, elements)).collect(),
    }
}

fn element(values: &Values, position: usize) -> Value {
    match values {
        Values::F32(values) => f64::from(values[position]).into(),
        // lerobot turns every float into one of single precision; the column keeps what is stored.
        Values::F64(values) => f64::from(values[position] as f32).into(),
        Values::I64(values) => values[position].into(),
        Values::Bool(values) => values[position].into(),
        Values::Str(values) => values.get(position).unwrap().into(),
        other => panic!("no fixture has {other:?}"),
    }
}

#[test]
fn the_metadata_of_the_fixtures_is_whole_and_unremarkable() {
    for (name, episodes, frames, files, cameras) in [
        ("pusht_like", 12, 296, 1, &["observation.image"] as &[&str]),
        (
            "aloha_like",
            10,
            867,
            7,
            &[
                "observation.images.top",
                "observation.images.left_wrist",
                "observation.images.right_wrist",
            ],
        ),
        (
            "h264_gop30",
            6,
            462,
            1,
            &["observation.images.front", "observation.images.wrist"],
        ),
        ("hevc_small", 4, 128, 1, &["observation.images.front"]),
        ("image_only", 3, 22, 1, &["observation.image"]),
        ("no_camera", 30, 1461, 1, &[]),
    ] {
        let metadata = Metadata::read(&Memory::fixture(name)).unwrap();
        assert_eq!(metadata.episodes().len(), episodes, "{name}");
        assert_eq!(metadata.total_frames(), frames, "{name}");
        assert_eq!(metadata.data_files().len(), files, "{name}");
        assert_eq!(
            metadata.info().camera_keys().collect::<Vec<_>>(),
            cameras,
            "{name}"
        );
        assert_eq!(metadata.warnings(), [], "{name}");
        assert!(
            metadata
                .stats()
                .is_some_and(|stats| stats.mean("action").is_some()),
            "{name}"
        );
        assert_eq!(metadata.locate(frames), None, "{name}");
        for episode in metadata.episodes() {
            let last = episode.from_index() + episode.length() - 1;
            assert_eq!(
                metadata.locate(last),
                Some((episode.episode_index(), episode.length() - 1)),
                "{name}"
            );
            assert_eq!(episode.tasks().count(), 1, "{name}");
        }
    }
}

#[test]
fn pictures_in_the_rows_come_as_the_bytes_of_their_files() {
    let storage = Memory::fixture("image_only");
    let metadata = Metadata::read(&storage).unwrap();
    for episode in metadata.episodes() {
        let rows = metadata
            .open_data_file(&storage, 0)
            .unwrap()
            .read_episode(episode)
            .unwrap();
        let column = rows.column("observation.image").unwrap();
        assert_eq!(column.shape(), &[] as &[usize]);
        let Values::Bytes(pictures) = column.values() else {
            panic!("an image feature holds bytes");
        };
        assert_eq!(pictures.len(), episode.length());
        for picture in pictures.iter() {
            assert!(picture.starts_with(b"\x89PNG\r\n"));
        }
    }
}

#[test]
fn the_texts_of_info_and_stats_are_at_hand() {
    let metadata = Metadata::read(&Memory::fixture("image_only")).unwrap();
    let info: Value = serde_json::from_str(metadata.info().json()).unwrap();
    assert_eq!(info["codebase_version"], metadata.info().codebase_version());
    let stats = metadata.stats().unwrap();
    let nested: Value = serde_json::from_str(stats.json()).unwrap();
    let camera = metadata.info().camera_keys().next().unwrap();
    // A camera's means are [C, 1, 1] in the file.
    assert_eq!(
        nested[camera]["mean"][2][0][0].as_f64(),
        stats.mean(camera).map(|mean| mean[2])
    );
}
