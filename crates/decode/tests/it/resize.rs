//! Frames and images in another size than they are stored in.

use std::io::Cursor;

use ::image::{GrayImage, ImageBuffer, ImageFormat, Luma};
use decode::image::{decode_into, dimensions};
use decode::{Error, Layout, Pixels, Size, Video, VideoOptions};

use crate::clips;

fn size(height: usize, width: usize) -> Size {
    Size { height, width }
}

fn open(name: &str, resize: Option<Size>) -> Result<Video, Error> {
    let mut options = VideoOptions::default();
    options.resize = resize;
    let media = Box::new(Cursor::new(clips::bytes(name)));
    Video::open(media, &format!("{name}.mp4"), "wrist", &options)
}

/// The largest difference between two values.
fn distance(a: &[u8], b: &[u8]) -> u8 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

/// What is beside `tests/resized/source.png`: a picture by torchvision, and its size.
fn references() -> Vec<(Size, Vec<u8>)> {
    let mut found: Vec<_> = std::fs::read_dir("tests/resized")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|ext| ext == "png") && !path.ends_with("source.png")
        })
        .map(|path| {
            let png = std::fs::read(path).unwrap();
            let (width, height) = dimensions(&png).unwrap();
            let mut rgb = vec![0; height * width * 3];
            decode_into(&png, Layout::Hwc, None, Pixels::U8(&mut rgb)).unwrap();
            (size(height, width), rgb)
        })
        .collect();
    found.sort_by_key(|(size, _)| (size.height, size.width));
    found
}

#[test]
fn images_are_resized_as_torchvision_does() {
    let source = std::fs::read("tests/resized/source.png").unwrap();
    let references = references();
    assert_eq!(references.len(), 9);
    for (size, expected) in references {
        let mut rgb = vec![0; expected.len()];
        decode_into(&source, Layout::Hwc, Some(size), Pixels::U8(&mut rgb)).unwrap();
        let distance = distance(&rgb, &expected);
        assert!(distance <= 2, "{size:?}: off by {distance}");
    }
}

#[test]
fn a_frame_is_resized_as_the_image_that_it_is() {
    for name in [
        "b_frames",
        "odd_vp9",
        "odd_h264_444",
        "hevc_10bit",
        "color_bt709_pc",
    ] {
        let stored = open(name, None).unwrap();
        let (height, width) = (stored.info().height, stored.info().width);
        let rgb = clips::rgb(&stored, &[0.1]).unwrap().remove(0);
        let mut png = Cursor::new(Vec::new());
        let as_stored = (width as u32, height as u32);
        ::image::write_buffer_with_format(
            &mut png,
            &rgb,
            as_stored.0,
            as_stored.1,
            ::image::ExtendedColorType::Rgb8,
            ImageFormat::Png,
        )
        .unwrap();
        for size in [
            size(17, 31),
            size(height, 40),
            size(70, 101),
            size(height, width),
        ] {
            let len = size.height * size.width * 3;
            let video = open(name, Some(size)).unwrap();
            assert_eq!(video.output_size(), size);
            assert_eq!((video.info().height, video.info().width), (height, width));
            for layout in [Layout::Hwc, Layout::Chw] {
                let (mut found, mut expected) = (vec![0; len], vec![0; len]);
                clips::decode(&video, &[0.1], 1e-4, layout, Pixels::U8(&mut found)).unwrap();
                let png = png.get_ref();
                decode_into(png, layout, Some(size), Pixels::U8(&mut expected)).unwrap();
                assert!(found == expected, "{name}, {size:?}, {layout:?}");

                let mut floats = vec![f32::NAN; len];
                clips::decode(&video, &[0.1], 1e-4, layout, Pixels::F32(&mut floats)).unwrap();
                let matches = |(float, byte): (&f32, &u8)| *float == f32::from(*byte) / 255.0;
                assert!(
                    floats.iter().zip(&found).all(matches),
                    "{name}, {size:?}, {layout:?}"
                );
            }
        }
    }
}

#[test]
fn one_decoder_serves_videos_of_different_sizes() {
    let mut decoder = decode::Decoder::new();
    let videos =
        [None, Some(size(24, 32)), Some(size(30, 30))].map(|to| open("b_frames", to).unwrap());
    let alone: Vec<_> = videos
        .iter()
        .map(|video| {
            let Size { height, width } = video.output_size();
            let mut rgb = vec![0; height * width * 3];
            clips::decode(video, &[0.3], 1e-4, Layout::Hwc, Pixels::U8(&mut rgb)).unwrap();
            rgb
        })
        .collect();
    for round in 0..3 {
        for (video, expected) in videos.iter().zip(&alone) {
            let mut rgb = vec![0; expected.len()];
            decoder
                .decode(video, &[0.3], 1e-4, Layout::Hwc, Pixels::U8(&mut rgb))
                .unwrap();
            assert!(rgb == *expected, "{:?}, round {round}", video.output_size());
        }
    }
}

#[test]
fn depth_codes_are_picked_and_never_mixed() {
    let (height, width) = (25, 99);
    let video = open("depth_slope", Some(size(height, width))).unwrap();
    for layout in [Layout::Hwc, Layout::Chw] {
        let mut codes = vec![0; height * width];
        clips::decode(&video, &[0.2], 1e-4, layout, Pixels::U16(&mut codes)).unwrap();
        for (i, code) in codes.into_iter().enumerate() {
            // Half the height: the centre of a target row is the edge between two source rows, and the lower one is taken.
            let (x, y) = ((2 * (i % width) + 1) / 3, 2 * (i / width) + 1);
            assert_eq!(code, ((60 * x + 7 * y + 300 * 2) % 4096) as u16, "{i}");
        }
    }
}

#[test]
fn sixteen_bit_images_are_picked_and_never_mixed() {
    let codes = ImageBuffer::from_fn(4, 2, |x, y| Luma([(x * 1000 + y * 100) as u16]));
    let mut png = Cursor::new(Vec::new());
    codes.write_to(&mut png, ImageFormat::Png).unwrap();
    let mut out = vec![0; 8];
    let to = Some(size(4, 2));
    decode_into(png.get_ref(), Layout::Hwc, to, Pixels::U16(&mut out)).unwrap();
    assert_eq!(out, [1000, 3000, 1000, 3000, 1100, 3100, 1100, 3100]);
}

#[test]
fn the_output_is_as_long_as_the_resized_frames() {
    let video = open("b_frames", Some(size(24, 32))).unwrap();
    let out = Pixels::U8(&mut [0; 64 * 48 * 3]);
    let error = clips::decode(&video, &[0.0], 1e-4, Layout::Hwc, out).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("1 frames of 24x32x3 need an output of 2304 elements, found 9216"),
        "{error}"
    );
    let png = std::fs::read("tests/resized/source.png").unwrap();
    let out = Pixels::U8(&mut [0; 49 * 65 * 3]);
    let error = decode_into(&png, Layout::Hwc, Some(size(2, 5)), out).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("2x5x3 needs an output of 30 elements"),
        "{error}"
    );
}

#[test]
fn impossible_sizes_are_refused_at_once() {
    let gray = GrayImage::new(3, 2);
    let mut png = Cursor::new(Vec::new());
    gray.write_to(&mut png, ImageFormat::Png).unwrap();
    for (to, expected) in [
        (size(0, 8), "resized to 0x8: a side is 0"),
        (size(8, 0), "resized to 8x0: a side is 0"),
        (
            size(1, 16_385),
            "resized to 1x16385: the longer side is over the limit of 16384 pixels",
        ),
        (
            size(usize::MAX, usize::MAX),
            "over the limit of 16384 pixels",
        ),
        (
            size(16_384, 16_384),
            "resized to 16384x16384: these are over the limit of 67108864 pixels",
        ),
    ] {
        let error = open("b_frames", Some(to)).unwrap_err();
        assert!(matches!(error, Error::InvalidResize { size, .. } if size == to));
        assert!(error.to_string().contains(expected), "{error}");
        let error =
            decode_into(png.get_ref(), Layout::Hwc, Some(to), Pixels::U8(&mut [])).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut options = VideoOptions::default();
    options.max_pixels = 64 * 48;
    options.resize = Some(size(48, 65));
    let media = Box::new(Cursor::new(clips::bytes("b_frames")));
    let error = Video::open(media, "b_frames.mp4", "wrist", &options).unwrap_err();
    assert!(
        error.to_string().ends_with("over the limit of 3072 pixels"),
        "{error}"
    );
}
