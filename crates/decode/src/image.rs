//! Image features: frames kept as PNG or JPEG bytes rather than in a video.
//!
//! ```
//! use decode::{Layout, Pixels, image};
//!
//! let png = std::fs::read("tests/clips/two_by_one.png")?;
//! let (width, height) = image::dimensions(&png)?;
//! let mut rgb = vec![0; height * width * 3]; // [H, W, C]
//! image::decode_into(&png, Layout::Hwc, None, Pixels::U8(&mut rgb))?;
//! assert_eq!(rgb, [255, 0, 0, 0, 0, 255]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Cursor;

use ::image::{DynamicImage, ImageFormat, ImageReader, Limits};

use crate::error::Error;
use crate::frame::{Layout, Pixels};
use crate::limits;
use crate::resize::{Resizer, Size, resize_codes};

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

/// Decodes an image into `out`, which is exactly `H * W * C` long, H and W being `resize` or else the image's own.
///
/// Colour is written as red, green and blue of 8 bits: gray is repeated, an alpha channel is dropped, and 16 bits are
/// rounded to 8. [`Pixels::U16`] takes an image of one 16-bit channel, exactly as coded. Both are resized as a video's frames are, by
/// [`VideoOptions::resize`](crate::VideoOptions::resize).
///
/// # Errors
///
/// [`Error::Image`]: no PNG or JPEG, damaged bytes, sides over 16,384 pixels, an `out` of another length, `U16` asked of an
/// image that is not one 16-bit channel, or a `resize` that has a side of 0, one over 16,384 pixels, or over 67,108,864 pixels. `out` is then
/// unspecified.
pub fn decode_into(
    bytes: &[u8],
    layout: Layout,
    resize: Option<Size>,
    out: Pixels<'_>,
) -> Result<(), Error> {
    let refused = |what| Error::Image {
        num_bytes: bytes.len(),
        what,
        source: None,
    };
    let (width, height) = dimensions(bytes)?;
    let stored = Size { height, width };
    let size = resize.unwrap_or(stored);
    let Size { height, width } = size;
    if resize.is_some() {
        size.check(limits::DEFAULT_MAX_PIXELS)
            .map_err(|why| refused(format!("it cannot be resized to {height}x{width}: {why}")))?;
    }
    let channels = out.kind().channels();
    let expected = size.num_pixels().saturating_mul(channels);
    if out.len() != expected {
        return Err(refused(format!(
            "{height}x{width}x{channels} needs an output of {expected} elements, found {}",
            out.len()
        )));
    }
    let image = reader(bytes)?
        .decode()
        .map_err(|source| failed(bytes, "it is damaged, or too large", source))?;
    match (out, image) {
        (Pixels::U16(out), DynamicImage::ImageLuma16(codes)) => {
            let codes = codes.as_raw();
            let row = |y: usize| &codes[y * stored.width..][..stored.width];
            resize_codes(stored, row, |code| code, (out, size));
        }
        (Pixels::U16(_), other) => {
            let color = other.color();
            return Err(refused(format!(
                "u16 needs one channel of 16 bits, found {color:?}"
            )));
        }
        (out, image) => {
            let mut rgb = image.into_rgb8().into_raw();
            if size != stored {
                let mut resized = vec![0; size.num_pixels() * 3];
                Resizer::default().resize::<3>((&rgb, stored), (&mut resized, size));
                rgb = resized;
            }
            out.write_rgb(layout, rgb.as_chunks::<3>().0);
        }
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
