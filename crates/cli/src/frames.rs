//! The options that say how camera frames are made.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use episode_pool::decode::Layout;
use episode_pool::{Builder, FrameType};

/// How camera frames are made.
#[derive(Debug, Args)]
pub(crate) struct FrameArgs {
    /// The axes of a camera's frame.
    #[arg(
        long,
        value_enum,
        value_name = "LAYOUT",
        default_value = "hwc",
        help_heading = "Camera frames"
    )]
    frame_layout: LayoutArg,

    /// The numbers of a pixel. Depth is 16-bit codes whatever is chosen.
    #[arg(
        long,
        value_enum,
        value_name = "TYPE",
        default_value = "u8",
        help_heading = "Camera frames"
    )]
    frame_type: FrameTypeArg,

    /// The size of every camera's frames, in pixels, as in 96x128. [default: as stored]
    #[arg(long, value_name = "HEIGHTxWIDTH", value_parser = parse_size, help_heading = "Camera frames")]
    resize: Option<(usize, usize)>,

    /// The most video files that a worker keeps open. [default: (pool size + 1) x cameras, at most 128]
    #[arg(long, value_name = "FILES", help_heading = "Camera frames")]
    video_decoder_cache_size: Option<NonZeroUsize>,

    /// The threads that decode video, for all workers together. [default: the cores that the process may use]
    #[arg(long, value_name = "THREADS", help_heading = "Camera frames")]
    num_threads: Option<NonZeroUsize>,

    /// The most memory for frames decoded before they are emitted, for all workers together. [default: 536870912]
    #[arg(long, value_name = "BYTES", help_heading = "Camera frames")]
    decode_ahead_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LayoutArg {
    /// [height, width, channels]
    Hwc,
    /// [channels, height, width]
    Chw,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FrameTypeArg {
    /// 0 to 255
    U8,
    /// 0.0 to 1.0
    F32,
}

fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let sides = text
        .split_once('x')
        .and_then(|(height, width)| Some((height.parse().ok()?, width.parse().ok()?)));
    sides.ok_or_else(|| "expected a height and a width in pixels, as in 96x128".to_owned())
}

impl FrameArgs {
    /// Sets these options.
    pub(crate) fn apply(&self, builder: Builder) -> Builder {
        let mut builder = builder
            .frame_layout(match self.frame_layout {
                LayoutArg::Hwc => Layout::Hwc,
                LayoutArg::Chw => Layout::Chw,
            })
            .frame_type(match self.frame_type {
                FrameTypeArg::U8 => FrameType::U8,
                FrameTypeArg::F32 => FrameType::F32,
            });
        if let Some((height, width)) = self.resize {
            builder = builder.resize(height, width);
        }
        if let Some(files) = self.video_decoder_cache_size {
            builder = builder.video_decoder_cache_size(files.get());
        }
        if let Some(threads) = self.num_threads {
            builder = builder.num_threads(threads.get());
        }
        if let Some(bytes) = self.decode_ahead_bytes {
            builder = builder.decode_ahead_bytes(bytes);
        }
        builder
    }
}
