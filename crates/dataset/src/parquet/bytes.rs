//! The bytes of a file: where they come from, and the parts of it that were read.

use std::fmt;
use std::io::SeekFrom;
use std::ops::Range;

use bytes::Bytes;

use crate::{Error, ReadSeek};

/// Parts of a file with less than this between them are read at once.
const MERGE_BYTES: u64 = 4096;

/// A file that parts of are read from.
pub(super) struct Source {
    reader: Box<dyn ReadSeek>,
    path: String,
    size: u64,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("path", &self.path)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Source {
    pub(super) fn new(mut reader: Box<dyn ReadSeek>, path: &str) -> Result<Self, Error> {
        let size = reader.seek(SeekFrom::End(0)).map_err(|source| Error::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            reader,
            path: path.to_owned(),
            size,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The size of the file, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Reads one part of the file. Nothing is reserved for a part that is not there.
    pub(super) fn read(&mut self, range: Range<u64>) -> Result<Bytes, Error> {
        let len = range
            .end
            .checked_sub(range.start)
            .filter(|_| range.end <= self.size);
        let Some(len) = len.and_then(|len| usize::try_from(len).ok()) else {
            let reason = format!(
                "its footer points at the bytes {} to {}, but the file has {}",
                range.start, range.end, self.size
            );
            return Err(Error::Corrupt {
                path: self.path.clone(),
                reason,
            });
        };
        let mut bytes = vec![0; len];
        let read = self
            .reader
            .seek(SeekFrom::Start(range.start))
            .and_then(|_| self.reader.read_exact(&mut bytes));
        read.map_err(|source| Error::Io {
            action: "read",
            path: self.path.clone(),
            source,
        })?;
        Ok(bytes.into())
    }

    /// Reads parts of the file, neighbours at once.
    pub(super) fn read_all(&mut self, mut ranges: Vec<Range<u64>>) -> Result<Segments, Error> {
        ranges.retain(|range| range.start < range.end);
        ranges.sort_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(MERGE_BYTES) => {
                    last.end = last.end.max(range.end);
                }
                _ => merged.push(range),
            }
        }
        let mut parts = Vec::with_capacity(merged.len());
        for range in merged {
            parts.push((range.start, self.read(range)?));
        }
        Ok(Segments {
            parts,
            file_size: self.size,
        })
    }
}

/// Parts of a file, in memory.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    /// Where each part starts in the file, and its bytes; sorted, without overlap.
    parts: Vec<(u64, Bytes)>,
    file_size: u64,
}

impl Segments {
    /// The size of the whole file, in bytes.
    pub(super) fn file_size(&self) -> u64 {
        self.file_size
    }

    /// The bytes from `start` to the end of the part that they are in; none when that part was not read.
    pub(super) fn from(&self, start: u64) -> Bytes {
        let after = self.parts.partition_point(|(offset, _)| *offset <= start);
        let Some((offset, bytes)) = after
            .checked_sub(1)
            .and_then(|position| self.parts.get(position))
        else {
            return Bytes::new();
        };
        match usize::try_from(start - offset) {
            Ok(skip) if skip <= bytes.len() => bytes.slice(skip..),
            _ => Bytes::new(),
        }
    }

    /// The bytes of a range, if all of it was read.
    pub(super) fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        let bytes = self.from(range.start);
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        (len <= bytes.len()).then(|| bytes.slice(..len))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn source() -> Source {
        let bytes: Vec<u8> = (0..20_000_u32).map(|i| (i % 251) as u8).collect();
        Source::new(Box::new(Cursor::new(bytes)), "f").unwrap()
    }

    #[test]
    fn neighbouring_parts_are_read_at_once_and_found_again() {
        let segments = source()
            .read_all(vec![300..310, 10..20, 20..20, 12_000..12_005])
            .unwrap();
        assert_eq!(segments.parts.len(), 2);
        assert_eq!(
            segments.get(&(10..20)).unwrap().as_ref(),
            (10..20).collect::<Vec<u8>>()
        );
        assert_eq!(segments.get(&(300..302)).unwrap().as_ref(), [49, 50]);
        assert_eq!(segments.from(12_003).len(), 2);
        assert_eq!(segments.get(&(12_000..12_006)), None);
        assert_eq!(segments.get(&(5..8)), None);
        assert_eq!(segments.get(&(11_000..11_001)), None);
        assert!(segments.from(u64::MAX).is_empty());
    }

    #[test]
    fn a_part_outside_the_file_is_refused_before_reserving() {
        for range in [0..20_001, 5..u64::MAX, u64::MAX - 1..u64::MAX] {
            let error = source().read(range).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        }
    }
}
