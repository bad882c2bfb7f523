//! The clips of `tests/clips`, and what is known of them.

use std::io::Cursor;

use std::cell::RefCell;

use decode::{Decoder, Error, Layout, Pixels, Video, VideoOptions};

/// A clip with its frames' numbers burned in.
pub(crate) struct Clip {
    pub(crate) name: &'static str,
    /// The numbers of the frames shown, in order.
    pub(crate) numbers: Vec<u8>,
    /// The time of the frame with number 0, were it shown. The others follow at 10 frames a second.
    pub(crate) zero_s: f64,
}

impl Clip {
    pub(crate) fn time_s(&self, frame: usize) -> f64 {
        self.zero_s + f64::from(self.numbers[frame]) / 10.0
    }

    pub(crate) fn times_s(&self) -> Vec<f64> {
        (0..self.numbers.len())
            .map(|frame| self.time_s(frame))
            .collect()
    }
}

/// All clips whose frames are numbered.
pub(crate) fn numbered() -> Vec<Clip> {
    let clip = |name, numbers, zero_s| Clip {
        name,
        numbers,
        zero_s,
    };
    let up_to = |end| (0..end).collect::<Vec<u8>>();
    vec![
        clip("b_frames", up_to(40), 0.0),
        clip("offset", up_to(40), 5.0),
        clip("cut", (6..40).collect(), -0.6),
        clip("fragmented", up_to(40), 0.2),
        clip("faststart", up_to(40), 0.0),
        clip("open_gop", up_to(40), 0.0),
        clip("open_gop_pyramid", up_to(40), 0.0),
        clip("hevc_cra", up_to(40), 0.0),
        clip("av1_g2", up_to(20), 0.0),
        clip("h264_10bit", up_to(10), 0.0),
        clip("hevc_10bit", up_to(10), 0.0),
        clip("odd_vp9", up_to(10), 0.0),
        clip("odd_h264_444", up_to(10), 0.0),
        clip(
            "uneven",
            up_to(20)
                .into_iter()
                .filter(|n| ![3, 4, 9].contains(n))
                .collect(),
            0.0,
        ),
    ]
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(format!("tests/clips/{name}.mp4")).unwrap()
}

pub(crate) fn open(name: &str) -> Video {
    open_bytes(bytes(name), name).unwrap()
}

pub(crate) fn open_bytes(bytes: Vec<u8>, name: &str) -> Result<Video, Error> {
    Video::open(
        Box::new(Cursor::new(bytes)),
        &format!("{name}.mp4"),
        "wrist",
        &VideoOptions::default(),
    )
}

/// One `[H, W, 3]` frame per time, with the tolerance that loaders use.
pub(crate) fn rgb(video: &Video, times_s: &[f64]) -> Result<Vec<Vec<u8>>, Error> {
    let frame_len = video.info().height * video.info().width * 3;
    let mut out = vec![0; frame_len * times_s.len()];
    decode(video, times_s, 1e-4, Layout::Hwc, Pixels::U8(&mut out))?;
    Ok(out.chunks_exact(frame_len).map(<[u8]>::to_vec).collect())
}

/// The number burned into a frame: eight blocks of 8x8 pixels, lowest bit first.
pub(crate) fn number(rgb: &[u8], width: usize) -> u8 {
    (0..8)
        .map(|bit| u8::from(rgb[(4 * width + bit * 8 + 4) * 3] > 127) << bit)
        .sum()
}

/// A shuffle that is the same everywhere.
pub(crate) fn shuffled(len: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    let mut random = Random(seed);
    for last in (1..len).rev() {
        order.swap(last, random.below(last + 1));
    }
    order
}

/// A small generator (splitmix64), so that a failing seed can be run again.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Decodes with one decoder for all videos of a test, as a loader's thread does.
pub(crate) fn decode(
    video: &Video,
    times_s: &[f64],
    tolerance_s: f64,
    layout: Layout,
    out: Pixels<'_>,
) -> Result<(), Error> {
    thread_local! {
        static DECODER: RefCell<Decoder> = RefCell::default();
    }
    DECODER.with_borrow_mut(|decoder| decoder.decode(video, times_s, tolerance_s, layout, out))
}
