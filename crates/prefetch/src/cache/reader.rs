//! A remote file, some of which is at hand.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::fetcher::Shared;
use super::piece::{FilePieces, Piece, State};
use crate::Error;
use crate::remote::RemoteReader;

/// An open file that is read from the cache where it can be.
pub(crate) struct CachedReader {
    shared: Arc<Shared>,
    pieces: Arc<FilePieces>,
    /// Reads what is not in the cache, and knows the position.
    source: RemoteReader,
    /// The piece that was read from last.
    open: Option<(Arc<Piece>, File)>,
}

impl CachedReader {
    pub(super) fn open(shared: Arc<Shared>, key: &str) -> Result<Self, Error> {
        Ok(Self {
            source: RemoteReader::open(Arc::clone(shared.remote()), key)?,
            pieces: shared.file(key),
            shared,
            open: None,
        })
    }

    /// The piece at a position, once it is in the cache; or else how many bytes to read from the source at most.
    fn piece_at(&self, position: u64) -> Result<Arc<Piece>, u64> {
        let piece = match self.pieces.find(position) {
            Ok(piece) => piece,
            Err(next) => return Err(next.map_or(u64::MAX, |next| next - position)),
        };
        loop {
            // Not left to the threads that fetch: this may be one of them, and they may all be here.
            self.shared.fetch(&piece);
            match piece.wait_under_way(&|| self.shared.is_stopped()) {
                State::Here => return Ok(piece),
                State::Waiting { .. } if !self.shared.is_stopped() => {}
                // Whether it failed is told by reading it once more, where it is wanted.
                _ => return Err(piece.spec.range.end - position),
            }
        }
    }

    fn read_piece(
        &mut self,
        piece: Arc<Piece>,
        position: u64,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        let is_open = matches!(&self.open, Some((open, _)) if Arc::ptr_eq(open, &piece));
        if !is_open {
            let file = File::open(self.shared.path(&piece))?;
            self.open = Some((Arc::clone(&piece), file));
        }
        let (_, file) = self.open.as_ref().expect("it was just opened");
        file.read_at(buf, position - piece.spec.range.start)
    }
}

impl Read for CachedReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let position = self.source.position();
        if buf.is_empty() || position >= self.source.size() {
            return Ok(0);
        }
        let at_most = match self.piece_at(position) {
            Ok(piece) => {
                let at_most = piece.spec.range.end - position;
                match self.read_piece(piece, position, up_to(buf, at_most)) {
                    Ok(len) if len > 0 => {
                        self.source.seek(SeekFrom::Current(len as i64))?;
                        return Ok(len);
                    }
                    // Whoever needed it has let go of it, or somebody has cleared the folder.
                    _ => self.open = None,
                }
                at_most
            }
            Err(at_most) => at_most,
        };
        self.source
            .read_unless(up_to(buf, at_most), self.shared.stop_mark())
    }
}

impl Seek for CachedReader {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.source.seek(pos)
    }
}

impl std::fmt::Debug for CachedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedReader")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// The first so many bytes of a buffer, if it has more.
fn up_to(buf: &mut [u8], len: u64) -> &mut [u8] {
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(buf.len());
    &mut buf[..len]
}
