//! From wanted frames to pictures, and from pictures to pixels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cpu::FrameReader;
use crate::cpu::ffi::{self, Frame};
use crate::error::{Error, Place};
use crate::frame::{Layout, Pixels};
use crate::paint::Painter;
use crate::stream::{Encoded, Stream};
use crate::video::{PictureLikeness, Video};

/// The most FFmpeg decoders that one [`Decoder`] keeps open. Most datasets need one for all cameras and files; the memory of each is a few
/// pictures.
const MAX_OPEN: usize = 8;

/// Decodes videos: one thread's worth of decoders, which serve any number of files.
///
/// Files whose streams are alike (codec, size, headers) share an FFmpeg decoder, which is neither closed nor opened in between. Each has a
/// single thread of its own caller: threads within a decoder make access to single frames slower.
///
/// What comes out does not depend on what was decoded before.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Least recently used first.
    readers: Vec<(ffi::Likeness, u64, FrameReader)>,
    painter: Option<PicturePainter>,
    stats: DecodeStats,
}

/// What decoders have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecodeStats {
    /// FFmpeg decoders opened.
    pub opens: u64,
    /// Frames that came out of a decoder, wanted or only referred to.
    pub frames: u64,
}

impl DecodeStats {
    /// Adds what another did.
    pub fn merge(&mut self, other: Self) {
        self.opens += other.opens;
        self.frames += other.frames;
    }
}

/// A decoded frame, as the decoder made it: planes of YUV, most often, at half the size of RGB or less.
#[derive(Debug)]
pub struct Picture {
    frame: Frame,
    likeness: PictureLikeness,
    place: Arc<Place>,
}

impl Picture {
    /// The memory that it takes, padding included, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.frame.size_bytes()
    }
}

/// Turns pictures into pixels.
#[derive(Debug)]
pub struct PicturePainter {
    layout: Layout,
    painter: Painter,
}

impl PicturePainter {
    /// A painter of frames in a layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            painter: Painter::new(layout),
        }
    }

    /// Writes a picture into `out`, `[H, W, C]` or `[C, H, W]`, H and W being [`Video::output_size`] of its video.
    ///
    /// # Errors
    ///
    /// - [`Error::OutputType`], [`Error::OutputLength`]: `out` is not what the video's frames need.
    /// - [`Error::Malformed`]: FFmpeg cannot convert the pictures' format.
    pub fn paint(&mut self, picture: &Picture, out: Pixels<'_>) -> Result<(), Error> {
        let Picture {
            frame,
            likeness,
            place,
        } = picture;
        likeness.check_output(1, &out, place)?;
        self.paint_frame(frame, *likeness, place, out)
    }

    fn paint_frame(
        &mut self,
        frame: &Frame,
        likeness: PictureLikeness,
        place: &Place,
        out: Pixels<'_>,
    ) -> Result<(), Error> {
        self.painter
            .paint(frame, likeness.output_size(), out)
            .map_err(|source| {
                let format = likeness.format().name();
                place.malformed(
                    format!("could not convert {format} pictures to RGB"),
                    Some(source),
                )
            })
    }
}

/// What the first frame of a stream tells of all.
pub(crate) struct FirstFrame {
    pub(crate) likeness: PictureLikeness,
    pub(crate) picture_bytes: usize,
    pub(crate) decoder_name: &'static str,
}

impl Decoder {
    /// A decoder that has opened nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> DecodeStats {
        self.stats
    }

    /// Decodes one frame per time: the one shown nearest to it, at most `tolerance_s` away, as [`Video::frame_at`] finds it.
    ///
    /// Times are on the file's own clock: for a LeRobot dataset, an episode's `from_timestamp` plus the time in the episode. Frames are
    /// written in the order asked for: `out` is `[T, H, W, C]` or `[T, C, H, W]`, T being the number of times, H and W
    /// [`Video::output_size`]. Times that mean the same frame
    /// cost one decode, and times within one GOP share a pass over it, whatever their order.
    ///
    /// # Errors
    ///
    /// All of these leave unspecified pixels in `out`, and the decoder ready for the next request.
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
        video: &Video,
        times_s: &[f64],
        tolerance_s: f64,
        layout: Layout,
        mut out: Pixels<'_>,
    ) -> Result<(), Error> {
        crate::time::check_tolerance(tolerance_s, video.place())?;
        let (likeness, place) = (video.likeness(), video.place());
        likeness.check_output(times_s.len(), &out, place)?;
        // (frame, position in the output), by frame: equal frames end up side by side, the first asked for in front.
        let mut asked = times_s
            .iter()
            .enumerate()
            .map(|(position, &time_s)| Ok((video.frame_at(time_s, tolerance_s)?, position)))
            .collect::<Result<Vec<(usize, usize)>, Error>>()?;
        asked.sort_unstable();
        let mut distinct = asked.clone();
        distinct.dedup_by_key(|(frame, _)| *frame);

        let frames: Vec<usize> = distinct.iter().map(|&(frame, _)| frame).collect();
        let frame_len = likeness.frame_len();
        let mut painter = match self.painter.take() {
            Some(painter) if painter.layout == layout => painter,
            _ => PicturePainter::new(layout),
        };
        let result = self.read(
            video,
            Encoded::default(),
            &frames,
            &|| false,
            |nth, frame| {
                let position = distinct[nth].1;
                painter.paint_frame(frame, likeness, place, out.frame(frame_len, position))
            },
        );
        self.painter = Some(painter);
        result?;

        for same in asked.chunk_by(|(a, _), (b, _)| a == b) {
            for &(_, position) in &same[1..] {
                out.copy_frame(frame_len, same[0].1, position);
            }
        }
        Ok(())
    }

    /// Decodes frames by their numbers, ascending and distinct, and hands out each with its place in `frames`.
    ///
    /// Frames of one GOP share a pass over it, which ends with the last of them. `encoded` are bytes that [`Video::read_ahead`] has read
    /// for these frames; without them (`Encoded::default()`) they are read here. Once `interrupted` is set, decoding stops before the next
    /// packet, and what is left is not handed out: that is no error.
    ///
    /// # Errors
    ///
    /// The frames before the one that fails have been handed out.
    ///
    /// - [`Error::Decode`]: the frame's bytes are damaged.
    /// - [`Error::Unsupported`]: size or pixel format change within the file.
    /// - [`Error::Io`]: the media failed.
    ///
    /// # Panics
    ///
    /// When the video has no frame of one of these numbers, and when the media does.
    pub fn pictures(
        &mut self,
        video: &Video,
        encoded: Encoded,
        frames: &[usize],
        interrupted: &AtomicBool,
        mut each: impl FnMut(usize, Picture),
    ) -> Result<(), Error> {
        let interrupt = || interrupted.load(Ordering::Relaxed);
        self.read(video, encoded, frames, &interrupt, |nth, frame| {
            let frame = frame.take().map_err(|source| {
                video
                    .place()
                    .malformed("a decoded frame could not be kept", Some(source))
            })?;
            let picture = Picture {
                frame,
                likeness: video.likeness(),
                place: Arc::clone(&video.stream().place),
            };
            each(nth, picture);
            Ok(())
        })
    }

    fn read(
        &mut self,
        video: &Video,
        encoded: Encoded,
        frames: &[usize],
        interrupt: &dyn Fn() -> bool,
        mut each: impl FnMut(usize, &mut Frame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (stream, likeness) = (video.stream(), video.likeness());
        let packets: Vec<usize> = frames
            .iter()
            .map(|&frame| stream.index.packet_of_frame(frame))
            .collect();
        self.with_reader(stream, |reader| {
            reader.read(stream, encoded, &packets, interrupt, |nth, frame| {
                likeness.check(frame, &stream.place)?;
                each(nth, frame)
            })
        })
    }

    /// Decodes the first frame of a stream that is being opened.
    pub(crate) fn first_frame(&mut self, stream: &Stream) -> Result<FirstFrame, Error> {
        let mut first = None;
        let packet = stream.index.packet_of_frame(0);
        self.with_reader(stream, |reader| {
            let decoder_name = reader.decoder_name();
            reader.read(
                stream,
                Encoded::default(),
                &[packet],
                &|| false,
                |_, frame| {
                    first = Some(FirstFrame {
                        likeness: PictureLikeness::of(frame, stream.max_pixels, &stream.place)?,
                        picture_bytes: frame.size_bytes(),
                        decoder_name,
                    });
                    Ok(())
                },
            )
        })?;
        Ok(first.expect("a read that succeeds hands out every wanted frame"))
    }

    /// Runs a read on the decoder for streams like this one, opening it if need be.
    fn with_reader<T>(
        &mut self,
        stream: &Stream,
        read: impl FnOnce(&mut FrameReader) -> Result<T, Error>,
    ) -> Result<(), Error> {
        let found = self.readers.iter().position(|(likeness, max_pixels, _)| {
            *max_pixels == stream.max_pixels && *likeness == stream.likeness
        });
        // Out of the list, and back in only if nothing panics.
        let (likeness, max_pixels, mut reader) = match found {
            Some(position) => self.readers.remove(position),
            None => {
                if self.readers.len() == MAX_OPEN {
                    self.readers.remove(0);
                }
                self.stats.opens += 1;
                let decoder =
                    ffi::Decoder::open(&stream.parameters, stream.max_pixels, &stream.place)?;
                let likeness = stream.likeness.clone();
                (
                    likeness,
                    stream.max_pixels,
                    FrameReader::new(decoder, &stream.parameters),
                )
            }
        };
        let result = read(&mut reader);
        self.stats.frames += reader.take_num_decoded();
        self.readers.push((likeness, max_pixels, reader));
        result.map(drop)
    }
}
