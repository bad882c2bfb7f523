//! Cameras of a dataset to be written.

use crate::code::{self, Code};
use crate::layout::{Segment, Split};
use crate::spec::Fps;
use crate::video::Encoder;

/// A camera of a dataset to be written.
#[derive(Debug, Clone)]
pub struct Camera {
    /// The feature's name.
    pub key: String,
    /// Where its pictures go.
    pub kind: CameraKind,
    /// The number of rows of a picture; default 64.
    pub height: usize,
    /// The number of pixels in a row; default 96.
    pub width: usize,
    /// What a picture shows: its samples in `raw_format`; default [`code::paint`].
    pub paint: fn(code: Code, height: usize, width: usize) -> Vec<u8>,
    /// The layout of what `paint` returns, as FFmpeg names it; default `rgb24`.
    pub raw_format: String,
    /// How video is encoded.
    pub encoder: Encoder,
    /// How the episodes are split into video files; default one file.
    pub files: Split,
    /// What the episode table says of where an episode starts in its video.
    pub from_timestamp: FromTimestamp,
    /// What the episode table says of where an episode ends in its video.
    pub to_timestamp: ToTimestamp,
}

/// Where the pictures of a camera go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CameraKind {
    /// Into mp4 files.
    Video,
    /// Into the data files, each as the bytes of a PNG.
    Image,
}

/// How the `from_timestamp` of an episode is made.
#[derive(Debug, Clone, Copy)]
pub enum FromTimestamp {
    /// The frames before it over fps.
    Exact,
    /// A running sum of durations in `f32`, from 0 in every file.
    Float32Sum,
    /// The exact value and this many seconds more.
    Shifted(fn(Segment) -> f64),
}

/// What `to_timestamp` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToTimestamp {
    /// The end of the last frame, which is the start of the next episode.
    End,
    /// The time of the last frame.
    LastFrame,
    /// There is no such column.
    Missing,
}

impl Camera {
    /// A camera whose pictures are encoded to one mp4 file.
    pub fn video(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            kind: CameraKind::Video,
            height: 64,
            width: 96,
            paint: code::paint,
            raw_format: "rgb24".to_owned(),
            encoder: Encoder::default(),
            files: Split::OneFile,
            from_timestamp: FromTimestamp::Exact,
            to_timestamp: ToTimestamp::End,
        }
    }

    /// A camera whose pictures are PNGs in the data files.
    pub fn image(key: &str) -> Self {
        Self {
            kind: CameraKind::Image,
            ..Self::video(key)
        }
    }

    /// The picture of a frame, when this camera is at position `camera` in the list of cameras.
    pub(crate) fn picture(&self, episode: usize, frame: usize, camera: usize) -> Vec<u8> {
        (self.paint)(
            Code::wrapping(episode, frame, camera),
            self.height,
            self.width,
        )
    }

    /// What the episode table says of where each of `segments` starts, in seconds.
    pub(crate) fn start_times_s(&self, segments: &[Segment], fps: Fps) -> Vec<f64> {
        let mut sum = 0_f32;
        let from_s = |segment: &Segment| match self.from_timestamp {
            FromTimestamp::Exact => fps.seconds(segment.first_frame),
            FromTimestamp::Shifted(shift_s) => fps.seconds(segment.first_frame) + shift_s(*segment),
            FromTimestamp::Float32Sum => {
                let from_s = if segment.first_frame == 0 { 0.0 } else { sum };
                sum = from_s + fps.seconds(segment.length) as f32;
                f64::from(from_s)
            }
        };
        segments.iter().map(from_s).collect()
    }
}
