//! Colours, element types and layouts.

use decode::{Error, Kind, Layout, Pixels};

use crate::clips;

/// The colours of the quarters, row by row.
const QUARTERS: [[u8; 3]; 4] = [[200, 30, 40], [20, 180, 60], [30, 40, 210], [128, 128, 128]];

#[test]
fn range_and_matrix_follow_the_tags() {
    for name in [
        "bt709_tv",
        "bt709_pc",
        "smpte170m_tv",
        "smpte170m_pc",
        "untagged",
    ] {
        let frames = clips::rgb(&clips::open(&format!("color_{name}")), &[0.0, 0.1]).unwrap();
        for rgb in frames {
            for (quarter, expected) in QUARTERS.iter().enumerate() {
                let (x, y) = (16 + 32 * (quarter % 2), 12 + 24 * (quarter / 2));
                let found = &rgb[(y * 64 + x) * 3..][..3];
                // The wrong matrix is off by 20 and more in the coloured quarters, the wrong range by 8 and more.
                let near = found.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= 5);
                assert!(
                    near,
                    "{name}, quarter {quarter}: found {found:?}, expected {expected:?}"
                );
            }
        }
    }
}

#[test]
fn ten_bits_are_rounded_to_eight() {
    let eight = clips::rgb(&clips::open("b_frames"), &[0.5])
        .unwrap()
        .remove(0);
    for name in ["h264_10bit", "hevc_10bit"] {
        let video = clips::open(name);
        assert_eq!(
            (video.info().pixel_format.as_str(), video.info().kind),
            ("yuv420p10le", Kind::Color)
        );
        let ten = clips::rgb(&video, &[0.5]).unwrap().remove(0);
        let mean = eight
            .iter()
            .zip(&ten)
            .map(|(a, b)| f64::from(a.abs_diff(*b)))
            .sum::<f64>()
            / eight.len() as f64;
        assert!(
            mean < 8.0,
            "{name}: two encodings of one picture differ by {mean} in the mean"
        );
    }
}

#[test]
fn odd_sides_have_all_their_pixels() {
    for name in ["odd_vp9", "odd_h264_444"] {
        let video = clips::open(name);
        assert_eq!((video.info().width, video.info().height), (65, 49));
        let frames = clips::rgb(&video, &[0.0, 0.7]).unwrap();
        for rgb in &frames {
            // The last column and row show what is beside them; bytes that were not written would be 0.
            let pixel = |x: usize, y: usize| &rgb[(y * 65 + x) * 3..][..3];
            let differs = |a: &[u8], b: &[u8]| {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| u32::from(a.abs_diff(*b)))
                    .sum::<u32>()
            };
            let column: u32 = (0..49).map(|y| differs(pixel(64, y), pixel(63, y))).sum();
            let row: u32 = (0..65).map(|x| differs(pixel(x, 48), pixel(x, 47))).sum();
            assert!(column < 49 * 60 && row < 65 * 60, "{name}: {column}, {row}");
        }
    }
}

#[test]
fn layouts_and_types_hold_the_same_values() {
    for name in ["b_frames", "odd_vp9"] {
        let video = clips::open(name);
        let (height, width) = (video.info().height, video.info().width);
        let times_s = [0.4, 0.1, 0.4];
        let expected = clips::rgb(&video, &times_s).unwrap().concat();

        let mut chw = vec![0; expected.len()];
        clips::decode(&video, &times_s, 1e-4, Layout::Chw, Pixels::U8(&mut chw)).unwrap();
        let mut floats = [
            vec![f32::NAN; expected.len()],
            vec![f32::NAN; expected.len()],
        ];
        clips::decode(
            &video,
            &times_s,
            1e-4,
            Layout::Hwc,
            Pixels::F32(&mut floats[0]),
        )
        .unwrap();
        clips::decode(
            &video,
            &times_s,
            1e-4,
            Layout::Chw,
            Pixels::F32(&mut floats[1]),
        )
        .unwrap();

        for t in 0..3 {
            for pixel in 0..height * width {
                for c in 0..3 {
                    let hwc = (t * height * width + pixel) * 3 + c;
                    let planar = (t * 3 + c) * height * width + pixel;
                    assert_eq!(chw[planar], expected[hwc], "{name}");
                    assert_eq!(floats[0][hwc], f32::from(expected[hwc]) / 255.0);
                    assert_eq!(floats[1][planar], floats[0][hwc]);
                }
            }
        }
    }
}

#[test]
fn the_output_is_exactly_as_long_as_the_frames() {
    let video = clips::open("b_frames");
    for len in [0, 64 * 48 * 3 * 2 - 1, 64 * 48 * 3 * 2 + 1] {
        let error = clips::decode(
            &video,
            &[0.0, 0.1],
            1e-4,
            Layout::Hwc,
            Pixels::U8(&mut vec![0; len]),
        )
        .unwrap_err();
        assert!(
            matches!(error, Error::OutputLength { expected: 18_432, found, .. } if found == len),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains("2 frames of 48x64x3 need an output of 18432 elements"),
            "{error}"
        );
    }
}
