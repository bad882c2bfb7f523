//! Image features: PNG and JPEG.

use std::io::Cursor;

use ::image::{DynamicImage, GrayImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, RgbaImage};
use decode::image::{decode_into, dimensions};
use decode::{Error, Layout, Pixels};

fn encode(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn gradient() -> RgbImage {
    RgbImage::from_fn(31, 17, |x, y| {
        Rgb([x as u8 * 8, y as u8 * 15, (x + y) as u8])
    })
}

fn decode(bytes: &[u8], layout: Layout) -> Result<Vec<u8>, Error> {
    let (width, height) = dimensions(bytes)?;
    let mut out = vec![0; height * width * 3];
    decode_into(bytes, layout, None, Pixels::U8(&mut out)).map(|()| out)
}

#[test]
fn png_is_exact_in_every_layout_and_type() {
    let rgb = gradient();
    let png = encode(&rgb.clone().into(), ImageFormat::Png);
    assert_eq!(dimensions(&png).unwrap(), (31, 17));
    assert_eq!(decode(&png, Layout::Hwc).unwrap(), rgb.as_raw().as_slice());
    let planes = decode(&png, Layout::Chw).unwrap();
    let mut floats = vec![0.0; planes.len()];
    decode_into(&png, Layout::Chw, None, Pixels::F32(&mut floats)).unwrap();
    for (x, y, pixel) in rgb.enumerate_pixels() {
        for c in 0..3 {
            let position = (c * 17 + y as usize) * 31 + x as usize;
            assert_eq!(
                (planes[position], floats[position]),
                (pixel[c], f32::from(pixel[c]) / 255.0)
            );
        }
    }
}

#[test]
fn jpeg_is_near() {
    let rgb = RgbImage::from_pixel(64, 48, Rgb([200, 100, 50]));
    let found = decode(&encode(&rgb.clone().into(), ImageFormat::Jpeg), Layout::Hwc).unwrap();
    assert!(
        found
            .iter()
            .zip(rgb.as_raw())
            .all(|(a, b)| a.abs_diff(*b) <= 3)
    );
}

#[test]
fn gray_is_repeated_and_alpha_dropped() {
    let gray = GrayImage::from_fn(3, 2, |x, y| Luma([(x * 40 + y * 7) as u8]));
    let expected: Vec<u8> = gray.as_raw().iter().flat_map(|&v| [v, v, v]).collect();
    assert_eq!(
        decode(&encode(&gray.into(), ImageFormat::Png), Layout::Hwc).unwrap(),
        expected
    );
    let alpha = RgbaImage::from_pixel(2, 2, ::image::Rgba([1, 2, 3, 0]));
    assert_eq!(
        decode(&encode(&alpha.into(), ImageFormat::Png), Layout::Hwc).unwrap(),
        [1, 2, 3].repeat(4)
    );
}

#[test]
fn sixteen_bits_of_gray_are_codes() {
    let codes: ImageBuffer<Luma<u16>, Vec<u16>> =
        ImageBuffer::from_fn(5, 4, |x, y| Luma([(x * 9_000 + y * 123) as u16]));
    let png = encode(&codes.clone().into(), ImageFormat::Png);
    let mut out = vec![0; 20];
    decode_into(&png, Layout::Hwc, None, Pixels::U16(&mut out)).unwrap();
    assert_eq!(out, codes.as_raw().as_slice());
    let error = decode_into(
        &encode(&gradient().into(), ImageFormat::Png),
        Layout::Hwc,
        None,
        Pixels::U16(&mut vec![0; 31 * 17]),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("u16 needs one channel of 16 bits, found Rgb8"),
        "{error}"
    );
}

#[test]
fn damage_is_an_error() {
    let png = encode(&gradient().into(), ImageFormat::Png);
    let jpeg = encode(&gradient().into(), ImageFormat::Jpeg);
    for len in 0..png.len() - 12 {
        assert!(
            matches!(decode(&png[..len], Layout::Hwc), Err(Error::Image { .. })),
            "a PNG cut at {len} of {}",
            png.len()
        );
    }
    let error = decode(b"version https://git-lfs.github.com/spec/v1", Layout::Hwc).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no PNG or JPEG: it begins with \"version https://\""),
        "{error}"
    );
    let mut random = crate::clips::Random(3);
    for _ in 0..500 {
        for original in [&png, &jpeg] {
            let mut bytes = original.clone();
            let position = random.below(bytes.len());
            bytes[position] ^= 1 << random.below(8);
            // Either is fine: a PNG carries checksums, a JPEG does not.
            let _ = decode(&bytes, Layout::Hwc);
        }
    }
}

#[test]
fn a_header_that_lies_about_its_size_is_refused_before_reserving() {
    let mut png = encode(&gradient().into(), ImageFormat::Png);
    // IHDR: width and height at bytes 16..24, and the checksum of the chunk after it, at 29..33.
    png[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let crc = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    assert!(decode_into(&png, Layout::Hwc, None, Pixels::U8(&mut [])).is_err());
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    })
}

#[test]
fn the_output_is_exactly_as_long_as_the_image() {
    let png = encode(&gradient().into(), ImageFormat::Png);
    let error =
        decode_into(&png, Layout::Hwc, None, Pixels::U8(&mut vec![0; 31 * 17])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("17x31x3 needs an output of 1581 elements, found 527"),
        "{error}"
    );
}
