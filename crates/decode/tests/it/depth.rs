//! Depth: exact codes, and no confusion with colour.

use decode::{Error, Kind, Layout, Pixels};

use crate::clips;

#[test]
fn constant_codes_are_exact() {
    let video = clips::open("depth");
    assert_eq!(
        (video.info().kind, video.info().pixel_format.as_str()),
        (Kind::Depth, "gray12le")
    );
    for layout in [Layout::Hwc, Layout::Chw] {
        let mut codes = vec![0; 4 * 48 * 64];
        clips::decode(
            &video,
            &[0.0, 0.1, 0.2, 0.3],
            1e-4,
            layout,
            Pixels::U16(&mut codes),
        )
        .unwrap();
        for (frame, code) in codes.chunks_exact(48 * 64).zip([64, 1024, 2048, 4032]) {
            assert!(frame.iter().all(|&found| found == code), "{code}");
        }
    }
}

#[test]
fn every_code_is_exact_at_a_width_that_is_no_multiple_of_anything() {
    let video = clips::open("depth_slope");
    let (width, height) = (66, 50);
    for frame in clips::shuffled(6, 1) {
        let mut codes = vec![0; height * width];
        clips::decode(
            &video,
            &[frame as f64 / 10.0],
            1e-4,
            Layout::Hwc,
            Pixels::U16(&mut codes),
        )
        .unwrap();
        let expected = |i: usize| ((i % width * 60 + i / width * 7 + frame * 300) % 4096) as u16;
        assert!(
            codes
                .iter()
                .enumerate()
                .all(|(i, &code)| code == expected(i)),
            "frame {frame}"
        );
    }
}

#[test]
fn depth_is_not_written_as_colour_nor_colour_as_depth() {
    let error = clips::decode(
        &clips::open("depth"),
        &[0.0],
        1e-4,
        Layout::Hwc,
        Pixels::U8(&mut vec![0; 48 * 64 * 3]),
    )
    .unwrap_err();
    assert!(matches!(error, Error::OutputType { .. }));
    assert_eq!(
        error.to_string(),
        "depth.mp4: camera `wrist` is a depth stream (gray12le), which is written as u16, not u8"
    );
    let error = clips::decode(
        &clips::open("b_frames"),
        &[0.0],
        1e-4,
        Layout::Hwc,
        Pixels::U16(&mut vec![0; 48 * 64]),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "b_frames.mp4: camera `wrist` is a colour stream (yuv420p), which is written as u8 or f32, not u16"
    );
}
