//! Image features: frames kept as PNG or JPEG bytes rather than in a video.
//!
//! ```
//! use decode::{Layout, Pixels, image};
//!
//! let png = std::fs::read("tests/clips/two_by_one.png")?;
//! let (width, height) = image::dimensions(&png)?;
//! let mut rgb = vec![0; height * width * 3]; // [H, W, C]
//! image::decode_into(&png, Layout::Hwc, Pixels::U8(&mut rgb))?;
//! assert_eq!(rgb, [255, 0, 0, 0, 0, 255]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Cursor;

use ::image::{DynamicImage, ImageFormat, ImageReader, Limits};

use crate::error::Error;
use crate::frame::{Kind, Layout, Pixels};
use crate::limits;

/// The sides of an encoded image, `(width, height)`, in pixels, read from its header alone.
///
/// # Errors
///
/// [`Error::Image`]: the bytes are no PNG or JPEG, or have no sound header.
pub fn dimensions(bytes: &[u8]) -> Result<(usize, usize), Error> {
    let (width, height) = reader(bytes)?
        .into_dimensions()
        .map_err(|source| failed(bytes, "its header is damaged", source))?;
    Ok((width as usize, height as usize))
}

/// Decodes an image into `out`, which is exactly `H * W * C` long.
///
/// Colour is written as red, green and blue of 8 bits: gray is repeated, an alpha channel is dropped, and 16 bits are
/// rounded to 8. [`Pixels::U16`] takes an image of one 16-bit channel, exactly as coded.
///
/// # Errors
///
/// [`Error::Image`]: no PNG or JPEG, damaged bytes, sides over 16,384 pixels, an `out` of another length, or `U16` asked of an
/// image that is not one 16-bit channel. `out` is then unspecified.
pub fn decode_into(bytes: &[u8], layout: Layout, mut out: Pixels<'_>) -> Result<(), Error> {
    let (width, height) = dimensions(bytes)?;
    let channels = out.kind().channels();
    let expected = width.saturating_mul(height).saturating_mul(channels);
    if out.len() != expected {
        let what = format!(
            "{height}x{width}x{channels} needs an output of {expected} elements, found {}",
            out.len()
        );
        return Err(Error::Image {
            num_bytes: bytes.len(),
            what,
            source: None,
        });
    }
    let image = reader(bytes)?
        .decode()
        .map_err(|source| failed(bytes, "it is damaged, or too large", source))?;
    match (out.kind(), &mut out) {
        (Kind::Depth, Pixels::U16(out)) => match image {
            DynamicImage::ImageLuma16(codes) => out.copy_from_slice(&codes),
            other => {
                let what = format!(
                    "u16 needs one channel of 16 bits, found {:?}",
                    other.color()
                );
                return Err(Error::Image {
                    num_bytes: bytes.len(),
                    what,
                    source: None,
                });
            }
        },
        (_, out) => out.write_rgb(0, layout, &image.into_rgb8()),
    }
    Ok(())
}

/// A reader of the two formats, within limits.
fn reader(bytes: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, Error> {
    let format = match ::image::guess_format(bytes) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => format,
        _ => {
            let what = format!(
                "no PNG or JPEG: it begins with \"{}\"",
                bytes[..bytes.len().min(16)].escape_ascii()
            );
            return Err(Error::Image {
                num_bytes: bytes.len(),
                what,
                source: None,
            });
        }
    };
    let mut limits = Limits::default();
    limits.max_image_width = Some(limits::MAX_SIDE_PX);
    limits.max_image_height = Some(limits::MAX_SIDE_PX);
    limits.max_alloc = Some(limits::MAX_IMAGE_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    Ok(reader)
}

fn failed(bytes: &[u8], what: &str, source: ::image::ImageError) -> Error {
    Error::Image {
        num_bytes: bytes.len(),
        what: what.to_owned(),
        source: Some(Box::new(source)),
    }
}
