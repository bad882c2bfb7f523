//! The episode table: spellings, types, contradictions.

use dataset::{Error, Metadata, Warning};

use crate::small::{
    EPISODES, Small, doubles, drop_column, ints, parquet, parquet_with, rename, set, slice, strings,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int32Array, Int64Array};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// Length and global start of each episode.
fn spans(metadata: &Metadata) -> Vec<(usize, usize, usize)> {
    metadata
        .episodes()
        .iter()
        .map(|episode| {
            (
                episode.episode_index(),
                episode.from_index(),
                episode.length(),
            )
        })
        .collect()
}

const EXPECTED: [(usize, usize, usize); 3] = [(0, 0, 3), (1, 3, 5), (2, 8, 2)];

#[test]
fn both_spellings_of_the_data_columns_are_read() {
    let mut small = Small::default();
    rename(&mut small.episodes, "data/chunk_index", "data_chunk_index");
    rename(&mut small.episodes, "data/file_index", "data_file_index");
    assert_eq!(spans(&small.metadata().unwrap()), EXPECTED);
    assert_eq!(small.rows(2).unwrap().len(), 2);
}

#[test]
fn whole_numbers_may_be_stored_as_any_type() {
    let mut small = Small::default();
    for (name, values) in &mut small.episodes {
        if values.data_type().is_integer() {
            let ints = values.as_primitive::<Int64Type>().values().to_vec();
            *values = match name.as_str() {
                "length" => Arc::new(Int32Array::from_iter_values(
                    ints.iter().map(|value| *value as i32),
                )),
                _ => doubles(ints.iter().map(|value| *value as f64)),
            };
        }
    }
    assert_eq!(spans(&small.metadata().unwrap()), EXPECTED);
}

#[test]
fn the_tasks_column_may_be_missing_or_plain_text() {
    let mut small = Small::default();
    let metadata = small.metadata().unwrap();
    assert_eq!(metadata.episodes()[0].tasks().collect::<Vec<_>>(), ["push"]);
    set(&mut small.episodes, "tasks", strings(&["a", "", "c"]));
    let metadata = small.metadata().unwrap();
    let tasks: Vec<Vec<&str>> = metadata
        .episodes()
        .iter()
        .map(|episode| episode.tasks().collect())
        .collect();
    assert_eq!(tasks, [vec!["a"], vec![], vec!["c"]]);
    drop_column(&mut small.episodes, "tasks");
    assert_eq!(small.metadata().unwrap().episodes()[0].tasks().count(), 0);
}

#[test]
fn statistics_are_not_read_though_they_are_most_of_the_bytes() {
    let small = Small::new(&[1; 400]);
    let storage = small.storage();
    let size = storage.get(EPISODES).len();
    let mut bare = small.clone();
    drop_column(&mut bare.episodes, "stats/state/mean");
    // Random numbers do not compress.
    let mut noisy = small.clone();
    let mut state = 1_u32;
    let noise = (0..400).map(|_| {
        (0..1000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state as f32
            })
            .collect()
    });
    set(
        &mut noisy.episodes,
        "stats/state/mean",
        crate::small::lists(noise),
    );
    let storage = noisy.storage();
    assert!(storage.get(EPISODES).len() > 1_000_000, "{size}");
    Metadata::read(&storage).unwrap();
    let read = storage.take_bytes_read();
    assert!(read < 100_000, "{read} bytes were read");
}

#[test]
fn many_files_with_many_row_groups_are_one_table() {
    let small = Small::new(&[1, 2, 3, 4, 5, 6, 7]);
    let mut storage = small.storage();
    storage.remove(EPISODES);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1))
        .build();
    // Not in the order of their names.
    for (path, start, len) in [
        ("meta/episodes/chunk-000/file-000.parquet", 4, 3),
        ("meta/episodes/chunk-000/file-001.parquet", 0, 1),
        ("meta/episodes/chunk-001/file-000.parquet", 1, 3),
    ] {
        storage.insert(
            path,
            parquet_with(&slice(&small.episodes, start, len), properties.clone()),
        );
    }
    // Left by macOS beside a copied file, and by others.
    storage.insert(
        "meta/episodes/chunk-000/._file-000.parquet",
        *b"\0\x05\x16\x07",
    );
    storage.insert("meta/episodes/chunk-000/README.md", *b"episodes");
    let metadata = Metadata::read(&storage).unwrap();
    assert_eq!(metadata.warnings(), []);
    assert_eq!(
        spans(&metadata),
        [
            (0, 0, 1),
            (1, 1, 2),
            (2, 3, 3),
            (3, 6, 4),
            (4, 10, 5),
            (5, 15, 6),
            (6, 21, 7)
        ]
    );
}

#[test]
fn a_table_that_is_there_twice_counts_once() {
    let small = Small::default();
    let mut storage = small.storage();
    storage.insert(
        "meta/episodes/chunk-000/file-000 (1).parquet",
        parquet(&small.episodes),
    );
    let metadata = Metadata::read(&storage).unwrap();
    assert_eq!(spans(&metadata), EXPECTED);
    let warning = Warning::DuplicateEpisodes {
        path: EPISODES.to_owned(),
        episode_index: 0,
        count: 3,
    };
    assert_eq!(metadata.warnings(), [warning]);
}

#[test]
fn two_tables_that_contradict_each_other_are_refused() {
    let small = Small::default();
    let mut storage = small.storage();
    let mut other = slice(&small.episodes, 2, 1);
    set(&mut other, "length", ints([3]));
    set(&mut other, "dataset_to_index", ints([11]));
    storage.insert("meta/episodes/chunk-000/file-001.parquet", parquet(&other));
    let error = Metadata::read(&storage).unwrap_err();
    let Error::Episode {
        path,
        episode_index: 2,
        field,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (path.as_str(), field.as_str()),
        ("meta/episodes/chunk-000/file-001.parquet", "length")
    );
    assert!(error.to_string().contains(EPISODES), "{error}");
}

#[test]
fn an_episode_keeps_its_number_whatever_its_place() {
    let small = Small::default()
        .with_episodes("episode_index", ints([40, 7, 12]))
        .with_data("episode_index", ints([40, 40, 40, 7, 7, 7, 7, 7, 12, 12]));
    let metadata = small.metadata().unwrap();
    assert_eq!(spans(&metadata), [(40, 0, 3), (7, 3, 5), (12, 8, 2)]);
    assert_eq!(metadata.episode(7).unwrap().from_index(), 3);
    assert!(metadata.episode(0).is_none());
    assert_eq!(metadata.locate(9), Some((12, 1)));
    assert_eq!(small.rows(7).unwrap().len(), 5);
}

#[test]
fn every_contradiction_names_file_episode_and_field() {
    for (column, values, episode, field) in [
        ("length", [3, 4, 2], 1, "dataset_to_index"),
        ("length", [3, 0, 2], 1, "length"),
        ("length", [3, 5, i64::MAX], 2, "dataset_to_index"),
        ("dataset_to_index", [3, 9, 10], 1, "dataset_to_index"),
    ] {
        let error = Small::default()
            .with_episodes(column, ints(values))
            .metadata()
            .unwrap_err();
        let Error::Episode {
            path,
            episode_index,
            field: found,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (path.as_str(), *episode_index, found.as_str()),
            (EPISODES, episode, field),
            "{error}"
        );
    }
    for (from, to, episode) in [
        ([0, 4, 9], [3, 9, 11], 1),
        ([0, 2, 7], [3, 7, 9], 1),
        ([5, 8, 13], [8, 13, 15], 0),
    ] {
        let small = Small::default()
            .with_episodes("dataset_from_index", ints(from))
            .with_episodes("dataset_to_index", ints(to));
        let error = small.metadata().unwrap_err();
        let Error::Episode {
            episode_index,
            field,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (*episode_index, field.as_str()),
            (episode, "dataset_from_index"),
            "{error}"
        );
    }
}

#[test]
fn a_data_file_holds_episodes_that_follow_one_another() {
    let error = Small::default()
        .with_episodes("data/file_index", ints([0, 1, 0]))
        .metadata()
        .unwrap_err();
    let Error::Episode {
        episode_index: 2,
        field,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(field, "data/file_index");
}

#[test]
fn a_value_that_is_no_index_names_file_column_and_row() {
    let null: arrow_array::ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(2)]));
    for (values, found) in [
        (doubles([3.0, 2.5, 2.0]), "2.5"),
        (doubles([3.0, f64::NAN, 2.0]), "NaN"),
        (doubles([3.0, 1e300, 2.0]), "1"),
        (ints([3, -5, 2]), "-5"),
        (null, "null"),
    ] {
        let error = Small::default()
            .with_episodes("length", values)
            .metadata()
            .unwrap_err();
        let Error::Value {
            path,
            column,
            row: 1,
            found: shown,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((path.as_str(), column.as_str()), (EPISODES, "length"));
        assert!(shown.starts_with(found), "{error}");
    }
    let error = Small::default()
        .with_episodes("length", strings(&["3", "5", "2"]))
        .metadata()
        .unwrap_err();
    assert!(matches!(error, Error::Type { .. }), "{error}");
}

#[test]
fn a_missing_column_is_named() {
    for column in [
        "episode_index",
        "length",
        "dataset_from_index",
        "dataset_to_index",
        "data/chunk_index",
        "data/file_index",
    ] {
        let mut small = Small::default();
        drop_column(&mut small.episodes, column);
        let error = small.metadata().unwrap_err();
        let Error::MissingColumn {
            path,
            column: found,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((path.as_str(), found.as_str()), (EPISODES, column));
    }
}

#[test]
fn no_table_and_an_empty_one_are_errors_of_their_own() {
    let small = Small::default();
    let mut storage = small.storage();
    storage.remove(EPISODES);
    let error = Metadata::read(&storage).unwrap_err();
    assert!(error.is_missing_file(), "{error}");
    storage.insert(EPISODES, parquet(&slice(&small.episodes, 0, 0)));
    let error = Metadata::read(&storage).unwrap_err();
    assert!(matches!(error, Error::NoEpisodes), "{error}");
}
