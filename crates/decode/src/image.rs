//! Image features: frames kept as PNG or JPEG bytes rather than in a video.

use crate::error::Error;
use crate::frame::{Layout, Pixels};

/// The sides of an encoded image: `(width, height)`, in pixels.
///
/// # Errors
///
/// Later.
pub fn dimensions(bytes: &[u8]) -> Result<(usize, usize), Error> {
    let _ = bytes;
    todo!()
}

/// Decodes an image into `out`.
///
/// # Errors
///
/// Later.
pub fn decode_into(bytes: &[u8], layout: Layout, out: Pixels<'_>) -> Result<(), Error> {
    let _ = (bytes, layout, out);
    todo!()
}
