//! Hostile videos for `decode`.

use std::io::Cursor;

use decode::{Decoder, Kind, Layout, Pixels, Video, VideoOptions};

/// Larger pictures take longer and go through the same code.
const MAX_PIXELS: u64 = 1 << 20;

/// `bytes` as a video file: opens it, and decodes its last, first and middle frames, in this order, so that it seeks.
///
/// Returns the number of frames that came out.
pub fn packets(bytes: &[u8]) -> usize {
    let mut options = VideoOptions::default();
    options.max_pixels = MAX_PIXELS;
    let media = Box::new(Cursor::new(bytes.to_vec()));
    let mut decoder = Decoder::new();
    let Ok(video) = Video::open_with(&mut decoder, media, "fuzzed.mp4", "camera", &options) else {
        return 0;
    };

    let info = video.info();
    assert!((info.width as u64).saturating_mul(info.height as u64) <= MAX_PIXELS);
    let times_s = [info.end_s, info.start_s, (info.start_s + info.end_s) / 2.0];
    let frame_len = info.height * info.width * info.kind.channels();
    let kind = info.kind;

    // Damaged frames are errors, and the next one may be whole: each is asked for by itself.
    let tolerance_s = video.frame_interval_s();
    let mut num_decoded = 0;
    for time_s in times_s {
        let decoded = if kind == Kind::Depth {
            let mut frame = vec![0_u16; frame_len];
            let out = Pixels::U16(&mut frame);
            decoder.decode(&video, &[time_s], tolerance_s, Layout::Hwc, out)
        } else {
            let mut frame = vec![0_u8; frame_len];
            let out = Pixels::U8(&mut frame);
            decoder.decode(&video, &[time_s], tolerance_s, Layout::Chw, out)
        };
        num_decoded += usize::from(decoded.is_ok());
    }
    num_decoded
}
