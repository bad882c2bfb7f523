//! Codec parameters and the decoder itself.

use std::ffi::{CStr, c_int};
use std::ptr::{self, NonNull};

use rusty_ffmpeg::ffi;

use super::frame::Frame;
use super::packet::PacketBuffer;
use super::{check, out_of_memory, silence_log, static_text};
use crate::error::{Error, FfmpegError, Place};

/// The codecs of which a file's header is read without FFmpeg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Av1,
    H264,
    Hevc,
}

/// What a file's header says to a decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) codec: Codec,
    /// The four letters by which the file calls the codec.
    pub(crate) tag: [u8; 4],
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) color: Option<Color>,
    /// How many frames at most are decoded before one that is shown before them.
    pub(crate) reorder_depth: usize,
    /// The codec's own headers.
    pub(crate) extradata: Vec<u8>,
}

/// How colours are coded, by the numbers of ISO/IEC 23091-2, which are FFmpeg's too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Color {
    primaries: u16,
    transfer: u16,
    matrix: u16,
    is_full_range: Option<bool>,
}

impl Color {
    /// Reads what a `colr` box holds. None for other kinds of it, such as colour profiles.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = payload.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let is_full_range = match (payload.get(..4)?, payload.len()) {
            (b"nclx", 11) => Some(payload[10] >> 7 == 1),
            (b"nclc", 10) => None,
            _ => return None,
        };
        Some(Self {
            primaries: number(4)?,
            transfer: number(6)?,
            matrix: number(8)?,
            is_full_range,
        })
    }

    /// Numbers that FFmpeg does not know count as unspecified, as its demuxer has it.
    fn set(self, raw: &mut ffi::AVCodecParameters) {
        // SAFETY: any number is allowed; the results are string constants, or null.
        unsafe {
            if !ffi::av_color_primaries_name(self.primaries.into()).is_null() {
                raw.color_primaries = self.primaries.into();
            }
            if !ffi::av_color_transfer_name(self.transfer.into()).is_null() {
                raw.color_trc = self.transfer.into();
            }
            if !ffi::av_color_space_name(self.matrix.into()).is_null() {
                raw.color_space = self.matrix.into();
            }
        }
        match self.is_full_range {
            Some(true) => raw.color_range = ffi::AVCOL_RANGE_JPEG,
            Some(false) => raw.color_range = ffi::AVCOL_RANGE_MPEG,
            None => {}
        }
    }
}

/// Owner of what a decoder must know before the first packet: the codec and its headers.
#[derive(Debug)]
pub(crate) struct Parameters(NonNull<ffi::AVCodecParameters>);

impl Parameters {
    /// # Safety
    ///
    /// `original` points to initialised parameters that nobody writes during the call.
    pub(super) unsafe fn copy_of(
        original: *const ffi::AVCodecParameters,
    ) -> Result<Self, FfmpegError> {
        // SAFETY: no arguments; null is an error.
        let copy = NonNull::new(unsafe { ffi::avcodec_parameters_alloc() })
            .map(Self)
            .ok_or_else(out_of_memory)?;
        // SAFETY: the copy is ours, the original is the caller's promise. The copy is deep.
        check(unsafe { ffi::avcodec_parameters_copy(copy.0.as_ptr(), original) })?;
        Ok(copy)
    }

    /// The codec's headers, as the file has them; empty where it has none.
    pub(crate) fn extradata(&self) -> &[u8] {
        let raw = self.get();
        let len = usize::try_from(raw.extradata_size).unwrap_or(0);
        if raw.extradata.is_null() {
            return &[];
        }
        // SAFETY: not null, of `extradata_size` bytes, and written by nobody once made.
        unsafe { std::slice::from_raw_parts(raw.extradata, len) }
    }

    /// What an open decoder depends on: two streams that agree in this can share one.
    pub(crate) fn likeness(&self) -> Likeness {
        let raw = self.get();
        Likeness {
            codec: raw.codec_id,
            codec_tag: raw.codec_tag,
            size: (raw.width, raw.height),
            color: (
                raw.color_range,
                raw.color_primaries,
                raw.color_trc,
                raw.color_space,
            ),
            format: raw.format,
            video_delay: raw.video_delay,
            extradata: self.extradata().into(),
        }
    }

    fn get(&self) -> &ffi::AVCodecParameters {
        // SAFETY: allocated, initialised and written by nobody once made.
        unsafe { self.0.as_ref() }
    }

    /// Takes them from a file's header, as FFmpeg's demuxer would.
    pub(crate) fn from_header(header: &Header) -> Result<Self, FfmpegError> {
        let side = |pixels: u32| c_int::try_from(pixels).map_err(|_too_large| out_of_memory());
        let (width, height) = (side(header.width)?, side(header.height)?);
        let len = header.extradata.len();
        let extradata_size = c_int::try_from(len).map_err(|_too_long| out_of_memory())?;
        // SAFETY: no arguments; null is an error.
        let made = NonNull::new(unsafe { ffi::avcodec_parameters_alloc() })
            .map(Self)
            .ok_or_else(out_of_memory)?;
        let raw = made.0.as_ptr();
        // SAFETY: null is handled. Decoders may read zeros for as long as the padding behind the headers.
        let extradata: *mut u8 =
            unsafe { ffi::av_mallocz(len + ffi::AV_INPUT_BUFFER_PADDING_SIZE as usize) }.cast();
        if extradata.is_null() {
            return Err(out_of_memory());
        }
        // SAFETY: allocated with room for `len` bytes, and freed with the parameters, which are allocated, initialised and ours.
        unsafe {
            extradata.copy_from_nonoverlapping(header.extradata.as_ptr(), len);
            (*raw).extradata = extradata;
            (*raw).extradata_size = extradata_size;
            (*raw).codec_type = ffi::AVMEDIA_TYPE_VIDEO;
            (*raw).codec_id = match header.codec {
                Codec::Av1 => ffi::AV_CODEC_ID_AV1,
                Codec::H264 => ffi::AV_CODEC_ID_H264,
                Codec::Hevc => ffi::AV_CODEC_ID_HEVC,
            };
            (*raw).codec_tag = u32::from_le_bytes(header.tag);
            (*raw).width = width;
            (*raw).height = height;
            // The other decoders find it in the stream.
            if header.codec == Codec::H264 {
                (*raw).video_delay = c_int::try_from(header.reorder_depth).unwrap_or(0);
            }
            if let Some(color) = header.color {
                color.set(&mut *raw);
            }
        }
        Ok(made)
    }

    /// FFmpeg's name for the codec.
    pub(crate) fn codec_name(&self) -> &'static str {
        // SAFETY: the names are string constants.
        unsafe { static_text(ffi::avcodec_get_name(self.get().codec_id)) }
    }

    /// The number of pixels that the headers announce; 0 where they do not.
    pub(crate) fn num_pixels(&self) -> u64 {
        let side = |pixels: c_int| u64::try_from(pixels).unwrap_or(0);
        side(self.get().width) * side(self.get().height)
    }
}

/// See [`Parameters::likeness`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Likeness {
    codec: ffi::AVCodecID,
    codec_tag: u32,
    size: (c_int, c_int),
    color: (
        ffi::AVColorRange,
        ffi::AVColorPrimaries,
        ffi::AVColorTransferCharacteristic,
        ffi::AVColorSpace,
    ),
    format: c_int,
    video_delay: c_int,
    extradata: Box<[u8]>,
}

// SAFETY: parameters belong to no thread, and nobody writes them once made.
unsafe impl Send for Parameters {}
// SAFETY: as above.
unsafe impl Sync for Parameters {}

impl Drop for Parameters {
    fn drop(&mut self) {
        let mut parameters = self.0.as_ptr();
        // SAFETY: ours, and not used again.
        unsafe { ffi::avcodec_parameters_free(&raw mut parameters) };
    }
}

/// What a decoder answers when asked for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// There is one: see [`Decoder::frame`].
    Frame,
    /// Not without another packet.
    NeedsPacket,
    /// Not any more, until [`Decoder::restart`].
    End,
}

/// Owner of an open decoder, the packet that it is fed with, and the frame that it fills.
///
/// Invariant: once `open` returns, `context` is open and has one thread.
#[derive(Debug)]
pub(crate) struct Decoder {
    context: NonNull<ffi::AVCodecContext>,
    packet: PacketBuffer,
    frame: Frame,
}

// SAFETY: a decoder belongs to no thread: FFmpeg allows any thread to use it, one at a time, and `&mut self` is that. `thread_count`
// is 1, so it has no threads of its own.
unsafe impl Send for Decoder {}

impl Decoder {
    /// Opens the software decoder for a stream.
    ///
    /// One thread: frame threads make the access to single frames slower, and whoever calls us has threads of its own. Every
    /// error is reported: a damaged frame is an error rather than a wrong picture. (Error concealment stays on, for its bookkeeping is how
    /// missing parts are noticed, and without it FFmpeg marks sound pictures of several slices as damaged. A picture in which something
    /// was concealed is refused by its mark.)
    pub(crate) fn open(
        parameters: &Parameters,
        max_pixels: u64,
        place: &Place,
    ) -> Result<Self, Error> {
        silence_log();
        let codec = find_codec(parameters, place)?;
        let failed = |source| {
            place.malformed(
                format!(
                    "the {} decoder could not be opened",
                    parameters.codec_name()
                ),
                Some(source),
            )
        };
        let (packet, frame) = (
            PacketBuffer::new().map_err(failed)?,
            Frame::new().map_err(failed)?,
        );
        // SAFETY: `codec` is an entry of FFmpeg's constant table; null is an error.
        let context = NonNull::new(unsafe { ffi::avcodec_alloc_context3(codec) })
            .ok_or_else(|| failed(out_of_memory()))?;
        // From here on, Drop frees the context.
        let decoder = Self {
            context,
            packet,
            frame,
        };
        let raw = decoder.context.as_ptr();
        // SAFETY: allocated, and not yet open; the parameters are initialised, and copied.
        check(unsafe { ffi::avcodec_parameters_to_context(raw, parameters.get()) })
            .map_err(failed)?;
        // SAFETY: as above: these fields are the user's to set before opening.
        unsafe {
            (*raw).thread_count = 1;
            (*raw).err_recognition = (ffi::AV_EF_CRCCHECK
                | ffi::AV_EF_BITSTREAM
                | ffi::AV_EF_BUFFER
                | ffi::AV_EF_EXPLODE) as c_int;
            // Else the H.264 decoder, when drained, keeps back what follows an open GOP's keyframe, although it is sound. What it
            // marks as corrupt is refused by whoever takes the frame.
            (*raw).flags |= ffi::AV_CODEC_FLAG_OUTPUT_CORRUPT as c_int;
            (*raw).max_pixels = i64::try_from(max_pixels).unwrap_or(i64::MAX);
        }
        // SAFETY: allocated, not yet open, and made for this codec.
        check(unsafe { ffi::avcodec_open2(raw, codec, ptr::null_mut()) }).map_err(failed)?;
        Ok(decoder)
    }

    /// FFmpeg's name for the decoder.
    pub(crate) fn name(&self) -> &'static str {
        // SAFETY: an open context has a codec, an entry of FFmpeg's constant table with a constant name.
        unsafe { static_text((*self.context.as_ref().codec).name) }
    }

    /// Sends the packet that is known as `id`; its frame comes out under this number.
    ///
    /// The number travels as the packet's pts, which decoders hand on unread. Unlike a real pts it is unique in every file.
    pub(crate) fn send(&mut self, id: i64, bytes: &[u8]) -> Result<(), FfmpegError> {
        self.packet.fill(bytes, id)?;
        // SAFETY: an open context and a full packet, of which the decoder takes its own reference.
        let sent =
            check(unsafe { ffi::avcodec_send_packet(self.context.as_ptr(), self.packet.as_ptr()) });
        self.packet.clear();
        sent.map(|_| ())
    }

    /// Says that no packet follows: what the decoder holds back comes out.
    pub(crate) fn drain(&mut self) -> Result<(), FfmpegError> {
        // SAFETY: an open context; null is the sign for the end.
        check(unsafe { ffi::avcodec_send_packet(self.context.as_ptr(), ptr::null()) }).map(|_| ())
    }

    /// Takes the next frame, in the order shown, where there is one.
    pub(crate) fn receive(&mut self) -> Result<Received, FfmpegError> {
        // SAFETY: an open context and an allocated frame, which FFmpeg empties first.
        let code =
            unsafe { ffi::avcodec_receive_frame(self.context.as_ptr(), self.frame.as_ptr()) };
        match code {
            0.. => Ok(Received::Frame),
            ffi::AVERROR_EOF => Ok(Received::End),
            code if code == ffi::AVERROR(ffi::EAGAIN) => Ok(Received::NeedsPacket),
            code => Err(FfmpegError::new(code)),
        }
    }

    /// The frame last received.
    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The frame last received, to keep: [`Frame::take`].
    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        &mut self.frame
    }

    /// Forgets all packets and frames; decoding then starts at a keyframe.
    pub(crate) fn restart(&mut self) {
        // FFmpeg 7.1's HEVC decoder hands out old frames after a flush unless they were taken before it.
        while matches!(self.receive(), Ok(Received::Frame)) {}
        // SAFETY: an open context.
        unsafe { ffi::avcodec_flush_buffers(self.context.as_ptr()) };
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        let mut context = self.context.as_ptr();
        // SAFETY: ours, open or not, and not used again.
        unsafe { ffi::avcodec_free_context(&raw mut context) };
    }
}

/// The software decoder for a codec, if this FFmpeg has one. For AV1 that must be asked for by name: FFmpeg's own `av1` only drives
/// hardware.
fn software_decoder(id: ffi::AVCodecID) -> Option<*const ffi::AVCodec> {
    // SAFETY: the names live for ever; the result is null or an entry of FFmpeg's constant table.
    unsafe {
        if id == ffi::AV_CODEC_ID_AV1 {
            [c"libdav1d", c"libaom-av1"]
                .iter()
                .map(|name| ffi::avcodec_find_decoder_by_name(name.as_ptr()))
                .find(|codec| !codec.is_null())
        } else {
            Some(ffi::avcodec_find_decoder(id)).filter(|codec| !codec.is_null())
        }
    }
}

/// The name of the software decoder for a codec, both as FFmpeg spells them.
pub(crate) fn decoder_name(codec: &CStr) -> Option<&'static str> {
    // SAFETY: the name is NUL-terminated; the result is null or an entry of FFmpeg's constant table.
    let descriptor = unsafe { ffi::avcodec_descriptor_get_by_name(codec.as_ptr()).as_ref() }?;
    let codec = software_decoder(descriptor.id)?;
    // SAFETY: an entry of FFmpeg's constant table, whose name is never freed.
    Some(unsafe { static_text((*codec).name) })
}

fn find_codec(parameters: &Parameters, place: &Place) -> Result<*const ffi::AVCodec, Error> {
    let id = parameters.get().codec_id;
    software_decoder(id).ok_or_else(|| {
        let remedy = if id == ffi::AV_CODEC_ID_AV1 {
            "install an FFmpeg that was built with libdav1d, as Debian's and Ubuntu's are"
        } else {
            "install an FFmpeg that was built with one, or encode the video as AV1, H.264 or HEVC"
        };
        place.no_decoder(parameters.codec_name().to_owned(), remedy)
    })
}
