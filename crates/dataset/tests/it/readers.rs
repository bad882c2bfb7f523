//! The two readers against each other: a second opinion on every value.

use std::sync::Arc;

use arrow_array::BooleanArray;
use dataset::{Error, Metadata, Reader};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use testkit::FIXTURES;

use crate::memory::Memory;
use crate::small::{Small, fixed_lists, floats, strings};

/// Checks that both readers see the same metadata and rows; returns the number of rows.
fn check(storage: &Memory, name: &str) -> usize {
    let [first, second] = [Reader::Parquet, Reader::Arrow2]
        .map(|reader| Metadata::read_with(storage, reader).unwrap());
    assert_eq!(first.episodes(), second.episodes(), "{name}");
    assert_eq!(first.tasks(), second.tasks(), "{name}");
    assert_eq!(first.data_files(), second.data_files(), "{name}");
    let mut num_rows = 0;
    for file in 0..first.data_files().len() {
        let mut files =
            [&first, &second].map(|metadata| metadata.open_data_file(storage, file).unwrap());
        for episode in first
            .episodes()
            .iter()
            .filter(|episode| episode.data_file() == file)
        {
            let [a, b] = files
                .each_mut()
                .map(|file| file.read_episode(episode).unwrap());
            assert_eq!(a, b, "{name}, episode {}", episode.episode_index());
            num_rows += a.len();
        }
    }
    num_rows
}

#[test]
fn both_readers_agree_on_every_fixture() {
    let rows: usize = FIXTURES
        .iter()
        .map(|name| check(&Memory::fixture(name), name))
        .sum();
    assert_eq!(rows, 296 + 867 + 462 + 128 + 22 + 1461);
}

#[test]
fn both_readers_agree_on_every_compression_and_shape() {
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for compression in compressions {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let matrix = fixed_lists(
                fixed_lists(floats((0..360).map(|value| value as f32)), 3),
                2,
            );
            let mut small = Small::new(&[20, 30, 10])
                .with_feature("matrix", "float32", &[2, 3], matrix)
                .with_feature("phase", "string", &[1], strings(&["reach"; 60]));
            small.data_properties = WriterProperties::builder()
                .set_compression(compression)
                .set_writer_version(version)
                .set_dictionary_enabled(version == WriterVersion::PARQUET_1_0)
                // Otherwise the writer uses an encoding that the second reader lacks.
                .set_column_dictionary_enabled("phase".into(), true)
                .set_max_row_group_row_count(Some(25))
                .build();
            assert_eq!(
                check(&small.storage(), &format!("{compression:?} {version:?}")),
                60
            );
        }
    }
}

#[test]
fn what_only_the_default_reader_decodes_is_an_error_that_names_the_column() {
    let done = Arc::new(BooleanArray::from(vec![true, false, true, true]));
    let mut small = Small::new(&[4]).with_feature("done", "bool", &[1], done);
    small.data_properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .build();
    let storage = small.storage();
    let metadata = Metadata::read_with(&storage, Reader::Arrow2).unwrap();
    let mut file = metadata.open_data_file(&storage, 0).unwrap();
    let error = file.read_episode(&metadata.episodes()[0]).unwrap_err();
    assert!(
        matches!(&error, Error::Unsupported { column, reader: Reader::Arrow2, .. } if column == "done"),
        "{error}"
    );
    small.rows(0).unwrap();
}
