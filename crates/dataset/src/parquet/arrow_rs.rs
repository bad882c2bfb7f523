//! The default reader: arrow-rs' `parquet`.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bytes::{Buf, Bytes};
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder, ParquetMetaDataReader,
};
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
    metadata: Arc<ParquetMetaData>,
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl ArrowRs {
    pub(super) fn parse(footer: &[u8]) -> Result<Self, Fault> {
        Ok(Self { metadata: Arc::new(ParquetMetaDataReader::decode_metadata(footer)?) })
    }

    /// The leaves to read of the requested columns: of a structure, only its `bytes`, which is all that is needed of a picture.
    fn leaves(&self, columns: &[&str]) -> Vec<usize> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mut leaves = Vec::new();
        for column in columns {
            let path = |leaf: usize| schema.column(leaf).path().parts().to_vec();
            let of_column: Vec<usize> =
                (0..schema.num_columns()).filter(|leaf| path(*leaf).first().is_some_and(|name| name == column)).collect();
            let bytes = of_column.iter().find(|leaf| path(**leaf)[1..] == ["bytes"]);
            match bytes {
                Some(bytes) => leaves.push(*bytes),
                None => leaves.extend(of_column),
            }
        }
        leaves
    }
}

impl Decoder for ArrowRs {
    fn name(&self) -> &'static str {
        "default"
    }

    fn row_groups(&self) -> Vec<i64> {
        self.metadata.row_groups().iter().map(|group| group.num_rows()).collect()
    }

    fn columns(&self) -> Vec<&str> {
        let schema = self.metadata.file_metadata().schema_descr();
        schema.root_schema().get_fields().iter().map(|field| field.name()).collect()
    }

    fn page_index(&self) -> Result<Option<Range<u64>>, Fault> {
        if !self.row_groups().iter().any(|rows| *rows > LARGE_ROW_GROUP) {
            return Ok(None);
        }
        let columns = self.metadata.row_groups().iter().flat_map(|group| group.columns());
        let ranges = columns.filter_map(ColumnChunkMetaData::offset_index_range);
        Ok(ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)))
    }

    fn set_page_index(&mut self, index: Bytes, file_size: u64) -> Result<(), Fault> {
        let metadata = ParquetMetaData::clone(&self.metadata);
        let mut decoder = ParquetMetaDataPushDecoder::try_new_with_metadata(file_size, metadata)?
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_offset_index_policy(PageIndexPolicy::Optional);
        loop {
            match decoder.try_decode()? {
                DecodeResult::Data(metadata) => {
                    self.metadata = Arc::new(metadata);
                    return Ok(());
                }
                DecodeResult::NeedsData(ranges) => todo!("{ranges:?} {}", index.len()),
                DecodeResult::Finished => return Ok(()),
            }
        }
    }

    fn chunks(&self, request: &Request<'_>) -> Result<Vec<Chunk>, Fault> {
        todo!()
    }

    fn decode(&self, request: &Request<'_>, segments: Segments) -> Result<Vec<RawColumn>, Fault> {
        todo!()
    }
}
