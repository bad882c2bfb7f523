//! Tables as parquet files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, LargeStringArray, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{self, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

/// How parquet files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParquetOptions {
    /// How pages are compressed; default snappy.
    pub compression: Compression,
    /// The form of data pages; default v1, as pyarrow writes.
    pub pages: PageVersion,
    /// The most rows in a data page (of lists, a few more are possible); default as many as fit.
    pub rows_per_page: Option<usize>,
    /// Whether repeated values are stored once, in a dictionary page; default true.
    pub dictionary: bool,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            compression: Compression::Snappy,
            pages: PageVersion::V1,
            rows_per_page: None,
            dictionary: true,
        }
    }
}

/// How pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Compression {
    None,
    Snappy,
    Gzip,
    Zstd,
}

/// The form of data pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum PageVersion {
    V1,
    V2,
}

/// The Arrow type of a text column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextType {
    /// 32-bit offsets.
    Utf8,
    /// 64-bit offsets, as pandas 3 writes.
    LargeUtf8,
    /// Codes and a dictionary, as pandas writes a categorical column.
    Dictionary,
}

/// A text column.
pub(crate) fn text(texts: &[&str], kind: TextType) -> ArrayRef {
    match kind {
        TextType::Utf8 => Arc::new(StringArray::from_iter_values(texts)),
        TextType::LargeUtf8 => Arc::new(LargeStringArray::from_iter_values(texts)),
        TextType::Dictionary => Arc::new(
            texts
                .iter()
                .copied()
                .collect::<DictionaryArray<Int32Type>>(),
        ),
    }
}

/// Writes named columns to the file `path`, in row groups of `row_groups` rows each; its folders are made.
pub(crate) fn write(
    path: &Path,
    columns: Vec<(String, ArrayRef)>,
    row_groups: &[usize],
    options: ParquetOptions,
) {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .expect("columns are of one length");
    let num_rows: usize = row_groups.iter().sum();
    assert_eq!(
        num_rows,
        batch.num_rows(),
        "the row groups of {}",
        path.display()
    );

    let folder = path.parent().expect("a table lies in a folder");
    std::fs::create_dir_all(folder)
        .unwrap_or_else(|error| panic!("make {}: {error}", folder.display()));
    let file =
        File::create(path).unwrap_or_else(|error| panic!("create {}: {error}", path.display()));
    let write = || -> parquet::errors::Result<()> {
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties(options)))?;
        let mut start = 0;
        for &len in row_groups {
            writer.write(&batch.slice(start, len))?;
            writer.flush()?;
            start += len;
        }
        writer.close()?;
        Ok(())
    };
    write().unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
}

fn properties(options: ParquetOptions) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(match options.compression {
            Compression::None => basic::Compression::UNCOMPRESSED,
            Compression::Snappy => basic::Compression::SNAPPY,
            Compression::Gzip => basic::Compression::GZIP(GzipLevel::default()),
            Compression::Zstd => basic::Compression::ZSTD(ZstdLevel::default()),
        })
        .set_writer_version(match options.pages {
            PageVersion::V1 => WriterVersion::PARQUET_1_0,
            PageVersion::V2 => WriterVersion::PARQUET_2_0,
        })
        .set_dictionary_enabled(options.dictionary)
        // Row groups are ours to end.
        .set_max_row_group_row_count(None);
    if let Some(rows) = options.rows_per_page {
        // Limits are looked at between batches of values, of which a list has several.
        properties = properties
            .set_data_page_row_count_limit(rows)
            .set_write_batch_size(rows);
    }
    properties.build()
}
