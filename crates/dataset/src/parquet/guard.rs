//! What stands between a hostile file and a reader crate: pages are checked before they are decompressed, and a panic is an
//! error.

use std::panic::{self, AssertUnwindSafe};

use super::bytes::Segments;
use super::thrift::{Cursor, Malformed, Type};
use super::{Chunk, Codec, Fault};
use crate::limits::{MAX_CHUNK_VALUES, MAX_PAGE_BYTES};

/// Calls into a reader crate, whose panics are faults of the file.
///
/// No panic hook is set: what one prints is the program's business.
pub(super) fn catch<T>(call: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // Whatever the call was changing is dropped with the fault, or is not used again.
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let message = match (
            payload.downcast_ref::<&str>(),
            payload.downcast_ref::<String>(),
        ) {
            (Some(message), _) => *message,
            (_, Some(message)) => message.as_str(),
            _ => "no message",
        };
        Err(Fault::Corrupt(format!(
            "the reader failed on it ({message})"
        )))
    })
}

/// Checks the headers of a chunk's pages: none decompresses to more than its bytes can hold, and together they have at least
/// a value for each row, and no more than the limit.
///
/// Readers reserve what a header says before they look at what follows it; and one goes on for ever, and fills the memory, for
/// rows that no page holds.
pub(super) fn check_pages(chunk: &Chunk, segments: &Segments) -> Result<(), Fault> {
    let mut num_values: u64 = 0;
    for range in &chunk.pages {
        let bytes = segments.get(range).ok_or_else(|| malformed(Malformed))?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let page = PageHeader::parse(rest).map_err(malformed)?;
            if page.compressed > rest.len() - page.header {
                return Err(Fault::Corrupt(
                    "a page reaches beyond its column".to_owned(),
                ));
            }
            let limit = chunk.codec.most(page.compressed as u64).min(MAX_PAGE_BYTES);
            if page.uncompressed > limit {
                let what = "page, decompressed, in bytes";
                return Err(Fault::TooLarge {
                    what,
                    found: page.uncompressed,
                    limit,
                });
            }
            num_values = num_values.saturating_add(page.num_values);
            let most = num_values.max(page.num_entries);
            if most > MAX_CHUNK_VALUES {
                let what = "number of values in one column of a row group";
                return Err(Fault::TooLarge {
                    what,
                    found: most,
                    limit: MAX_CHUNK_VALUES,
                });
            }
            rest = &rest[page.header + page.compressed..];
        }
    }
    if num_values < chunk.num_rows as u64 {
        return Err(Fault::Corrupt(format!(
            "a column's pages hold {num_values} values for {} rows",
            chunk.num_rows
        )));
    }
    Ok(())
}

fn malformed(_: Malformed) -> Fault {
    Fault::Corrupt("a page's header is malformed".to_owned())
}

impl Codec {
    /// The most bytes that a page of `compressed` bytes can decompress to: a bound of the format, rounded up.
    fn most(self, compressed: u64) -> u64 {
        // Snappy: 64 bytes for a copy of 3. Deflate: 1032 to 1. Zstandard: a block of 128 KiB for 4 bytes.
        let ratio = match self {
            Self::None => 1,
            Self::Snappy => 22,
            Self::Gzip => 1040,
            Self::Zstd | Self::Other => 1 << 15,
        };
        compressed.saturating_mul(ratio).saturating_add(64)
    }
}

/// What a page's header says, as far as memory depends on it.
#[derive(Debug, PartialEq, Eq)]
struct PageHeader {
    /// The size of the header itself.
    header: usize,
    compressed: usize,
    uncompressed: u64,
    /// Of a data page.
    num_values: u64,
    /// Of a dictionary.
    num_entries: u64,
}

impl PageHeader {
    fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut uncompressed = None;
        let mut compressed = None;
        let mut num_values = 0;
        let mut num_entries = 0;
        let mut cursor = Cursor::new(bytes);
        cursor.fields(|cursor, id, kind| match (id, kind) {
            (2, _) => {
                uncompressed = u64::try_from(cursor.integer(kind)?).ok();
                Ok(true)
            }
            (3, _) => {
                compressed = usize::try_from(cursor.integer(kind)?).ok();
                Ok(true)
            }
            // The headers of data pages v1 and v2, and of dictionary pages, each of which begins with its num_values.
            (5 | 8 | 7, Type::STRUCT) => {
                let mut count = 0;
                cursor.fields(|cursor, id, kind| {
                    if id == 1 {
                        count = u64::try_from(cursor.integer(kind)?).or(Err(Malformed))?;
                    }
                    Ok(id == 1)
                })?;
                if id == 7 {
                    num_entries = count;
                } else {
                    num_values = count;
                }
                Ok(true)
            }
            _ => Ok(false),
        })?;
        Ok(Self {
            header: cursor.position(),
            compressed: compressed.ok_or(Malformed)?,
            uncompressed: uncompressed.ok_or(Malformed)?,
            num_values,
            num_entries,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor as File;

    use super::super::bytes::Source;
    use super::*;

    fn zigzag(value: u64) -> Vec<u8> {
        let mut value = value << 1;
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// A v1 data page.
    fn page(uncompressed: u64, compressed: u64, num_values: u64, data: usize) -> Vec<u8> {
        let mut bytes = vec![0x15, 0];
        for value in [uncompressed, compressed] {
            bytes.push(0x15);
            bytes.extend(zigzag(value));
        }
        bytes.extend([0x2c, 0x15]);
        bytes.extend(zigzag(num_values));
        bytes.extend([0, 0]);
        bytes.resize(bytes.len() + data, 7);
        bytes
    }

    /// Checks pages that should hold 5 rows.
    fn check(codec: Codec, pages: &[Vec<u8>]) -> Result<(), Fault> {
        let bytes = pages.concat();
        let range = 0..bytes.len() as u64;
        let segments = Source::new(Box::new(File::new(bytes)), "f")
            .unwrap()
            .read_all(vec![range.clone()])
            .unwrap();
        check_pages(
            &Chunk {
                pages: vec![range],
                num_rows: 5,
                num_values: 5,
                codec,
            },
            &segments,
        )
    }

    #[test]
    fn honest_pages_pass() {
        check(Codec::Snappy, &[page(100, 10, 5, 10), page(30, 30, 1, 30)]).unwrap();
        check(Codec::None, &[page(10, 10, 5, 10)]).unwrap();
    }

    #[test]
    fn lying_pages_are_refused_before_anything_is_reserved() {
        let too_large =
            |codec, pages: &[Vec<u8>]| matches!(check(codec, pages), Err(Fault::TooLarge { .. }));
        assert!(too_large(Codec::Snappy, &[page(1 << 30, 10, 5, 10)]));
        assert!(too_large(Codec::None, &[page(1000, 10, 5, 10)]));
        assert!(too_large(Codec::Gzip, &[page(1 << 20, 10, 5, 10)]));
        assert!(too_large(Codec::Zstd, &[page(1 << 31, 1000, 5, 1000)]));
        assert!(too_large(
            Codec::Snappy,
            &[page(10, 10, 1 << 28, 10), page(10, 10, 1, 10)]
        ));
        let corrupt =
            |pages: &[Vec<u8>]| matches!(check(Codec::Snappy, pages), Err(Fault::Corrupt(_)));
        assert!(corrupt(&[page(10, 11, 5, 10)]));
        assert!(corrupt(&[page(10, 10, 5, 10), vec![0x15]]));
        assert!(corrupt(&[vec![0x15, 0, 0]]));
        assert!(corrupt(&[page(10, 10, 3, 10), page(10, 10, 1, 10)]));
    }

    #[test]
    fn a_panic_is_a_fault_that_says_what_it_said() {
        for call in [|| panic!("at {}", 7), || -> () { panic!("at 7") }] {
            let caught = catch(|| {
                call();
                Ok(())
            });
            assert!(matches!(caught, Err(Fault::Corrupt(reason)) if reason.contains("at 7")));
        }
    }
}
