//! The packet index, read with FFmpeg's MP4 demuxer through a reader of ours.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::io::{self, Read as _, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};

use rusty_ffmpeg::ffi;

use super::decoder::Parameters;
use super::packet::PacketBuffer;
use super::{check, out_of_memory, silence_log};
use crate::anatomy::Appearance;
use crate::error::{Error, FfmpegError, Place};
use crate::index::{Packet, PacketIndex};
use crate::limits::{MAX_PACKET_BYTES, MAX_PACKETS};
use crate::time::TimeBase;
use crate::video::Media;

/// What FFmpeg's reader buffers. Larger reads go past the buffer.
const IO_BUFFER_BYTES: usize = 1 << 15;

/// What a file's headers and packets say.
#[derive(Debug)]
pub(crate) struct Scan {
    /// What a decoder of the video stream must know.
    pub(crate) parameters: Parameters,
    /// Its packets.
    pub(crate) index: PacketIndex,
}

/// Reads the headers and the packet index of the first video stream.
///
/// Only MP4 and its kin (MOV, fragmented MP4) are read, from `media` alone: whatever other files the headers name stay unopened.
pub(crate) fn scan(media: &mut dyn Media, file_bytes: u64, place: &Place) -> Result<Scan, Error> {
    silence_log();
    let mut demuxer = Demuxer::open(media, file_bytes, place)?;
    let stream = demuxer
        .select_video_stream()
        .ok_or_else(|| place.malformed("the file has no video stream", None))?;
    let parameters = demuxer.parameters(stream).map_err(|source| {
        place.malformed("could not copy the stream's parameters", Some(source))
    })?;
    let base = demuxer.stream(stream).time_base;
    let time_base = TimeBase::new(base.num, base.den).ok_or_else(|| {
        place.malformed(
            format!(
                "the time base of the video stream is {}/{}, which is no length of time",
                base.num, base.den
            ),
            None,
        )
    })?;
    let (packets, end) = demuxer.read_packets(stream, place)?;
    let index = PacketIndex::new(packets, time_base, end)
        .ok_or_else(|| place.malformed("the video stream shows no frame", None))?;
    Ok(Scan { parameters, index })
}

/// Owner of an open demuxer.
///
/// Invariants: `context` is open and ours, it reads through `io` alone, and it is closed before `io` is freed.
#[derive(Debug)]
struct Demuxer<'m> {
    context: NonNull<ffi::AVFormatContext>,
    io: ReaderIo<'m>,
}

impl<'m> Demuxer<'m> {
    fn open(media: &'m mut dyn Media, file_bytes: u64, place: &Place) -> Result<Self, Error> {
        let io = ReaderIo::new(media, file_bytes)
            .map_err(|source| place.malformed("could not set up the demuxer", Some(source)))?;
        // SAFETY: no arguments; null is handled on the next line.
        let context = NonNull::new(unsafe { ffi::avformat_alloc_context() }).ok_or_else(|| {
            place.malformed("could not set up the demuxer", Some(out_of_memory()))
        })?;
        // SAFETY: a name that lives for ever; a null result is handled below.
        let format = unsafe { ffi::av_find_input_format(c"mov".as_ptr()) };
        let mut raw = context.as_ptr();
        // SAFETY: `context` is freshly allocated and ours, and `io` outlives it: it moves into the same owner below, or is dropped after
        // `avformat_open_input` has freed the context.
        unsafe {
            (*raw).pb = io.context.as_ptr();
            (*raw).flags |= (ffi::AVFMT_FLAG_CUSTOM_IO
                | ffi::AVFMT_FLAG_NOPARSE
                | ffi::AVFMT_FLAG_NOFILLIN) as c_int;
            // No file but ours, whatever the headers refer to.
            (*raw).io_open = Some(refuse_to_open);
        }
        if format.is_null() {
            // SAFETY: ours, and not used again.
            unsafe { ffi::avformat_free_context(raw) };
            return Err(place.unsupported(
                "MP4 demuxing by this FFmpeg",
                "install one that was built with the mov demuxer",
            ));
        }
        // SAFETY: all pointers are valid or null where null is allowed. On failure the context is freed, and `raw` set to null.
        let code =
            unsafe { ffi::avformat_open_input(&raw mut raw, ptr::null(), format, ptr::null_mut()) };
        match (check(code), NonNull::new(raw)) {
            (Ok(_), Some(context)) => {
                let mut demuxer = Self { context, io };
                // FFmpeg may succeed on what it has read before a failure.
                demuxer.io.take_failure(place, "read the headers")?;
                Ok(demuxer)
            }
            (Ok(_), None) => Err(place.malformed("could not read the headers", None)),
            (Err(source), _) => {
                let mut io = io;
                io.take_failure(place, "read the headers")?;
                Err(describe_foreign_file(&mut io, file_bytes, place, source))
            }
        }
    }

    fn streams(&self) -> &[*mut ffi::AVStream] {
        // SAFETY: an open context, by the type's invariant, has `nb_streams` pointers in `streams`, which change only in calls that
        // borrow `self` mutably.
        unsafe {
            let context = self.context.as_ref();
            if context.nb_streams == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(context.streams, context.nb_streams as usize)
            }
        }
    }

    fn stream(&self, index: usize) -> &ffi::AVStream {
        // SAFETY: a stream's pointer in an open context is valid until it is closed.
        unsafe { &*self.streams()[index] }
    }

    /// The first stream of moving pictures, with all others turned off.
    fn select_video_stream(&mut self) -> Option<usize> {
        let is_video = |index: usize| {
            let stream = self.stream(index);
            // SAFETY: an open context's streams have parameters.
            let kind = unsafe { (*stream.codecpar).codec_type };
            kind == ffi::AVMEDIA_TYPE_VIDEO
                && stream.disposition & ffi::AV_DISPOSITION_ATTACHED_PIC as c_int == 0
        };
        let selected = (0..self.streams().len()).find(|&index| is_video(index))?;
        for (index, &stream) in self.streams().iter().enumerate() {
            if index != selected {
                // SAFETY: valid, as in `stream`; FFmpeg lets its user write this field.
                unsafe { (*stream).discard = ffi::AVDISCARD_ALL };
            }
        }
        Some(selected)
    }

    fn parameters(&self, stream: usize) -> Result<Parameters, FfmpegError> {
        // SAFETY: an open context's streams have parameters, valid for this call.
        unsafe { Parameters::copy_of(self.stream(stream).codecpar) }
    }

    /// All packets of a stream in decode order, and the largest end of a shown one.
    fn read_packets(&mut self, stream: usize, place: &Place) -> Result<(Vec<Packet>, i64), Error> {
        let file_bytes = self.io.file_bytes();
        let (mut packets, mut end) = (Vec::new(), i64::MIN);
        let mut raw = PacketBuffer::new()
            .map_err(|source| place.malformed("could not set up the demuxer", Some(source)))?;
        loop {
            // SAFETY: an open context and an allocated packet, by the invariants of their owners.
            let code = unsafe { ffi::av_read_frame(self.context.as_ptr(), raw.as_ptr()) };
            self.io.take_failure(place, "read the packets")?;
            if code == ffi::AVERROR_EOF {
                break;
            }
            let number = packets.len();
            check(code).map_err(|source| {
                place.malformed(format!("packet {number} could not be read"), Some(source))
            })?;
            if usize::try_from(raw.get().stream_index) == Ok(stream) {
                if number >= MAX_PACKETS {
                    return Err(place.over_limit(
                        "the number of packets",
                        number as u64 + 1,
                        MAX_PACKETS as u64,
                    ));
                }
                let (packet, packet_end) = check_packet(&raw, number, file_bytes, place)?;
                if packet.shown {
                    end = end.max(packet_end);
                }
                packets.push(packet);
            }
            raw.clear();
        }
        self.check_complete(stream, place)?;
        Ok((packets, end))
    }

    /// A file that is cut short reads as one that ends early: whatever the demuxer's own index names must lie within the file.
    fn check_complete(&self, stream: usize, place: &Place) -> Result<(), Error> {
        let file_bytes = self.io.file_bytes();
        // Older versions lack the `const`, and do not write.
        let stream = ptr::from_ref(self.stream(stream)).cast_mut();
        // SAFETY: a valid stream of an open context.
        let num_entries = unsafe { ffi::avformat_index_get_entries_count(stream) };
        for number in 0..num_entries {
            // SAFETY: as above. The entry is null, or valid until the next call on the context.
            let entry = unsafe { ffi::avformat_index_get_entry(stream, number).as_ref() };
            let place_in_file =
                entry.map(|entry| (u64::try_from(entry.pos), u64::try_from(entry.size())));
            if let Some((Ok(pos), Ok(size))) = place_in_file
                && pos.saturating_add(size) > file_bytes
            {
                return Err(place.truncated(usize::try_from(number).unwrap_or(0), pos, file_bytes));
            }
        }
        Ok(())
    }
}

/// What the index keeps of a packet, and the end of its frame; an error where its values cannot be meant.
fn check_packet(
    raw: &PacketBuffer,
    number: usize,
    file_bytes: u64,
    place: &Place,
) -> Result<(Packet, i64), Error> {
    let packet = raw.get();
    let has = |flag: u32| packet.flags & flag as c_int != 0;
    // What FFmpeg puts together itself has no place in the file.
    let (Ok(pos), Ok(size)) = (u64::try_from(packet.pos), u32::try_from(packet.size)) else {
        let what = format!(
            "packet {number} has no place in the file (position {}, size {})",
            packet.pos, packet.size
        );
        return Err(place.malformed(what, None));
    };
    if has(ffi::AV_PKT_FLAG_CORRUPT) || pos.saturating_add(size.into()) > file_bytes {
        return Err(place.truncated(number, pos, file_bytes));
    }
    if size > MAX_PACKET_BYTES {
        return Err(place.over_limit(
            "the size of a packet in bytes",
            size.into(),
            MAX_PACKET_BYTES.into(),
        ));
    }
    if packet.pts == ffi::AV_NOPTS_VALUE {
        return Err(place.malformed(format!("packet {number} has no presentation time"), None));
    }
    if raw.has_new_extradata() {
        return Err(place.unsupported(
            format!("a second set of codec parameters, from packet {number} on,"),
            "split the file there, or encode it again as one",
        ));
    }
    let shown = !has(ffi::AV_PKT_FLAG_DISCARD);
    let key = has(ffi::AV_PKT_FLAG_KEY);
    let end = packet.pts.saturating_add(packet.duration.max(0));
    Ok((
        Packet {
            pts: packet.pts,
            dts: packet.dts,
            pos,
            size,
            key,
            shown,
        },
        end,
    ))
}

impl Drop for Demuxer<'_> {
    fn drop(&mut self) {
        let mut context = self.context.as_ptr();
        // SAFETY: open and ours, by the type's invariant, and not used again. `AVFMT_FLAG_CUSTOM_IO` leaves `io` to its owner, which
        // is dropped after this.
        unsafe { ffi::avformat_close_input(&raw mut context) };
    }
}

/// What a file that is no video most likely is.
fn describe_foreign_file(
    io: &mut ReaderIo<'_>,
    file_bytes: u64,
    place: &Place,
    source: FfmpegError,
) -> Error {
    let mut head = Vec::new();
    let media = &mut *io.reader().media;
    let read = media
        .seek(SeekFrom::Start(0))
        .and_then(|_| media.take(64).read_to_end(&mut head));
    if let Err(source) = read {
        return place.io("read the headers", source);
    }
    let appearance = Appearance::of(&head);
    let what = match (appearance, appearance.remedy()) {
        (Appearance::Other, _) => format!(
            "this file of {file_bytes} bytes is no MP4 file: it begins with \"{}\"",
            head[..head.len().min(16)].escape_ascii()
        ),
        (_, Some(remedy)) => {
            format!("this is {appearance} of {file_bytes} bytes, not a video; {remedy}")
        }
        (_, None) => format!(
            "this MP4 file of {file_bytes} bytes has no sound header (moov): cut short, or a recording that was not finished"
        ),
    };
    place.malformed(what, Some(source))
}

/// Owner of an FFmpeg I/O context that reads from a `Media`.
///
/// Invariants: `reader` comes from `Box::into_raw`, is freed only by Drop, and is touched only through this pointer: by the callbacks
/// while FFmpeg runs, and by `reader()` while it does not.
#[derive(Debug)]
struct ReaderIo<'m> {
    context: NonNull<ffi::AVIOContext>,
    reader: NonNull<Reader<'m>>,
}

/// What the callbacks see.
struct Reader<'m> {
    media: &'m mut dyn Media,
    file_bytes: u64,
    failure: Option<Failure>,
}

/// Why a callback returned an error number, which cannot say it.
enum Failure {
    Io(io::Error),
    Panic(Box<dyn Any + Send>),
}

impl<'m> ReaderIo<'m> {
    fn new(media: &'m mut dyn Media, file_bytes: u64) -> Result<Self, FfmpegError> {
        // SAFETY: null is handled.
        let buffer = unsafe { ffi::av_malloc(IO_BUFFER_BYTES) };
        if buffer.is_null() {
            return Err(out_of_memory());
        }
        let reader = Box::into_raw(Box::new(Reader {
            media,
            file_bytes,
            failure: None,
        }));
        // SAFETY: the buffer is FFmpeg's own and of this size; the callbacks take the reader that they are given here, which lives until
        // the context is freed.
        let context = unsafe {
            ffi::avio_alloc_context(
                buffer.cast(),
                IO_BUFFER_BYTES as c_int,
                0,
                reader.cast::<c_void>(),
                Some(read),
                None,
                Some(seek),
            )
        };
        let reader = NonNull::new(reader).expect("a Box is never null");
        NonNull::new(context)
            .map(|context| Self { context, reader })
            .ok_or_else(|| {
                // SAFETY: both are ours, and nothing else has them now.
                unsafe {
                    ffi::av_free(buffer);
                    drop(Box::from_raw(reader.as_ptr()));
                }
                out_of_memory()
            })
    }

    fn reader(&mut self) -> &mut Reader<'m> {
        // SAFETY: valid, by the type's invariant; FFmpeg does not run while this borrow lives, since every call into it needs the owner.
        unsafe { self.reader.as_mut() }
    }

    fn file_bytes(&self) -> u64 {
        // SAFETY: as in `reader`.
        unsafe { self.reader.as_ref() }.file_bytes
    }

    /// The reader's own failure since the last call: its error, or its panic, which goes on here.
    fn take_failure(&mut self, place: &Place, action: &str) -> Result<(), Error> {
        match self.reader().failure.take() {
            None => Ok(()),
            Some(Failure::Io(source)) => Err(place.io(action, source)),
            Some(Failure::Panic(payload)) => resume_unwind(payload),
        }
    }
}

impl Drop for ReaderIo<'_> {
    fn drop(&mut self) {
        let mut context = self.context.as_ptr();
        // SAFETY: both are ours. FFmpeg may have replaced the buffer that it was given, so the one that it has now is freed.
        unsafe {
            ffi::av_freep((&raw mut (*context).buffer).cast());
            ffi::avio_context_free(&raw mut context);
            drop(Box::from_raw(self.reader.as_ptr()));
        }
    }
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("file_bytes", &self.file_bytes)
            .finish_non_exhaustive()
    }
}

impl Reader<'_> {
    /// Runs a callback's work: a panic must not unwind into C, and an error number cannot carry what happened.
    fn guard<T>(&mut self, work: impl FnOnce(&mut dyn Media) -> io::Result<T>) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| work(&mut *self.media))) {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => self.failure.get_or_insert(Failure::Io(error)),
            Err(payload) => self.failure.get_or_insert(Failure::Panic(payload)),
        };
        None
    }
}

/// FFmpeg's read callback.
unsafe extern "C" fn read(opaque: *mut c_void, buffer: *mut u8, buffer_bytes: c_int) -> c_int {
    // SAFETY: the pointer that `ReaderIo::new` gave, of an owner that is alive while FFmpeg runs; nothing else holds a reference then.
    let reader = unsafe { &mut *opaque.cast::<Reader<'_>>() };
    let len = usize::try_from(buffer_bytes).unwrap_or(0);
    // SAFETY: FFmpeg lends `len` bytes, which may be uninitialised: they are written first.
    let buffer = unsafe {
        buffer.write_bytes(0, len);
        std::slice::from_raw_parts_mut(buffer, len)
    };
    let read = reader.guard(|media| {
        loop {
            match media.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A reader that claims more than it was given room for must not make C trust it.
                done => return done.map(|read| read.min(len)),
            }
        }
    });
    match read {
        Some(0) => ffi::AVERROR_EOF,
        Some(read) => c_int::try_from(read).expect("at most buffer_bytes"),
        None => ffi::AVERROR(ffi::EIO),
    }
}

/// FFmpeg's seek callback, which also tells the size.
unsafe extern "C" fn seek(opaque: *mut c_void, offset: i64, whence: c_int) -> i64 {
    let failed = i64::from(ffi::AVERROR(ffi::EIO));
    // SAFETY: as in `read`.
    let reader = unsafe { &mut *opaque.cast::<Reader<'_>>() };
    let whence = whence & !(ffi::AVSEEK_FORCE as c_int);
    if whence == ffi::AVSEEK_SIZE as c_int {
        return i64::try_from(reader.file_bytes).unwrap_or(i64::MAX);
    }
    let target = match u32::try_from(whence) {
        Ok(ffi::SEEK_SET) => u64::try_from(offset).ok().map(SeekFrom::Start),
        Ok(ffi::SEEK_CUR) => Some(SeekFrom::Current(offset)),
        Ok(ffi::SEEK_END) => Some(SeekFrom::End(offset)),
        _ => None,
    };
    // A file may ask for a place before its start: its own fault, not the reader's.
    let Some(target) = target else {
        return i64::from(ffi::AVERROR(ffi::EINVAL));
    };
    reader
        .guard(|media| media.seek(target))
        .map_or(failed, |position| i64::try_from(position).unwrap_or(failed))
}

/// Stands in for FFmpeg's own opening of files.
unsafe extern "C" fn refuse_to_open(
    _context: *mut ffi::AVFormatContext,
    _opened: *mut *mut ffi::AVIOContext,
    _url: *const std::ffi::c_char,
    _flags: c_int,
    _options: *mut *mut ffi::AVDictionary,
) -> c_int {
    ffi::AVERROR(ffi::EPERM)
}
