//! Parquet files as typed columns: the only place that knows of reader crates.
//!
//! All reading of the file happens here; a [`Decoder`] is a pure function of bytes. What a decoder would trust, and reserve
//! memory for, is checked here before it sees it.

#[cfg(feature = "arrow2")]
mod arrow2;
mod arrow_rs;
mod bytes;
mod footer;
mod guard;
mod raw;
mod thrift;

use std::fmt;
use std::ops::Range;

use ::bytes::Bytes;

use crate::limits::{MAX_CHUNK_VALUES, MAX_FOOTER_BYTES};
use crate::{Error, ReadSeek, Reader};

use self::bytes::{Segments, Source};
pub(crate) use self::raw::RawColumn;

/// An open Parquet file.
pub(crate) struct File {
    source: Source,
    reader: Reader,
    decoder: Box<dyn Decoder>,
    row_groups: Vec<usize>,
    num_rows: usize,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("source", &self.source)
            .field("num_rows", &self.num_rows)
            .finish_non_exhaustive()
    }
}

/// A reader crate: these columns of these row groups, as typed buffers. It reads nothing itself.
trait Decoder: Send {
    /// The number of rows in each row group, as the footer says.
    fn row_groups(&self) -> Vec<i64>;

    /// The names of the columns at the top of the schema.
    fn columns(&self) -> Vec<&str>;

    /// Where the file holds an index of its pages that is worth reading, if it does.
    fn page_index(&self) -> Result<Option<Range<u64>>, Fault>;

    /// Takes the bytes of that index.
    fn set_page_index(
        &mut self,
        range: Range<u64>,
        index: Bytes,
        file_size: u64,
    ) -> Result<(), Fault>;

    /// Where the values lie that [`decode`](Self::decode) needs for the same request.
    fn chunks(&self, request: &Request<'_>) -> Result<Vec<Chunk>, Fault>;

    /// Decodes the rows, a column for each name, in that order.
    fn decode(&self, request: &Request<'_>, segments: Segments) -> Result<Vec<RawColumn>, Fault>;
}

/// What to decode.
#[derive(Debug)]
struct Request<'a> {
    columns: &'a [&'a str],
    /// Row groups that follow one another.
    row_groups: Range<usize>,
    /// Rows, counted from the start of the first of the row groups.
    rows: Range<usize>,
}

/// One leaf of a column in one row group.
#[derive(Debug)]
struct Chunk {
    /// The parts of the file that hold its pages, in order; each begins with a page's header.
    pages: Vec<Range<u64>>,
    /// The rows that these pages hold, as far as the footer says.
    num_rows: usize,
    num_values: i64,
    codec: Codec,
}

/// How pages are compressed, as far as it bounds what they can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    None,
    Snappy,
    Gzip,
    Zstd,
    Other,
}

/// Why a decoder could not do it.
#[derive(Debug)]
enum Fault {
    Corrupt(String),
    Unsupported {
        column: String,
        found: String,
    },
    TooLarge {
        what: &'static str,
        found: u64,
        limit: u64,
    },
}

impl File {
    /// Opens a file and reads its footer.
    pub(crate) fn open(file: Box<dyn ReadSeek>, path: &str, reader: Reader) -> Result<Self, Error> {
        let mut source = Source::new(file, path)?;
        let footer = footer::read(&mut source)?;
        let at = |fault: Fault| fault.at(path, reader);
        let mut decoder = guard::catch(|| parse(reader, &footer)).map_err(at)?;
        let (row_groups, num_rows) =
            guard::catch(|| row_counts(&decoder.row_groups())).map_err(at)?;
        if let Some(range) = guard::catch(|| decoder.page_index()).map_err(at)? {
            let size = range.end.saturating_sub(range.start);
            if size > MAX_FOOTER_BYTES {
                let what = "page index in bytes";
                return Err(at(Fault::TooLarge {
                    what,
                    found: size,
                    limit: MAX_FOOTER_BYTES,
                }));
            }
            let file_size = source.size();
            let index = source.read(range.clone())?;
            guard::catch(|| decoder.set_page_index(range, index, file_size)).map_err(at)?;
        }
        Ok(Self {
            source,
            reader,
            decoder,
            row_groups,
            num_rows,
        })
    }

    /// The number of rows that the footer promises; what [`read`](Self::read) returns has as many.
    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Whether the schema has such a column at its top.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.decoder.columns().contains(&name)
    }

    /// Reads rows of some columns, all of which are there; a column for each name, in that order.
    pub(crate) fn read(
        &mut self,
        columns: &[&str],
        rows: Range<usize>,
    ) -> Result<Vec<RawColumn>, Error> {
        let path = self.source.path().to_owned();
        let known = self.decoder.columns();
        for column in columns {
            if known.iter().filter(|known| *known == column).count() > 1 {
                return Err(Error::DuplicateColumn {
                    path,
                    column: (*column).to_owned(),
                });
            }
        }
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let reader = self.reader;
        let at = |fault: Fault| fault.at(&path, reader);
        let request = self.request(columns, &rows);
        let chunks = guard::catch(|| self.decoder.chunks(&request)).map_err(at)?;
        let segments = self.fetch(&chunks)?;
        let decoded = guard::catch(|| {
            for chunk in &chunks {
                guard::check_pages(chunk, &segments)?;
            }
            self.decoder.decode(&request, segments)
        });
        let decoded = decoded.map_err(at)?;
        for (column, name) in decoded.iter().zip(columns) {
            if column.num_rows() != rows.len() {
                let reason = format!(
                    "column `{name}` holds {} values where the footer promises {} rows",
                    column.num_rows(),
                    rows.len()
                );
                return Err(Error::Corrupt { path, reason });
            }
        }
        Ok(decoded)
    }

    /// The row groups that rows of the file lie in.
    fn request<'a>(&self, columns: &'a [&'a str], rows: &Range<usize>) -> Request<'a> {
        let mut start = 0;
        let mut first = None;
        let mut end = 0;
        for (group, len) in self.row_groups.iter().enumerate() {
            let group_end = start + len;
            if group_end > rows.start && start < rows.end {
                first.get_or_insert((group, start));
                end = group + 1;
            }
            start = group_end;
        }
        let (first_group, first_row) = first.unwrap_or((end, rows.start));
        Request {
            columns,
            row_groups: first_group..end,
            rows: rows.start - first_row..rows.end - first_row,
        }
    }

    fn fetch(&mut self, chunks: &[Chunk]) -> Result<Segments, Error> {
        let mut ranges = Vec::new();
        for chunk in chunks {
            let values = u64::try_from(chunk.num_values).unwrap_or(u64::MAX);
            if values > MAX_CHUNK_VALUES {
                return Err(Error::TooLarge {
                    path: self.source.path().to_owned(),
                    what: "number of values in one column of a row group",
                    found: values,
                    limit: MAX_CHUNK_VALUES,
                });
            }
            ranges.extend(chunk.pages.iter().cloned());
        }
        self.source.read_all(ranges)
    }
}

fn parse(reader: Reader, footer: &[u8]) -> Result<Box<dyn Decoder>, Fault> {
    match reader {
        Reader::Parquet => Ok(Box::new(arrow_rs::ArrowRs::parse(footer)?)),
        #[cfg(feature = "arrow2")]
        Reader::Arrow2 => Ok(Box::new(arrow2::Arrow2::parse(footer)?)),
    }
}

/// The rows of each row group and of all of them.
fn row_counts(row_groups: &[i64]) -> Result<(Vec<usize>, usize), Fault> {
    let mut total: usize = 0;
    let mut counts = Vec::with_capacity(row_groups.len());
    for count in row_groups {
        let added = usize::try_from(*count)
            .ok()
            .and_then(|count| Some((count, total.checked_add(count)?)));
        let Some((count, sum)) = added else {
            return Err(Fault::Corrupt(format!("a row group of {count} rows")));
        };
        counts.push(count);
        total = sum;
    }
    Ok((counts, total))
}

impl Fault {
    /// The error for a fault that a reader met in a file.
    fn at(self, path: &str, reader: Reader) -> Error {
        let path = path.to_owned();
        match self {
            Self::Corrupt(reason) => Error::Corrupt { path, reason },
            Self::Unsupported { column, found } => Error::Unsupported {
                path,
                column,
                found,
                reader,
            },
            Self::TooLarge { what, found, limit } => Error::TooLarge {
                path,
                what,
                found,
                limit,
            },
        }
    }
}
