//! The second reader: arrow2 and parquet2.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;

use ::arrow2::array::{
    Array, BinaryArray, BooleanArray, ListArray, PrimitiveArray, StructArray, Utf8Array,
};
use ::arrow2::datatypes::{DataType, Field};
use ::arrow2::error::Error as Arrow2Error;
use ::arrow2::io::parquet::read::schema::parquet_to_arrow_schema;
use ::arrow2::io::parquet::read::{
    FileMetaData, get_field_columns, read_columns_many, read_metadata,
};
use ::arrow2::types::NativeType;
use bytes::Bytes;

use super::bytes::Segments;
use super::raw::{self, RawColumn};
use super::thrift::{self, Malformed};
use super::{Chunk, Codec, Decoder, Fault, Request};
use crate::rows::{Blobs, Strings, Values};

/// A footer, parsed.
pub(super) struct Arrow2 {
    metadata: FileMetaData,
    fields: Vec<Field>,
}

impl Arrow2 {
    pub(super) fn parse(footer: &[u8]) -> Result<Self, Fault> {
        let footer = without_column_orders(footer)
            .map_err(|Malformed| Fault::Corrupt("its footer is malformed".to_owned()))?;
        // The crate wants a file: one that has nothing but a footer.
        let len = u32::try_from(footer.len())
            .or(Err(Fault::Corrupt("its footer is too long".to_owned())))?;
        let file = [b"PAR1", footer.as_slice(), &len.to_le_bytes(), b"PAR1"].concat();
        let metadata = read_metadata(&mut Cursor::new(file)).map_err(corrupt)?;
        // Not what a writer may have left as Arrow schema: see the other reader.
        let fields = parquet_to_arrow_schema(metadata.schema().fields());
        Ok(Self { metadata, fields })
    }

    fn field(&self, name: &str) -> Result<&Field, Fault> {
        let field = self.fields.iter().find(|field| field.name == name);
        field.ok_or_else(|| Fault::Unsupported {
            column: name.to_owned(),
            found: "an unknown type".to_owned(),
        })
    }
}

/// A footer without its `column_orders`, if they are its last field: parquet2 stops at orders that it does not know, such as
/// today's for floats, and only statistics, which are not read, depend on them.
fn without_column_orders(footer: &[u8]) -> Result<Vec<u8>, Malformed> {
    /// FileMetaData.column_orders
    const COLUMN_ORDERS: i16 = 7;
    let mut last = (0, 0);
    let mut cursor = thrift::Cursor::new(footer);
    cursor.fields(|cursor, id, _| {
        // The header of a field whose number is at most 15 more than the one before it is a single byte.
        last = (id, cursor.position() - 1);
        Ok(false)
    })?;
    match last {
        (COLUMN_ORDERS, start) => Ok([&footer[..start], &[0]].concat()),
        _ => Ok(footer.to_vec()),
    }
}

fn corrupt(error: Arrow2Error) -> Fault {
    Fault::Corrupt(error.to_string())
}

impl Decoder for Arrow2 {
    fn row_groups(&self) -> Vec<i64> {
        let count = |rows| i64::try_from(rows).unwrap_or(-1);
        self.metadata
            .row_groups
            .iter()
            .map(|group| count(group.num_rows()))
            .collect()
    }

    fn columns(&self) -> Vec<&str> {
        self.metadata
            .schema()
            .fields()
            .iter()
            .map(|field| field.name())
            .collect()
    }

    /// It reads whole row groups.
    fn page_index(&self) -> Result<Option<Range<u64>>, Fault> {
        Ok(None)
    }

    fn set_page_index(&mut self, _: Range<u64>, _: Bytes, _: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn chunks(&self, request: &Request<'_>) -> Result<Vec<Chunk>, Fault> {
        let mut chunks = Vec::new();
        for group in &self.metadata.row_groups[request.row_groups.clone()] {
            for name in request.columns {
                for column in get_field_columns(group.columns(), name) {
                    let (start, len) = column.byte_range();
                    let range = start..start.saturating_add(len);
                    chunks.push(Chunk {
                        pages: vec![range],
                        num_rows: group.num_rows(),
                        num_values: column.num_values(),
                        codec: match format!("{:?}", column.compression()).as_str() {
                            "Uncompressed" => Codec::None,
                            "Snappy" => Codec::Snappy,
                            "Gzip" => Codec::Gzip,
                            "Zstd" => Codec::Zstd,
                            _ => Codec::Other,
                        },
                    });
                }
            }
        }
        Ok(chunks)
    }

    fn decode(&self, request: &Request<'_>, segments: Segments) -> Result<Vec<RawColumn>, Fault> {
        let fields: Vec<Field> = request
            .columns
            .iter()
            .map(|name| self.field(name).cloned())
            .collect::<Result<_, _>>()?;
        let mut columns = Vec::with_capacity(fields.len());
        for field in &fields {
            columns.push(empty(field.data_type()).ok_or_else(|| Fault::Unsupported {
                column: field.name.clone(),
                found: format!("{:?}", field.data_type()),
            })?);
        }
        let mut reader = SegmentReader {
            segments,
            position: 0,
        };
        let mut first_row = 0;
        for group in &self.metadata.row_groups[request.row_groups.clone()] {
            let num_rows = group.num_rows();
            // The wanted rows, counted from the start of this row group.
            let rows = request.rows.start.saturating_sub(first_row)
                ..request.rows.end.saturating_sub(first_row).min(num_rows);
            first_row += num_rows;
            let arrays = read_columns_many(&mut reader, group, fields.clone(), None, None, None)
                .map_err(corrupt)?;
            for ((column, field), mut arrays) in columns.iter_mut().zip(&fields).zip(arrays) {
                let array = arrays
                    .next()
                    .ok_or_else(|| Fault::Corrupt(format!("`{}` ends early", field.name)))?;
                let array = array.map_err(|error| unsupported_or_corrupt(field, error))?;
                if array.len() < rows.end {
                    return Err(Fault::Corrupt(format!("`{}` ends early", field.name)));
                }
                let before = column.num_rows();
                let mut nulls = append(column, 0, array.sliced(rows.start, rows.len()).as_ref())?;
                nulls.sort_unstable();
                nulls.dedup();
                column
                    .null_rows
                    .extend(nulls.into_iter().map(|row| before + row));
            }
            raw::check_size(&columns)?;
        }
        Ok(columns)
    }
}

fn unsupported_or_corrupt(field: &Field, error: Arrow2Error) -> Fault {
    match error {
        Arrow2Error::NotYetImplemented(what) => Fault::Unsupported {
            column: field.name.clone(),
            found: format!("Parquet pages ({what})"),
        },
        error => corrupt(error),
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
        DataType::Struct(fields) => {
            return empty(fields[bytes_of(fields)?].data_type());
        }
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

/// The position of a picture's `bytes` in its structure.
fn bytes_of(fields: &[Field]) -> Option<usize> {
    fields
        .iter()
        .position(|field| field.name == "bytes" && *field.data_type() == DataType::Binary)
}

/// Appends an array, whose lists are those of level `level`; returns the positions in it that are null or hold a null.
fn append(column: &mut RawColumn, level: usize, array: &dyn Array) -> Result<Vec<usize>, Fault> {
    let mut nulls = Vec::new();
    match (array.data_type(), &mut column.leaf) {
        (DataType::List(_), _) => {
            let list: &ListArray<i32> = downcast(array)?;
            let offsets = list.offsets().buffer();
            let (first, last) = (offsets[0] as usize, offsets[list.len()] as usize);
            column.lists[level].extend(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize));
            let inner = append(
                column,
                level + 1,
                list.values().sliced(first, last - first).as_ref(),
            )?;
            let holder = |inner: usize| {
                offsets.partition_point(|offset| *offset as usize <= first + inner) - 1
            };
            nulls.extend(inner.into_iter().map(holder));
        }
        (DataType::Struct(fields), _) => {
            let structs: &StructArray = downcast(array)?;
            let position = bytes_of(fields)
                .ok_or_else(|| Fault::Corrupt("a structure without `bytes`".to_owned()))?;
            nulls = append(column, level, structs.values()[position].as_ref())?;
        }
        (_, Values::F32(out)) => extend(out, array)?,
        (_, Values::F64(out)) => extend(out, array)?,
        (_, Values::I8(out)) => extend(out, array)?,
        (_, Values::I16(out)) => extend(out, array)?,
        (_, Values::I32(out)) => extend(out, array)?,
        (_, Values::I64(out)) => extend(out, array)?,
        (_, Values::U8(out)) => extend(out, array)?,
        (_, Values::U16(out)) => extend(out, array)?,
        (_, Values::U32(out)) => extend(out, array)?,
        (_, Values::U64(out)) => extend(out, array)?,
        (_, Values::Bool(out)) => out.extend(downcast::<BooleanArray>(array)?.values()),
        (_, Values::Str(out)) => {
            let strings: &Utf8Array<i32> = downcast(array)?;
            strings.values_iter().for_each(|text| out.push(text));
        }
        (_, Values::Bytes(out)) => {
            let blobs: &BinaryArray<i32> = downcast(array)?;
            blobs.values_iter().for_each(|bytes| out.push(bytes));
        }
    }
    if array.null_count() > 0 {
        nulls.extend((0..array.len()).filter(|position| array.is_null(*position)));
    }
    Ok(nulls)
}

fn extend<T: NativeType>(out: &mut Vec<T>, array: &dyn Array) -> Result<(), Fault> {
    out.extend_from_slice(downcast::<PrimitiveArray<T>>(array)?.values());
    Ok(())
}

fn downcast<T: 'static>(array: &dyn Array) -> Result<&T, Fault> {
    let stored = || {
        Fault::Corrupt(format!(
            "the reader returned {:?} for another type",
            array.data_type()
        ))
    };
    array.as_any().downcast_ref().ok_or_else(stored)
}

/// The parts of a file that were read, as a file.
struct SegmentReader {
    segments: Segments,
    position: u64,
}

impl Read for SegmentReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.segments.from(self.position).as_ref().read(out)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for SegmentReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(to) => Some(to),
            SeekFrom::End(by) => self.segments.file_size().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
