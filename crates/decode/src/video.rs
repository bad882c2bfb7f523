//! One open video file: from times to frames.

use std::io::{Read, Seek};

use crate::error::Error;
use crate::frame::{Kind, Layout, Pixels};
use crate::limits;

/// Where the bytes of a video come from: a file, a buffer, a cache.
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
        Self { max_pixels: limits::DEFAULT_MAX_PIXELS }
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
    /// Frames per second, on average over the frames shown.
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

/// An open video.
#[derive(Debug)]
pub struct Video {
    info: VideoInfo,
}

impl Video {
    /// Opens a video.
    ///
    /// # Errors
    ///
    /// Later.
    pub fn open(media: Box<dyn Media>, file: &str, camera: &str, options: &VideoOptions) -> Result<Self, Error> {
        let _ = (media, file, camera, options);
        todo!()
    }

    /// What is known of the video.
    #[must_use]
    pub fn info(&self) -> &VideoInfo {
        &self.info
    }

    /// The mean time between two frames, in seconds: `1 / avg_fps`.
    #[must_use]
    pub fn frame_interval_s(&self) -> f64 {
        1.0 / self.info.avg_fps
    }

    /// The frame nearest to `time_s`: its number among the frames shown, and its time in seconds.
    ///
    /// # Errors
    ///
    /// Later.
    pub fn nearest(&self, time_s: f64) -> Result<(usize, f64), Error> {
        let _ = time_s;
        todo!()
    }

    /// Decodes one frame per time.
    ///
    /// # Errors
    ///
    /// Later.
    pub fn decode(&mut self, times_s: &[f64], tolerance_s: f64, layout: Layout, out: Pixels<'_>) -> Result<(), Error> {
        let _ = (times_s, tolerance_s, layout, out);
        todo!()
    }
}
