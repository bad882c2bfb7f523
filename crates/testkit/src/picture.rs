//! Decoded pictures, and PNG in and out.

use std::io::Cursor;
use std::path::Path;

/// A picture of 8-bit RGB.
#[derive(Clone, PartialEq, Eq)]
pub struct RgbImage {
    /// The number of pixels in a row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// The samples, `[height, width, 3]`.
    pub pixels: Vec<u8>,
}

impl std::fmt::Debug for RgbImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RgbImage({}x{})", self.width, self.height)
    }
}

/// Reads a PNG file as RGB.
///
/// # Panics
///
/// If the file cannot be read or is no PNG.
pub fn read_png(path: &Path) -> RgbImage {
    let png =
        std::fs::read(path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
    let image = image::load_from_memory_with_format(&png, image::ImageFormat::Png)
        .unwrap_or_else(|error| panic!("decode {}: {error}", path.display()))
        .into_rgb8();
    RgbImage {
        width: image.width() as usize,
        height: image.height() as usize,
        pixels: image.into_raw(),
    }
}

/// Encodes `pixels`, RGB of `[height, width, 3]`, as a PNG file's bytes.
///
/// # Panics
///
/// If `pixels` does not have that many samples.
pub fn png(pixels: &[u8], height: usize, width: usize) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let (width, height) = (u32::try_from(width), u32::try_from(height));
    let (width, height) = (
        width.expect("a test picture is small"),
        height.expect("a test picture is small"),
    );
    image::write_buffer_with_format(
        &mut bytes,
        pixels,
        width,
        height,
        image::ExtendedColorType::Rgb8,
        image::ImageFormat::Png,
    )
    .expect("writing to memory succeeds");
    bytes.into_inner()
}
