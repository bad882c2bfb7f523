//! Everything that can go wrong, and what to do about it.

use std::fmt;

use crate::frame::Kind;
use crate::resize::Size;

/// Why a frame could not be had.
///
/// `file` and `camera` are the names that the caller gave to [`Video::open`](crate::Video::open). Times are
/// seconds on the file's own clock. An error's `source` holds what lies below: the reader's I/O error, or FFmpeg's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reader failed.
    #[error("{file}: camera `{camera}`: could not {action}")]
    Io {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// What was being done.
        action: String,
        /// The reader's error.
        source: std::io::Error,
    },

    /// The bytes are no video file, or one that contradicts itself.
    #[error("{file}: camera `{camera}`: {what}")]
    Malformed {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// What was found, what was expected, and the remedy where one is known.
        what: String,
        /// FFmpeg's own error, when it was the one to notice.
        source: Option<FfmpegError>,
    },

    /// The file ends before the bytes that its own index names.
    #[error(
        "{file}: camera `{camera}`: the file is cut short: packet {packet} starts at byte {start_byte} and is not complete when the file ends, at \
         byte {file_bytes}; the copy or the recording was not finished"
    )]
    Truncated {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// The packet's number, in the file's order.
        packet: usize,
        /// Where the packet starts, by the file's own index.
        start_byte: u64,
        /// How long the file is.
        file_bytes: u64,
    },

    /// A sound file, with something in it that this crate does not decode.
    #[error("{file}: camera `{camera}`: {what} is not supported; {remedy}")]
    Unsupported {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// What was found.
        what: String,
        /// What to do.
        remedy: String,
    },

    /// The linked FFmpeg has no decoder for the file's codec.
    #[error("{file}: camera `{camera}`: this FFmpeg has no decoder for {codec}; {remedy}")]
    NoDecoder {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// The codec's name, as FFmpeg spells it.
        codec: String,
        /// What to install.
        remedy: &'static str,
    },

    /// The file asks for more than a bound that guards memory.
    #[error("{file}: camera `{camera}`: {what} is {found}, over the limit of {limit}")]
    OverLimit {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// The bounded quantity.
        what: &'static str,
        /// Its value in the file.
        found: u64,
        /// The bound.
        limit: u64,
    },

    /// No frame is shown within the tolerance of the wanted time.
    #[error(
        "{file}: camera `{camera}` has no frame within {tolerance_s} s of {wanted_s:.6} s; the nearest is at {nearest_s:.6} s, and the file's \
         frames span {start_s:.4} s to {end_s:.4} s"
    )]
    FrameNotFound {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// The time asked for.
        wanted_s: f64,
        /// The time of the nearest frame.
        nearest_s: f64,
        /// How far it may lie from the time asked for.
        tolerance_s: f64,
        /// The time of the file's first frame.
        start_s: f64,
        /// The end of the file's last frame: the file's real duration, for a file that starts at 0.
        end_s: f64,
    },

    /// A time, or a tolerance, that is no number, is infinite, or (a tolerance) is negative.
    #[error("{file}: camera `{camera}`: {what} must be finite{}, found {found}", if *.what == "tolerance_s" { " and not negative" } else { "" })]
    InvalidTime {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// Which argument.
        what: &'static str,
        /// Its value.
        found: f64,
    },

    /// Frames cannot be resized to the size asked for.
    #[error("{file}: camera `{camera}`: frames cannot be resized to {}x{}: {what}", size.height, size.width)]
    InvalidResize {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// The size asked for.
        size: Size,
        /// What is wrong with it.
        what: String,
    },

    /// The decoder refused the packets of a frame, or did not deliver it: damaged bytes, most likely.
    #[error("{file}: camera `{camera}`: the frame at {pts_s:.4} s cannot be decoded: {what}")]
    Decode {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// The time of the wanted frame.
        pts_s: f64,
        /// At which packet, and what happened.
        what: String,
        /// FFmpeg's own error, when it gave one.
        source: Option<FfmpegError>,
    },

    /// The output is not exactly as long as the frames asked for.
    #[error(
        "{file}: camera `{camera}`: {num_frames} frames of {height}x{width}x{channels} need an output of {expected} elements, found {found}"
    )]
    OutputLength {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// T, the number of times.
        num_frames: usize,
        /// H, in pixels, of the frames as they come out.
        height: usize,
        /// W, in pixels, of the frames as they come out.
        width: usize,
        /// C.
        channels: usize,
        /// `T * H * W * C`.
        expected: usize,
        /// The output's length.
        found: usize,
    },

    /// Depth was asked for as colour, or colour as depth.
    #[error("{file}: camera `{camera}` is a {} stream ({pixel_format}), which is written as {}, not {found}", kind_name(*.kind), kind_dtypes(*.kind))]
    OutputType {
        /// The video file.
        file: String,
        /// The camera whose file this is.
        camera: String,
        /// What the stream holds.
        kind: Kind,
        /// Its pixel format, as FFmpeg spells it.
        pixel_format: String,
        /// The element type of the output.
        found: &'static str,
    },

    /// A PNG or JPEG could not be read.
    #[error("could not decode an encoded image of {num_bytes} bytes: {what}")]
    Image {
        /// The length of the encoded image.
        num_bytes: usize,
        /// What was found and what was expected.
        what: String,
        /// The image decoder's error, when it was the one to notice.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl Error {
    /// Whether the time asked for is not in the file, which is then sound.
    #[must_use]
    pub fn is_frame_not_found(&self) -> bool {
        matches!(self, Self::FrameNotFound { .. })
    }

    /// Whether the file itself is at fault: damaged, cut short, or no video at all.
    #[must_use]
    pub fn is_damaged_file(&self) -> bool {
        matches!(
            self,
            Self::Malformed { .. } | Self::Truncated { .. } | Self::Decode { .. }
        )
    }
}

/// Which file, and whose: what every error of a video begins with.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) camera: String,
}

impl Place {
    pub(crate) fn io(&self, action: impl Into<String>, source: std::io::Error) -> Error {
        Error::Io {
            file: self.file.clone(),
            camera: self.camera.clone(),
            action: action.into(),
            source,
        }
    }

    pub(crate) fn malformed(&self, what: impl Into<String>, source: Option<FfmpegError>) -> Error {
        Error::Malformed {
            file: self.file.clone(),
            camera: self.camera.clone(),
            what: what.into(),
            source,
        }
    }

    pub(crate) fn truncated(&self, packet: usize, start_byte: u64, file_bytes: u64) -> Error {
        Error::Truncated {
            file: self.file.clone(),
            camera: self.camera.clone(),
            packet,
            start_byte,
            file_bytes,
        }
    }

    pub(crate) fn unsupported(&self, what: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Unsupported {
            file: self.file.clone(),
            camera: self.camera.clone(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    pub(crate) fn no_decoder(&self, codec: String, remedy: &'static str) -> Error {
        Error::NoDecoder {
            file: self.file.clone(),
            camera: self.camera.clone(),
            codec,
            remedy,
        }
    }

    pub(crate) fn over_limit(&self, what: &'static str, found: u64, limit: u64) -> Error {
        Error::OverLimit {
            file: self.file.clone(),
            camera: self.camera.clone(),
            what,
            found,
            limit,
        }
    }

    pub(crate) fn invalid_time(&self, what: &'static str, found: f64) -> Error {
        Error::InvalidTime {
            file: self.file.clone(),
            camera: self.camera.clone(),
            what,
            found,
        }
    }

    pub(crate) fn invalid_resize(&self, size: Size, what: String) -> Error {
        Error::InvalidResize {
            file: self.file.clone(),
            camera: self.camera.clone(),
            size,
            what,
        }
    }

    pub(crate) fn decode(
        &self,
        pts_s: f64,
        what: impl Into<String>,
        source: Option<FfmpegError>,
    ) -> Error {
        Error::Decode {
            file: self.file.clone(),
            camera: self.camera.clone(),
            pts_s,
            what: what.into(),
            source,
        }
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Color => "colour",
        Kind::Depth => "depth",
    }
}

fn kind_dtypes(kind: Kind) -> &'static str {
    match kind {
        Kind::Color => "u8 or f32",
        Kind::Depth => "u16",
    }
}

/// An error number of FFmpeg's, shown as FFmpeg's own text for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FfmpegError {
    code: i32,
}

impl FfmpegError {
    pub(crate) fn new(code: i32) -> Self {
        Self { code }
    }

    /// The number: negative, as FFmpeg's `AVERROR` makes it.
    #[must_use]
    pub fn code(self) -> i32 {
        self.code
    }
}

impl fmt::Display for FfmpegError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FFmpeg: {}", crate::cpu::ffi::error_text(self.code))
    }
}

impl fmt::Debug for FfmpegError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FfmpegError({}: {})",
            self.code,
            crate::cpu::ffi::error_text(self.code)
        )
    }
}

impl std::error::Error for FfmpegError {}
