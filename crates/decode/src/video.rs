//! One open video file: from times to frames.

use std::io::{Read, Seek, SeekFrom};

use crate::cpu::FrameReader;
use crate::cpu::ffi::{self, Decoder, Frame, PixelFormat, Scaler};
use crate::error::{Error, Place};
use crate::frame::{Kind, Layout, Pixels};
use crate::index::PacketIndex;
use crate::limits;
use crate::time;

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
}

impl Default for VideoOptions {
    fn default() -> Self {
        Self {
            max_pixels: limits::DEFAULT_MAX_PIXELS,
        }
    }
}

/// What is known of an open video. Times are seconds on the file's own clock, which need not start at 0.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VideoInfo {
    /// W, in pixels.
    pub width: usize,
    /// H, in pixels.
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

/// An open video: a packet index and a decoder.
///
/// Holds its `Media` open, and a decoder's memory (a few frames); nothing else of the file but the index, 28 bytes a frame.
#[derive(Debug)]
pub struct Video {
    place: Place,
    info: VideoInfo,
    index: PacketIndex,
    reader: FrameReader,
    painter: Painter,
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
    /// - [`Error::Unsupported`]: codec parameters that change within the file.
    /// - [`Error::Decode`]: the first frame cannot be decoded.
    ///
    /// # Panics
    ///
    /// Only when `media` does; its panic passes through.
    pub fn open(
        mut media: Box<dyn Media>,
        file: &str,
        camera: &str,
        options: &VideoOptions,
    ) -> Result<Self, Error> {
        let place = Place {
            file: file.to_owned(),
            camera: camera.to_owned(),
        };
        let file_bytes = media
            .seek(SeekFrom::End(0))
            .and_then(|end| media.seek(SeekFrom::Start(0)).map(|_| end))
            .map_err(|source| place.io("find the file's length", source))?;
        let ffi::Scan { parameters, index } = ffi::scan(&mut *media, file_bytes, &place)?;
        if parameters.num_pixels() > options.max_pixels {
            return Err(place.over_limit(
                "the number of pixels of a picture",
                parameters.num_pixels(),
                options.max_pixels,
            ));
        }
        let mut reader = FrameReader::new(
            media,
            Decoder::open(&parameters, options.max_pixels, &place)?,
        );
        let mut painter = None;
        reader.read(&index, &[index.packet_of_frame(0)], &place, |_, frame| {
            painter = Some(Painter::new(frame, options.max_pixels, &place)?);
            Ok(())
        })?;
        let painter = painter.expect("a read that succeeds hands out every wanted frame");

        let interval_s = index.frame_interval_s();
        let last_s = index.frame_s(index.num_frames() - 1);
        let info = VideoInfo {
            width: painter.width,
            height: painter.height,
            codec: parameters.codec_name().to_owned(),
            decoder: reader.decoder_name().to_owned(),
            pixel_format: painter.format.name().to_owned(),
            kind: painter.kind(),
            avg_fps: if interval_s > 0.0 {
                1.0 / interval_s
            } else {
                0.0
            },
            num_frames: index.num_frames(),
            num_keyframes: index.num_keyframes(),
            start_s: index.frame_s(0),
            end_s: if index.end_s() > last_s {
                index.end_s()
            } else {
                last_s + interval_s
            },
        };
        Ok(Self {
            place,
            info,
            index,
            reader,
            painter,
        })
    }

    /// What is known of the video.
    #[must_use]
    pub fn info(&self) -> &VideoInfo {
        &self.info
    }

    /// The mean time between two frames, in seconds: `1 / avg_fps`, or 0 where that is unknown.
    ///
    /// Half of it is the widest tolerance that makes sense: any time within the video has a frame as near as that.
    #[must_use]
    pub fn frame_interval_s(&self) -> f64 {
        self.index.frame_interval_s()
    }

    /// The frame nearest to a time, the earlier of two as near: its number among the frames shown, and its own time in seconds.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTime`] when `time_s` is infinite or NaN. However far the nearest frame is, it is no error here.
    pub fn nearest(&self, time_s: f64) -> Result<(usize, f64), Error> {
        if !time_s.is_finite() {
            return Err(self.place.invalid_time("time_s", time_s));
        }
        let frame = self.index.nearest(time_s);
        Ok((frame, self.index.frame_s(frame)))
    }

    /// Decodes one frame per time: the one shown nearest to it, at most `tolerance_s` away. (Exactly `tolerance_s` is near enough, and a
    /// nanosecond more is put down to rounding.)
    ///
    /// Times are on the file's own clock: for a LeRobot dataset, an episode's `from_timestamp` plus the time in the episode. Frames are
    /// written in the order asked for: `out` is `[T, H, W, C]` or `[T, C, H, W]`, T being the number of times. Times that mean the same frame
    /// cost one decode, and times within one GOP share a pass over it, whatever their order.
    ///
    /// # Errors
    ///
    /// All of these leave unspecified pixels in `out`, and the video ready for the next request.
    ///
    /// - [`Error::InvalidTime`]: a time that is infinite or NaN, or a tolerance that is so or negative.
    /// - [`Error::OutputType`]: a depth stream and other than `U16`, or a colour stream and `U16`.
    /// - [`Error::OutputLength`]: `out` is not exactly `T * H * W * C` long.
    /// - [`Error::FrameNotFound`]: no frame is near enough.
    /// - [`Error::Decode`]: the frame's bytes are damaged.
    /// - [`Error::Unsupported`]: size or pixel format change within the file.
    /// - [`Error::Io`]: the media failed.
    ///
    /// # Panics
    ///
    /// Only when the media does.
    pub fn decode(
        &mut self,
        times_s: &[f64],
        tolerance_s: f64,
        layout: Layout,
        mut out: Pixels<'_>,
    ) -> Result<(), Error> {
        time::check_tolerance(tolerance_s, &self.place)?;
        self.check_output(times_s.len(), &out)?;
        // (frame, position in the output), by frame: equal frames end up side by side, the first asked for in front.
        let mut asked = times_s
            .iter()
            .enumerate()
            .map(|(position, &time_s)| Ok((self.find(time_s, tolerance_s)?, position)))
            .collect::<Result<Vec<(usize, usize)>, Error>>()?;
        asked.sort_unstable();
        let mut distinct = asked.clone();
        distinct.dedup_by_key(|(frame, _)| *frame);

        let wanted: Vec<usize> = distinct
            .iter()
            .map(|&(frame, _)| self.index.packet_of_frame(frame))
            .collect();
        let (place, painter) = (&self.place, &mut self.painter);
        self.reader
            .read(&self.index, &wanted, place, |nth, frame| {
                painter.paint(frame, distinct[nth].1, layout, &mut out, place)
            })?;

        for same in asked.chunk_by(|(a, _), (b, _)| a == b) {
            for &(_, position) in &same[1..] {
                out.copy_frame(self.painter.frame_len(), same[0].1, position);
            }
        }
        Ok(())
    }

    /// The number of the frame for a time.
    fn find(&self, wanted_s: f64, tolerance_s: f64) -> Result<usize, Error> {
        let (frame, nearest_s) = self.nearest(wanted_s)?;
        if time::is_within((nearest_s - wanted_s).abs(), tolerance_s) {
            return Ok(frame);
        }
        let Place { file, camera } = self.place.clone();
        let VideoInfo { start_s, end_s, .. } = self.info;
        Err(Error::FrameNotFound {
            file,
            camera,
            wanted_s,
            nearest_s,
            tolerance_s,
            start_s,
            end_s,
        })
    }

    fn check_output(&self, num_frames: usize, out: &Pixels<'_>) -> Result<(), Error> {
        let (Place { file, camera }, kind) = (self.place.clone(), self.info.kind);
        if out.kind() != kind {
            let pixel_format = self.info.pixel_format.clone();
            return Err(Error::OutputType {
                file,
                camera,
                kind,
                pixel_format,
                found: out.dtype(),
            });
        }
        let expected = self.painter.frame_len().saturating_mul(num_frames);
        if out.len() != expected {
            let VideoInfo { height, width, .. } = self.info;
            let channels = kind.channels();
            return Err(Error::OutputLength {
                file,
                camera,
                num_frames,
                height,
                width,
                channels,
                expected,
                found: out.len(),
            });
        }
        Ok(())
    }
}

/// Writes decoded frames, all of one size and format, as the caller wants them.
#[derive(Debug)]
struct Painter {
    width: usize,
    height: usize,
    format: PixelFormat,
    scaler: Scaler,
    /// One frame of RGB bytes, for outputs that are not that.
    rgb: Vec<u8>,
}

impl Painter {
    /// Takes size and format from a frame.
    fn new(frame: &Frame, max_pixels: u64, place: &Place) -> Result<Self, Error> {
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
            scaler: Scaler::default(),
            rgb: Vec::new(),
        })
    }

    fn kind(&self) -> Kind {
        if self.format.is_deep_gray() {
            Kind::Depth
        } else {
            Kind::Color
        }
    }

    /// `H * W * C`.
    fn frame_len(&self) -> usize {
        self.width * self.height * self.kind().channels()
    }

    /// Writes a frame at a position of the output.
    fn paint(
        &mut self,
        frame: &Frame,
        position: usize,
        layout: Layout,
        out: &mut Pixels<'_>,
        place: &Place,
    ) -> Result<(), Error> {
        if (frame.width(), frame.height(), frame.pixel_format())
            != (self.width, self.height, self.format)
        {
            let (from, to) = (
                (self.width, self.height, self.format.name()),
                (frame.width(), frame.height(), frame.pixel_format().name()),
            );
            return Err(place.unsupported(
                format!(
                    "a change of pictures within the file, from {}x{} {} to {}x{} {},",
                    from.0, from.1, from.2, to.0, to.1, to.2
                ),
                "split the file there, or encode it again as one",
            ));
        }
        let frame_len = self.frame_len();
        let range = position * frame_len..(position + 1) * frame_len;
        let failed = |source| {
            place.malformed(
                format!("could not convert {} pictures to RGB", self.format.name()),
                Some(source),
            )
        };
        match (out, layout) {
            (Pixels::U16(out), _) => {
                for (y, row) in out[range].chunks_exact_mut(self.width).enumerate() {
                    for (code, bytes) in row
                        .iter_mut()
                        .zip(frame.row(y, self.width * 2).chunks_exact(2))
                    {
                        *code = u16::from_ne_bytes([bytes[0], bytes[1]]);
                    }
                }
            }
            // The bytes as they are wanted, without a copy.
            (Pixels::U8(out), Layout::Hwc) => self
                .scaler
                .convert(frame, &mut out[range])
                .map_err(failed)?,
            (out, layout) => {
                self.rgb.resize(frame_len, 0);
                self.scaler.convert(frame, &mut self.rgb).map_err(failed)?;
                out.write_rgb(position, layout, &self.rgb);
            }
        }
        Ok(())
    }
}
