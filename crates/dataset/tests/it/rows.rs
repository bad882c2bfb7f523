//! Rows: which ones, of which episode, and how little is read for them.

use dataset::{DataFile, Error, Metadata, Values};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::small::{DATA, Small, drop_column, ints, parquet, read_rows, slice};

/// The first elements of the `state` of each row: the numbers of the rows.
fn states(small: &Small, episode_index: usize) -> Vec<f32> {
    let rows = small.rows(episode_index).unwrap();
    let Values::F32(values) = rows.column("state").unwrap().values() else {
        panic!("state is a float32");
    };
    values.iter().step_by(2).copied().collect()
}

fn numbers(start: usize, len: usize) -> Vec<f32> {
    (start..start + len).map(|row| row as f32).collect()
}

#[test]
fn every_episode_has_its_own_rows_in_any_order_of_asking() {
    let lengths = [3, 7, 2, 9, 4, 5];
    let small = Small::new(&lengths);
    for (episode, start, len) in [
        (4, 21, 4),
        (1, 3, 7),
        (3, 12, 9),
        (0, 0, 3),
        (5, 25, 5),
        (2, 10, 2),
    ] {
        assert_eq!(
            states(&small, episode),
            numbers(start, len),
            "episode {episode}"
        );
    }
    let storage = small.storage();
    let metadata = Metadata::read(&storage).unwrap();
    let mut file = metadata.open_data_file(&storage, 0).unwrap();
    for episode in [4, 1, 3, 1] {
        let rows = file
            .read_episode(metadata.episode(episode).unwrap())
            .unwrap();
        assert_eq!(rows.episode_index(), episode);
        assert_eq!(rows.len() as i64, lengths[episode]);
        assert_eq!(
            rows.column("episode_index").unwrap().values(),
            &Values::I64(vec![episode as i64; rows.len()])
        );
    }
}

#[test]
fn rows_are_found_whatever_the_row_groups() {
    let lengths = [3, 7, 2, 9, 4, 5];
    for rows_per_group in [1, 2, 3, 4, 10, 30, 100] {
        let mut small = Small::new(&lengths);
        small.data_properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(rows_per_group))
            .build();
        let mut start = 0;
        for (episode, len) in lengths.iter().enumerate() {
            assert_eq!(
                states(&small, episode),
                numbers(start, *len as usize),
                "{rows_per_group}, {episode}"
            );
            start += *len as usize;
        }
    }
}

#[test]
fn episodes_of_later_files_are_counted_from_their_files_first_row() {
    let small = Small::new(&[3, 5, 2, 4]).with_episodes("data/file_index", ints([0, 0, 1, 2]));
    let mut storage = small.storage();
    for (file, start, len) in [(0, 0, 8), (1, 8, 2), (2, 10, 4)] {
        let path = format!("data/chunk-000/file-{file:03}.parquet");
        storage.insert(&path, parquet(&slice(&small.data, start, len)));
    }
    for (episode, start, len) in [(0, 0, 3), (1, 3, 5), (2, 8, 2), (3, 10, 4)] {
        let rows = read_rows(&storage, episode).unwrap();
        let expected = (start..start + len).collect();
        assert_eq!(
            rows.column("index").unwrap().values(),
            &Values::I64(expected),
            "episode {episode}"
        );
    }
}

#[test]
fn an_episode_costs_its_own_row_groups_only() {
    let mut small = Small::new(&[50; 40]);
    small.data_properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(50))
        .set_dictionary_enabled(false)
        .build();
    let storage = small.storage();
    let metadata = Metadata::read(&storage).unwrap();
    let mut file = metadata.open_data_file(&storage, 0).unwrap();
    storage.take_bytes_read();
    file.read_episode(metadata.episode(1).unwrap()).unwrap();
    let read = storage.take_bytes_read();
    let size = storage.get(DATA).len();
    assert!(read < size / 20, "{read} of {size} bytes were read");
}

#[test]
fn an_episode_in_a_large_row_group_costs_its_pages_only() {
    let mut small = Small::new(&[100; 200]);
    small.data_properties = WriterProperties::builder()
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(100)
        .set_dictionary_enabled(false)
        .build();
    let storage = small.storage();
    let metadata = Metadata::read(&storage).unwrap();
    let mut file = metadata.open_data_file(&storage, 0).unwrap();
    storage.take_bytes_read();
    let rows = file.read_episode(metadata.episode(150).unwrap()).unwrap();
    let read = storage.take_bytes_read();
    let size = storage.get(DATA).len();
    assert!(read < size / 20, "{read} of {size} bytes were read");
    assert_eq!(
        rows.column("index").unwrap().values(),
        &Values::I64((15_000..15_100).collect())
    );
}

#[test]
fn every_compression_and_page_version_is_read() {
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for compression in compressions {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [true, false] {
                let done = std::sync::Arc::new(arrow_array::BooleanArray::from(
                    (0..60).map(|row| row % 3 == 0).collect::<Vec<_>>(),
                ));
                let mut small = Small::new(&[20, 30, 10]).with_feature("done", "bool", &[1], done);
                small.data_properties = WriterProperties::builder()
                    .set_compression(compression)
                    .set_writer_version(version)
                    .set_dictionary_enabled(dictionary)
                    .set_max_row_group_row_count(Some(25))
                    .build();
                assert_eq!(
                    states(&small, 1),
                    numbers(20, 30),
                    "{compression:?} {version:?} {dictionary}"
                );
                let expected = (20..50).map(|row| row % 3 == 0).collect();
                let rows = small.rows(1).unwrap();
                assert_eq!(
                    rows.column("done").unwrap().values(),
                    &Values::Bool(expected)
                );
            }
        }
    }
}

#[test]
fn rows_that_are_not_the_episodes_own_are_refused() {
    for (column, values, row, expected) in [
        ("episode_index", [0, 0, 0, 1, 1, 2, 2, 2, 2, 2], 5, 1),
        ("frame_index", [0, 1, 2, 1, 2, 3, 4, 5, 0, 1], 3, 0),
        ("index", [0, 1, 2, 3, 5, 4, 6, 7, 8, 9], 4, 4),
    ] {
        let small = Small::default().with_data(column, ints(values));
        small.rows(0).unwrap();
        let error = small.rows(1).unwrap_err();
        let Error::ForeignRow {
            path,
            row: found,
            episode_index: 1,
            column: named,
            expected: wanted,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (path.as_str(), *named, *found, *wanted),
            (DATA, column, row, expected)
        );
        // Whether the column is declared as a feature or not.
        let mut small = small;
        small.info["features"]
            .as_object_mut()
            .unwrap()
            .remove(column)
            .unwrap();
        assert!(matches!(small.rows(1), Err(Error::ForeignRow { .. })));
        assert!(small.rows(0).unwrap().column(column).is_none());
        // What is not there cannot contradict.
        drop_column(&mut small.data, column);
        small.rows(1).unwrap();
    }
}

#[test]
fn a_data_file_with_more_or_fewer_rows_than_its_episodes_is_refused() {
    for len in [9, 11] {
        let small = Small::new(&[3, 5, 2]);
        let mut storage = small.storage();
        let rows = Small::new(&[3, 5, 3]).data;
        storage.insert(DATA, parquet(&slice(&rows, 0, len)));
        let metadata = Metadata::read(&storage).unwrap();
        let error = metadata.open_data_file(&storage, 0).unwrap_err();
        assert!(
            matches!(&error, Error::RowCount { path, found, expected: 10, num_episodes: 3 } if path == DATA && *found == len),
            "{error}"
        );
    }
}

#[test]
fn a_data_file_is_asked_for_its_own_episodes_only() {
    let small = Small::new(&[3, 5]).with_episodes("data/file_index", ints([0, 1]));
    let mut storage = small.storage();
    storage.insert(DATA, parquet(&slice(&small.data, 0, 3)));
    let metadata = Metadata::read(&storage).unwrap();
    let mut file = metadata.open_data_file(&storage, 0).unwrap();
    assert_eq!(file.path(), DATA);
    let error = file.read_episode(metadata.episode(1).unwrap()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NotItsDataFile {
                episode_index: Some(1),
                ..
            }
        ),
        "{error}"
    );
    let reader = dataset::Storage::open(&storage, DATA).unwrap();
    let error = DataFile::open(reader, "data/other.parquet", &metadata).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NotItsDataFile {
                episode_index: None,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_feature_without_a_column_and_a_column_without_a_feature() {
    let mut small =
        Small::default().with_feature("extra", "float32", &[1], crate::small::floats([0.5; 10]));
    small.info["features"]
        .as_object_mut()
        .unwrap()
        .remove("extra")
        .unwrap();
    assert!(
        small.rows(0).unwrap().column("extra").is_none(),
        "an undeclared column is dropped"
    );
    small.info["features"]["other"] = serde_json::json!({"dtype": "float32", "shape": [3]});
    let error = small.rows(0).unwrap_err();
    assert!(
        matches!(&error, Error::MissingColumn { path, column, .. } if path == DATA && column == "other"),
        "{error}"
    );
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let mut small = Small::default();
    let column = small.data[0].clone();
    small.data.push(column);
    let error = small.rows(0).unwrap_err();
    assert!(
        matches!(&error, Error::DuplicateColumn { column, .. } if column == "state"),
        "{error}"
    );
}

#[test]
fn handles_may_be_sent_to_other_threads() {
    fn send<T: Send>() {}
    fn send_sync<T: Send + Sync>() {}
    send::<DataFile>();
    send_sync::<Metadata>();
    send_sync::<dataset::EpisodeRows>();
    send_sync::<Error>();
}
