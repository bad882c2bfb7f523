//! A remote file that can be read from any position.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;

use super::Remote;
use crate::Error;

/// Reads of less than this are of headers and footers, of which more will be wanted.
const SMALL_READ_BYTES: usize = 4 << 10;
/// What is fetched for a small read.
const WINDOW_BYTES: u64 = 32 << 10;
/// What is fetched at most for reads that go on and on.
const MAX_WINDOW_BYTES: u64 = 8 << 20;

/// An open file of a remote source. Holds a part of it in memory, at most 8 MiB unless more is asked for at once.
#[derive(Debug)]
pub(crate) struct RemoteReader {
    remote: Arc<Remote>,
    key: String,
    size: u64,
    position: u64,
    /// Where in the file the part in memory starts.
    start: u64,
    part: Bytes,
    /// Whether the part is more than was asked for, in the hope that its neighbours will be wanted, too.
    is_window: bool,
}

impl RemoteReader {
    pub(crate) fn open(remote: Arc<Remote>, key: &str) -> Result<Self, Error> {
        let size = remote.stat(key)?.size;
        Ok(Self {
            remote,
            key: key.to_owned(),
            size,
            position: 0,
            start: 0,
            part: Bytes::new(),
            is_window: false,
        })
    }

    /// What of the part in memory begins at the position.
    fn here(&self) -> &[u8] {
        let skip = self.position.checked_sub(self.start);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.part.get(skip..))
            .unwrap_or_default()
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Reads, but gives up once `stop` is set.
    pub(crate) fn read_unless(&mut self, buf: &mut [u8], stop: &AtomicBool) -> io::Result<usize> {
        self.read_some(buf, Some(stop))
    }

    fn read_some(&mut self, buf: &mut [u8], stop: Option<&AtomicBool>) -> io::Result<usize> {
        if buf.is_empty() || self.position >= self.size {
            return Ok(0);
        }
        if self.here().is_empty()
            && let Some((start, part)) = self.remote.indexed(&self.key, self.position)
        {
            self.start = start;
            self.part = part;
            self.is_window = false;
        }
        if self.here().is_empty() {
            let left = usize::try_from(self.size - self.position).unwrap_or(usize::MAX);
            // What is asked for at once is not limited by the caller's buffer alone: it may be as large as the file.
            let wanted = buf.len().min(left).min(MAX_WINDOW_BYTES as usize);
            self.fill(wanted, stop)
                .map_err(|error| io::Error::new(error.io_kind(), error))?;
        }
        let here = self.here();
        let len = here.len().min(buf.len());
        buf[..len].copy_from_slice(&here[..len]);
        self.position += len as u64;
        Ok(len)
    }

    fn fill(&mut self, wanted: usize, stop: Option<&AtomicBool>) -> Result<(), Error> {
        let part_end = self.start + self.part.len() as u64;
        let goes_on = self.is_window && self.position == part_end;
        let exact = wanted as u64;
        let len = if goes_on {
            exact.max((self.part.len() as u64 * 2).min(MAX_WINDOW_BYTES))
        } else if wanted < SMALL_READ_BYTES {
            WINDOW_BYTES
        } else {
            exact
        };
        let end = self.position.saturating_add(len).min(self.size);
        // At the end of a file, what precedes the position comes along: there a footer's length is read before it.
        let start = if !goes_on && wanted < SMALL_READ_BYTES {
            self.position.min(end.saturating_sub(WINDOW_BYTES))
        } else {
            self.position
        };
        self.part = self.remote.read(&self.key, start..end, stop)?;
        self.start = start;
        self.is_window = goes_on || len > exact;
        Ok(())
    }
}

impl Read for RemoteReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_some(buf, None)
    }
}

impl Seek for RemoteReader {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        let position = match pos {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "a position before the file's beginning",
            )
        })?;
        Ok(self.position)
    }
}
