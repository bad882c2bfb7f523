//! The default reader: arrow-rs' `parquet`.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType};
use bytes::{Buf, Bytes};
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder,
    ParquetMetaDataReader,
};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};

use super::bytes::Segments;
use super::raw::{self, RawColumn};
use super::{Chunk, Codec, Decoder, Fault, Request};
use crate::rows::{Blobs, Strings, Values};

/// The most rows decoded at once. The reader counts a batch's bytes in 31 bits: 256 pictures may have 8 MiB each.
const BATCH_ROWS: usize = 256;

/// Row groups of more rows than this are large enough that finding pages is worth reading an index.
const LARGE_ROW_GROUP: i64 = 4096;

/// A footer, parsed.
pub(super) struct ArrowRs {
    metadata: ArrowReaderMetadata,
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl From<ArrowError> for Fault {
    fn from(error: ArrowError) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl ArrowRs {
    pub(super) fn parse(footer: &[u8]) -> Result<Self, Fault> {
        Self::new(ParquetMetaDataReader::decode_metadata(footer)?)
    }

    /// The Arrow schema that a writer may have left is passed over: what is stored is the same for all of them, and so are
    /// the types it is read as (one kind of list, one kind of string, no dictionaries).
    fn new(metadata: ParquetMetaData) -> Result<Self, Fault> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        Ok(Self {
            metadata: ArrowReaderMetadata::try_new(Arc::new(metadata), options)?,
        })
    }

    /// The leaves to read of the requested columns: of a picture's structure, only its `bytes`.
    fn leaves(&self, columns: &[&str]) -> Vec<usize> {
        let schema = self.metadata.parquet_schema();
        let parts = |leaf: usize| schema.columns()[leaf].path().parts();
        let mut leaves = Vec::new();
        for name in columns {
            let of_column = (0..schema.num_columns()).filter(|leaf| parts(*leaf)[0] == *name);
            match of_column
                .clone()
                .find(|leaf| parts(*leaf)[1..] == ["bytes"])
            {
                Some(bytes) => leaves.push(bytes),
                None => leaves.extend(of_column),
            }
        }
        leaves
    }
}

impl Decoder for ArrowRs {
    fn row_groups(&self) -> Vec<i64> {
        self.metadata
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .collect()
    }

    fn columns(&self) -> Vec<&str> {
        let root = self.metadata.parquet_schema().root_schema();
        root.get_fields().iter().map(|field| field.name()).collect()
    }

    fn page_index(&self) -> Result<Option<Range<u64>>, Fault> {
        let row_groups = self.metadata.metadata().row_groups();
        if row_groups
            .iter()
            .all(|group| group.num_rows() <= LARGE_ROW_GROUP)
        {
            return Ok(None);
        }
        let columns = row_groups.iter().flat_map(|group| group.columns());
        let ranges = columns.filter_map(ColumnChunkMetaData::offset_index_range);
        Ok(ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)))
    }

    fn set_page_index(
        &mut self,
        range: Range<u64>,
        index: Bytes,
        file_size: u64,
    ) -> Result<(), Fault> {
        let metadata = ParquetMetaData::clone(self.metadata.metadata());
        let mut decoder = ParquetMetaDataPushDecoder::try_new_with_metadata(file_size, metadata)?
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_offset_index_policy(PageIndexPolicy::Optional);
        decoder.push_range(range, index)?;
        if let DecodeResult::Data(metadata) = decoder.try_decode()? {
            *self = Self::new(metadata)?;
        }
        Ok(())
    }

    fn chunks(&self, request: &Request<'_>) -> Result<Vec<Chunk>, Fault> {
        let metadata = self.metadata.metadata();
        let leaves = self.leaves(request.columns);
        let mut chunks = Vec::new();
        let mut first_row = 0;
        for group in request.row_groups.clone() {
            let row_group = metadata.row_group(group);
            let num_rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
            // The wanted rows, counted from the start of this row group.
            let rows = request.rows.start.saturating_sub(first_row)
                ..request.rows.end.saturating_sub(first_row).min(num_rows);
            first_row += num_rows;
            for leaf in &leaves {
                let column = row_group.column(*leaf);
                let range = chunk_range(column)?;
                let index = metadata
                    .page_index()
                    .and_then(|index| index.offset_index(group, *leaf));
                let (pages, num_rows) = match index {
                    Some(index) => {
                        let locations = index.page_locations();
                        (needed_pages(range.start, locations, &rows)?, rows.len())
                    }
                    None => (vec![range], num_rows),
                };
                chunks.push(Chunk {
                    pages,
                    num_rows,
                    num_values: column.num_values(),
                    codec: codec(column.compression()),
                });
            }
        }
        Ok(chunks)
    }

    fn decode(&self, request: &Request<'_>, segments: Segments) -> Result<Vec<RawColumn>, Fault> {
        let leaves = self.leaves(request.columns);
        let projection = ProjectionMask::leaves(self.metadata.parquet_schema(), leaves);
        let rows = &request.rows;
        let selection = vec![
            RowSelector::skip(rows.start),
            RowSelector::select(rows.len()),
        ];
        let batches =
            ParquetRecordBatchReaderBuilder::new_with_metadata(segments, self.metadata.clone())
                .with_row_groups(request.row_groups.clone().collect())
                .with_projection(projection)
                .with_row_selection(RowSelection::from(selection))
                .with_batch_size(BATCH_ROWS)
                .build()?;

        let schema = arrow_array::RecordBatchReader::schema(&batches);
        let mut positions = Vec::with_capacity(request.columns.len());
        let mut columns = Vec::with_capacity(request.columns.len());
        for name in request.columns {
            let position = schema.index_of(name)?;
            let stored = schema.field(position).data_type();
            let column = empty(stored).ok_or_else(|| Fault::Unsupported {
                column: (*name).to_owned(),
                found: stored.to_string(),
            })?;
            positions.push(position);
            columns.push(column);
        }
        let mut num_rows = 0;
        for batch in batches {
            let batch = batch?;
            for (column, position) in columns.iter_mut().zip(&positions) {
                let mut nulls = append(column, 0, batch.column(*position))?;
                nulls.sort_unstable();
                nulls.dedup();
                column
                    .null_rows
                    .extend(nulls.into_iter().map(|row| num_rows + row));
            }
            num_rows += batch.num_rows();
            raw::check_size(&columns)?;
        }
        Ok(columns)
    }
}

/// The parts of a column chunk that hold the rows of a row group: the dictionary, if there is one before the first data
/// page, and the pages of these rows.
fn needed_pages(
    start: u64,
    pages: &[PageLocation],
    rows: &Range<usize>,
) -> Result<Vec<Range<u64>>, Fault> {
    let malformed = || Fault::Corrupt("its page index is malformed".to_owned());
    let mut needed = Vec::new();
    for (position, page) in pages.iter().enumerate() {
        let offset = u64::try_from(page.offset).or(Err(malformed()))?;
        let len = u64::try_from(page.compressed_page_size).or(Err(malformed()))?;
        if position == 0 && start < offset {
            needed.push(start..offset);
        }
        let row = |page: &PageLocation| usize::try_from(page.first_row_index).or(Err(malformed()));
        let first = row(page)?;
        let end = pages.get(position + 1).map_or(Ok(usize::MAX), row)?;
        if first < rows.end && rows.start < end {
            needed.push(offset..offset.checked_add(len).ok_or_else(malformed)?);
        }
    }
    Ok(needed)
}

/// Where a column chunk lies: from its dictionary on, if it has one.
fn chunk_range(column: &ColumnChunkMetaData) -> Result<Range<u64>, Fault> {
    let offset = column
        .dictionary_page_offset()
        .unwrap_or(column.data_page_offset());
    let range = u64::try_from(offset)
        .and_then(|start| Ok((start, u64::try_from(column.compressed_size())?)));
    match range {
        Ok((start, len)) => Ok(start..start.saturating_add(len)),
        Err(_) => Err(Fault::Corrupt(
            "a column lies before the start of the file".to_owned(),
        )),
    }
}

fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::UNCOMPRESSED => Codec::None,
        Compression::SNAPPY => Codec::Snappy,
        Compression::GZIP(_) => Codec::Gzip,
        Compression::ZSTD(_) => Codec::Zstd,
        _ => Codec::Other,
    }
}

/// A column of a stored type, without rows; `None` for a type that no feature has.
fn empty(stored: &DataType) -> Option<RawColumn> {
    let leaf = match stored {
        DataType::List(field) => {
            let mut column = empty(field.data_type())?;
            column.lists.push(Vec::new());
            return Some(column);
        }
        DataType::Struct(fields) => match fields.as_ref() {
            [field] if field.name() == "bytes" && *field.data_type() == DataType::Binary => {
                return empty(field.data_type());
            }
            _ => return None,
        },
        DataType::Float32 => Values::F32(Vec::new()),
        DataType::Float64 => Values::F64(Vec::new()),
        DataType::Int8 => Values::I8(Vec::new()),
        DataType::Int16 => Values::I16(Vec::new()),
        DataType::Int32 => Values::I32(Vec::new()),
        DataType::Int64 => Values::I64(Vec::new()),
        DataType::UInt8 => Values::U8(Vec::new()),
        DataType::UInt16 => Values::U16(Vec::new()),
        DataType::UInt32 => Values::U32(Vec::new()),
        DataType::UInt64 => Values::U64(Vec::new()),
        DataType::Boolean => Values::Bool(Vec::new()),
        DataType::Utf8 => Values::Str(Strings::new()),
        DataType::Binary => Values::Bytes(Blobs::new()),
        _ => return None,
    };
    Some(RawColumn {
        lists: Vec::new(),
        leaf,
        null_rows: Vec::new(),
    })
}

/// Appends an array, whose lists are those of level `level`; returns the positions in it that are null or hold a null.
fn append(column: &mut RawColumn, level: usize, array: &ArrayRef) -> Result<Vec<usize>, Fault> {
    let mut nulls = Vec::new();
    match (array.data_type(), &mut column.leaf) {
        (DataType::List(_), _) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            let (first, last) = (offsets[0] as usize, offsets[list.len()] as usize);
            column.lists[level].extend(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize));
            let inner = append(column, level + 1, &list.values().slice(first, last - first))?;
            let holder = |inner: usize| {
                offsets.partition_point(|offset| *offset as usize <= first + inner) - 1
            };
            nulls.extend(inner.into_iter().map(holder));
        }
        (DataType::Struct(_), _) => nulls = append(column, level, array.as_struct().column(0))?,
        (DataType::Float32, Values::F32(out)) => {
            out.extend(array.as_primitive::<Float32Type>().values())
        }
        (DataType::Float64, Values::F64(out)) => {
            out.extend(array.as_primitive::<Float64Type>().values())
        }
        (DataType::Int8, Values::I8(out)) => out.extend(array.as_primitive::<Int8Type>().values()),
        (DataType::Int16, Values::I16(out)) => {
            out.extend(array.as_primitive::<Int16Type>().values())
        }
        (DataType::Int32, Values::I32(out)) => {
            out.extend(array.as_primitive::<Int32Type>().values())
        }
        (DataType::Int64, Values::I64(out)) => {
            out.extend(array.as_primitive::<Int64Type>().values())
        }
        (DataType::UInt8, Values::U8(out)) => {
            out.extend(array.as_primitive::<UInt8Type>().values())
        }
        (DataType::UInt16, Values::U16(out)) => {
            out.extend(array.as_primitive::<UInt16Type>().values())
        }
        (DataType::UInt32, Values::U32(out)) => {
            out.extend(array.as_primitive::<UInt32Type>().values())
        }
        (DataType::UInt64, Values::U64(out)) => {
            out.extend(array.as_primitive::<UInt64Type>().values())
        }
        (DataType::Boolean, Values::Bool(out)) => out.extend(array.as_boolean().values().iter()),
        (DataType::Utf8, Values::Str(out)) => {
            let strings = array.as_string::<i32>();
            (0..strings.len()).for_each(|position| out.push(strings.value(position)));
        }
        (DataType::Binary, Values::Bytes(out)) => {
            let blobs = array.as_binary::<i32>();
            (0..blobs.len()).for_each(|position| out.push(blobs.value(position)));
        }
        (stored, _) => {
            return Err(Fault::Corrupt(format!(
                "the reader returned {stored} for another type"
            )));
        }
    }
    if array.null_count() > 0 {
        nulls.extend((0..array.len()).filter(|position| array.is_null(*position)));
    }
    Ok(nulls)
}

impl Length for Segments {
    fn len(&self) -> u64 {
        self.file_size()
    }
}

impl ChunkReader for Segments {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(self.from(start).reader())
    }

    fn get_bytes(&self, start: u64, len: usize) -> parquet::errors::Result<Bytes> {
        let range = start..start.saturating_add(len as u64);
        self.get(&range).ok_or_else(|| {
            ParquetError::EOF(format!(
                "the bytes {range:?} belong to no page that is needed"
            ))
        })
    }
}
