//! The video stream of an open file: its headers, its packets, and its bytes.

use std::collections::BTreeMap;
use std::io::SeekFrom;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cpu::ffi::{Likeness, Parameters};
use crate::error::{Error, Place};
use crate::index::PacketIndex;
use crate::limits::READ_AHEAD_BYTES;
use crate::video::Media;

/// What all readers of a stream share.
pub(crate) struct Stream {
    /// Unlike that of any other stream of the process.
    pub(crate) id: u64,
    pub(crate) place: Arc<Place>,
    pub(crate) index: PacketIndex,
    pub(crate) parameters: Parameters,
    pub(crate) likeness: Likeness,
    pub(crate) max_pixels: u64,
    file: Mutex<File>,
    /// Keyframes at which decoding cannot start, and the earlier ones at which it has to.
    detours: Mutex<BTreeMap<usize, usize>>,
}

/// The media, and where it stands.
struct File {
    media: Box<dyn Media>,
    /// None when unknown.
    position: Option<u64>,
}

/// Encoded bytes of a stream, read before they are decoded.
///
/// Reading and decoding can then be told apart in time, and a GOP costs one read rather than one a packet.
#[derive(Debug, Default)]
pub struct Encoded {
    /// Where in the file the bytes start.
    start: u64,
    bytes: Vec<u8>,
}

impl Encoded {
    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Where the bytes at `pos` of the file are, if all of them are here.
    fn find(&self, pos: u64, len: usize) -> Option<Range<usize>> {
        let start = usize::try_from(pos.checked_sub(self.start)?).ok()?;
        let end = start.checked_add(len)?;
        (end <= self.bytes.len()).then_some(start..end)
    }
}

impl Stream {
    pub(crate) fn new(
        place: Place,
        index: PacketIndex,
        parameters: Parameters,
        max_pixels: u64,
        media: Box<dyn Media>,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            place: Arc::new(place),
            index,
            likeness: parameters.likeness(),
            parameters,
            max_pixels,
            file: Mutex::new(File {
                media,
                position: None,
            }),
            detours: Mutex::default(),
        }
    }

    /// Where decoding that should start at the keyframe `start` is known to have to start.
    pub(crate) fn detour(&self, start: usize) -> usize {
        lock(&self.detours).get(&start).copied().unwrap_or(start)
    }

    pub(crate) fn add_detour(&self, start: usize, earlier: usize) {
        lock(&self.detours).insert(start, earlier);
    }

    /// The error for a frame that no keyframe leads to.
    pub(crate) fn no_start(&self, packet: usize) -> Error {
        let what = "no keyframe precedes it in the file, so that its decoding can start nowhere";
        self.place.decode(self.index.packet_s(packet), what, None)
    }

    /// Reads packet `first` and those after it, up to `last`, as far as they lie behind one another in the file and make no more than
    /// [`READ_AHEAD_BYTES`]; the first in any case.
    pub(crate) fn read(&self, first: usize, last: usize) -> Result<Encoded, Error> {
        let packets = &self.index.packets()[first..=last];
        let start = packets[0].pos;
        let mut end = start;
        for packet in packets {
            let next = packet.pos + u64::from(packet.size);
            if packet.pos != end || (end > start && next - start > READ_AHEAD_BYTES) {
                break;
            }
            end = next;
        }
        let len = usize::try_from(end - start).expect("READ_AHEAD_BYTES and a packet's size fit");
        let mut bytes = Vec::new();
        self.read_bytes(start, len, &mut bytes).map_err(|source| {
            self.place.io(
                format!("read {len} bytes at byte {start}, from packet {first} on,"),
                source,
            )
        })?;
        Ok(Encoded { start, bytes })
    }

    fn read_bytes(&self, start: u64, len: usize, bytes: &mut Vec<u8>) -> std::io::Result<()> {
        let mut file = lock(&self.file);
        if file.position.take() != Some(start) {
            file.media.seek(SeekFrom::Start(start))?;
        }
        // The scan has checked that the file is long enough for this.
        bytes.resize(len, 0);
        file.media.read_exact(bytes)?;
        file.position = Some(start + len as u64);
        Ok(())
    }

    /// The bytes of packet `number`, from `encoded` or else from the file, together with those up to packet `last`.
    pub(crate) fn packet_bytes<'e>(
        &self,
        encoded: &'e mut Encoded,
        number: usize,
        last: usize,
    ) -> Result<&'e [u8], Error> {
        let packet = self.index.packets()[number];
        let (pos, len) = (packet.pos, packet.size as usize);
        if encoded.find(pos, len).is_none() {
            *encoded = self.read(number, last)?;
        }
        let range = encoded
            .find(pos, len)
            .expect("what was read begins with this packet");
        Ok(&encoded.bytes[range])
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("place", &self.place)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// A panic of the media leaves nothing half done: the position is unknown then, and a detour is there or not.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
