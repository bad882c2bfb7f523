//! One open video file: from times to frames.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use crate::cpu::ffi::{self, Frame, PixelFormat};
use crate::error::{Error, Place};
use crate::frame::{Kind, Pixels};
use crate::index::Packet;
use crate::limits;
use crate::mp4::{self, Mp4};
use crate::resize::Size;
use crate::stream::{Encoded, Stream};
use crate::time;
use crate::{Decoder, decoder};

/// Where the bytes of a video come from: a file, a buffer, a cache.
///
/// Any `Read + Seek + Send` is one. Packets are read whole, and in order within a GOP, so a buffer around a file gains nothing.
pub trait Media: Read + Seek + Send {}

impl<T: Read + Seek + Send> Media for T {}

/// What steers the opening of a video; all has a default.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VideoOptions {
    /// Refuse pictures of more pixels than this. Default: 67,108,864 (8192 x 8192), so that a hostile header cannot reserve more
    /// than a few hundred MB.
    pub max_pixels: u64,
    /// The size in which frames come out, whatever the size in which they are stored; the aspect ratio may change. Default: None, as stored.
    ///
    /// Colour is resized bilinearly, and antialiased where it gets smaller, as torchvision's `resize(..., antialias=True)` does it. Depth
    /// codes are not mixed: each is that of the nearest pixel.
    pub resize: Option<Size>,
}

impl Default for VideoOptions {
    fn default() -> Self {
        Self {
            max_pixels: limits::DEFAULT_MAX_PIXELS,
            resize: None,
        }
    }
}

/// What is known of an open video. Times are seconds on the file's own clock, which need not start at 0.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VideoInfo {
    /// W, in pixels, as stored.
    pub width: usize,
    /// H, in pixels, as stored.
    pub height: usize,
    /// The codec, as FFmpeg spells it: `av1`, `h264`, `hevc`.
    pub codec: String,
    /// The decoder in use, as FFmpeg spells it: `libdav1d`, `h264`.
    pub decoder: String,
    /// The pixel format, as FFmpeg spells it: `yuv420p`, `gray12le`.
    pub pixel_format: String,
    /// Colour or depth.
    pub kind: Kind,
    /// Frames per second, on average over the frames shown; 0 for a single frame of unknown duration.
    pub avg_fps: f64,
    /// The number of frames shown. Frames that an edit list cuts away do not count.
    pub num_frames: usize,
    /// The number of packets at which decoding can start.
    pub num_keyframes: usize,
    /// The time of the first frame.
    pub start_s: f64,
    /// The end of the last frame: its time and its duration.
    pub end_s: f64,
}

/// An open video: the media, and the index of its packets. For use by any number of threads.
///
/// Holds its `Media` open, and nothing else of the file but the index, 36 bytes a frame. A [`Decoder`] turns its packets into frames.
#[derive(Debug)]
pub struct Video {
    stream: Stream,
    info: VideoInfo,
    likeness: PictureLikeness,
    picture_bytes: usize,
}

impl Video {
    /// Opens the first video stream of an MP4 file (or MOV, or fragmented MP4), reads its packet index, and decodes its first frame, which
    /// tells size and pixel format.
    ///
    /// `file` and `camera` name the video in errors. Other files that the headers may refer to are never opened.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`]: the media failed.
    /// - [`Error::Malformed`]: no MP4 file (what it seems to be instead is said), no video in it, or no frame in the video.
    /// - [`Error::Truncated`]: the file ends before the packets that its index names.
    /// - [`Error::NoDecoder`]: this FFmpeg lacks the codec.
    /// - [`Error::OverLimit`]: a side over 16,384 pixels, a picture over `max_pixels`, a packet over 256 MiB, over 16,777,216 packets.
    /// - [`Error::InvalidResize`]: `resize` has a side of 0, one over 16,384 pixels, or more than `max_pixels`.
    /// - [`Error::Unsupported`]: codec parameters that change within the file.
    /// - [`Error::Decode`]: the first frame cannot be decoded.
    ///
    /// # Panics
    ///
    /// Only when `media` does; its panic passes through.
    pub fn open(
        media: Box<dyn Media>,
        file: &str,
        camera: &str,
        options: &VideoOptions,
    ) -> Result<Self, Error> {
        Self::open_with(&mut Decoder::new(), media, file, camera, options)
    }

    /// Does as [`open`](Self::open), with a decoder at hand, which may have decoded a stream like this one before.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    ///
    /// # Panics
    ///
    /// Only when `media` does.
    pub fn open_with(
        decoder: &mut Decoder,
        mut media: Box<dyn Media>,
        file: &str,
        camera: &str,
        options: &VideoOptions,
    ) -> Result<Self, Error> {
        let place = Place {
            file: file.to_owned(),
            camera: camera.to_owned(),
        };
        if let Some(size) = options.resize {
            size.check(options.max_pixels)
                .map_err(|why| place.invalid_resize(size, why))?;
        }
        let file_bytes = media
            .seek(SeekFrom::End(0))
            .map_err(|source| place.io("find the file's length", source))?;
        let ffi::Scan { parameters, index } = scan(&mut *media, file_bytes, &place)?;
        if parameters.num_pixels() > options.max_pixels {
            return Err(place.over_limit(
                "the number of pixels of a picture",
                parameters.num_pixels(),
                options.max_pixels,
            ));
        }
        let stream = Stream::new(place, index, parameters, options.max_pixels, media);
        let decoder::FirstFrame {
            likeness,
            picture_bytes,
            decoder_name,
        } = decoder.first_frame(&stream)?;
        let likeness = likeness.resized(options.resize);

        let index = &stream.index;
        let interval_s = index.frame_interval_s();
        let info = VideoInfo {
            width: likeness.width,
            height: likeness.height,
            codec: stream.parameters.codec_name().to_owned(),
            decoder: decoder_name.to_owned(),
            pixel_format: likeness.format.name().to_owned(),
            kind: likeness.kind(),
            avg_fps: if interval_s > 0.0 {
                1.0 / interval_s
            } else {
                0.0
            },
            num_frames: index.num_frames(),
            num_keyframes: index.num_keyframes(),
            start_s: index.frame_s(0),
            end_s: index.end_s(),
        };
        Ok(Self {
            stream,
            info,
            likeness,
            picture_bytes,
        })
    }

    /// What is known of the video.
    #[must_use]
    pub fn info(&self) -> &VideoInfo {
        &self.info
    }

    /// The size in which frames come out: [`VideoOptions::resize`], or else as stored.
    #[must_use]
    pub fn output_size(&self) -> Size {
        self.likeness.output_size()
    }

    /// The memory that a decoded frame takes, padding included, in bytes.
    #[must_use]
    pub fn picture_bytes(&self) -> usize {
        self.picture_bytes
    }

    /// The mean time between two frames, in seconds: `1 / avg_fps`, or 0 where that is unknown.
    ///
    /// Half of it is the widest tolerance that makes sense: any time within the video has a frame as near as that.
    #[must_use]
    pub fn frame_interval_s(&self) -> f64 {
        self.stream.index.frame_interval_s()
    }

    /// The frame nearest to a time, the earlier of two as near: its number among the frames shown, and its own time in seconds.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTime`] when `time_s` is infinite or NaN. However far the nearest frame is, it is no error here.
    pub fn nearest(&self, time_s: f64) -> Result<(usize, f64), Error> {
        if !time_s.is_finite() {
            return Err(self.place().invalid_time("time_s", time_s));
        }
        let frame = self.stream.index.nearest(time_s);
        Ok((frame, self.stream.index.frame_s(frame)))
    }

    /// The number of the frame shown nearest to a time, at most `tolerance_s` away. (Exactly `tolerance_s` is near enough, and a
    /// nanosecond more is put down to rounding.)
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidTime`]: a time that is infinite or NaN, or a tolerance that is so or negative.
    /// - [`Error::FrameNotFound`]: no frame is near enough.
    pub fn frame_at(&self, time_s: f64, tolerance_s: f64) -> Result<usize, Error> {
        time::check_tolerance(tolerance_s, self.place())?;
        let (frame, nearest_s) = self.nearest(time_s)?;
        if time::is_within((nearest_s - time_s).abs(), tolerance_s) {
            return Ok(frame);
        }
        let Place { file, camera } = self.place().clone();
        let VideoInfo { start_s, end_s, .. } = self.info;
        Err(Error::FrameNotFound {
            file,
            camera,
            wanted_s: time_s,
            nearest_s,
            tolerance_s,
            start_s,
            end_s,
        })
    }

    /// The GOP that a frame is decoded in: frames of one number are best decoded together. It is the number of the packet, in decode
    /// order, where their decoding starts. None where the file has no keyframe to start from.
    ///
    /// # Panics
    ///
    /// When the video has no frame of this number.
    #[must_use]
    pub fn gop_of(&self, frame: usize) -> Option<usize> {
        let index = &self.stream.index;
        index.start_for(index.packet_of_frame(frame))
    }

    /// Where in the file the bytes lie that the decoding of some frames takes: those of the frames' packets, and of all before them back
    /// to a keyframe. In order; ranges that touch are one.
    ///
    /// Frames are numbers as shown; those that the video does not have are left out.
    #[must_use]
    pub fn byte_ranges(&self, frames: Range<usize>) -> Vec<Range<u64>> {
        let index = &self.stream.index;
        let frames = frames.start..frames.end.min(index.num_frames());
        let (mut first, mut last) = (usize::MAX, 0);
        let packets = index.packets();
        for packet in frames.map(|frame| index.packet_of_frame(frame)) {
            last = last.max(packet);
            // What follows a keyframe in the file and on the screen does not start before it.
            let follows = |start: &Packet| packets[packet].pts >= start.pts;
            if packet >= first && packets.get(first).is_some_and(follows) {
                continue;
            }
            if let Some(start) = index.start_for(packet) {
                first = first.min(self.stream.detour(start));
            }
        }
        let mut packets: Vec<Range<u64>> = packets
            .get(first..=last)
            .unwrap_or_default()
            .iter()
            .map(|packet| packet.pos..packet.pos + u64::from(packet.size))
            .collect();
        packets.sort_unstable_by_key(|range| range.start);
        packets.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
        packets
    }

    /// Reads the bytes that the decoding of `frames` takes, as far as they lie behind one another in the file, at most a MiB.
    ///
    /// For [`Decoder::pictures`], which otherwise reads them itself, as well as what is missing here.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`]: the media failed.
    /// - [`Error::Decode`]: the file has no keyframe that leads to the first of the frames.
    ///
    /// # Panics
    ///
    /// When the video has no frame of one of these numbers, and when the media does.
    pub fn read_ahead(&self, frames: &[usize]) -> Result<Encoded, Error> {
        let index = &self.stream.index;
        let packets = frames.iter().map(|&frame| index.packet_of_frame(frame));
        let (Some(first), Some(last)) = (packets.clone().min(), packets.max()) else {
            return Ok(Encoded::default());
        };
        let start = index
            .start_for(first)
            .ok_or_else(|| self.stream.no_start(first))?;
        self.stream.read(self.stream.detour(start), last)
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn likeness(&self) -> PictureLikeness {
        self.likeness
    }

    pub(crate) fn place(&self) -> &Place {
        &self.stream.place
    }
}

/// Reads the header of a plain file; lets FFmpeg read through all others.
fn scan(media: &mut dyn Media, file_bytes: u64, place: &Place) -> Result<ffi::Scan, Error> {
    let Some(Mp4 { header, index }) = mp4::read(media, file_bytes, place)? else {
        media
            .seek(SeekFrom::Start(0))
            .map_err(|source| place.io("read the headers", source))?;
        return ffi::scan(media, file_bytes, place);
    };
    let parameters = ffi::Parameters::from_header(&header).map_err(|source| {
        place.malformed("could not copy the stream's parameters", Some(source))
    })?;
    Ok(ffi::Scan { parameters, index })
}

/// What all pictures of a video have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureLikeness {
    width: usize,
    height: usize,
    format: PixelFormat,
    resize: Option<Size>,
}

impl PictureLikeness {
    /// Takes size and format from a frame.
    pub(crate) fn of(frame: &Frame, max_pixels: u64, place: &Place) -> Result<Self, Error> {
        let (width, height) = (frame.width(), frame.height());
        let longest = width.max(height) as u64;
        if longest > limits::MAX_SIDE_PX.into() {
            return Err(place.over_limit(
                "the longer side of a picture in pixels",
                longest,
                limits::MAX_SIDE_PX.into(),
            ));
        }
        let num_pixels = width as u64 * height as u64;
        if num_pixels > max_pixels {
            return Err(place.over_limit(
                "the number of pixels of a picture",
                num_pixels,
                max_pixels,
            ));
        }
        Ok(Self {
            width,
            height,
            format: frame.pixel_format(),
            resize: None,
        })
    }

    /// The same, to come out in another size.
    fn resized(self, resize: Option<Size>) -> Self {
        Self { resize, ..self }
    }

    fn kind(self) -> Kind {
        if self.format.is_deep_gray() {
            Kind::Depth
        } else {
            Kind::Color
        }
    }

    /// Refuses a frame that is unlike the first.
    pub(crate) fn check(self, frame: &Frame, place: &Place) -> Result<(), Error> {
        let Self {
            width,
            height,
            format,
            ..
        } = self;
        let found = (frame.width(), frame.height(), frame.pixel_format());
        if found == (width, height, format) {
            return Ok(());
        }
        Err(place.unsupported(
            format!(
                "a change of pictures within the file, from {width}x{height} {} to {}x{} {},",
                format.name(),
                found.0,
                found.1,
                found.2.name()
            ),
            "split the file there, or encode it again as one",
        ))
    }

    pub(crate) fn format(self) -> PixelFormat {
        self.format
    }

    /// The size in which frames come out.
    pub(crate) fn output_size(self) -> Size {
        self.resize.unwrap_or(Size {
            height: self.height,
            width: self.width,
        })
    }

    /// `H * W * C`.
    pub(crate) fn frame_len(self) -> usize {
        self.output_size().num_pixels() * self.kind().channels()
    }

    /// Refuses an `out` that has not room for just so many frames, or is of another type.
    pub(crate) fn check_output(
        self,
        num_frames: usize,
        out: &Pixels<'_>,
        place: &Place,
    ) -> Result<(), Error> {
        let (Place { file, camera }, kind) = (place.clone(), self.kind());
        if out.kind() != kind {
            return Err(Error::OutputType {
                file,
                camera,
                kind,
                pixel_format: self.format.name().to_owned(),
                found: out.dtype(),
            });
        }
        let expected = self.frame_len().saturating_mul(num_frames);
        if out.len() != expected {
            let Size { height, width } = self.output_size();
            return Err(Error::OutputLength {
                file,
                camera,
                num_frames,
                height,
                width,
                channels: kind.channels(),
                expected,
                found: out.len(),
            });
        }
        Ok(())
    }
}
