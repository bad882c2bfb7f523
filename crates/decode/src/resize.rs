//! Pictures of another size.
//!
//! Colour is resized as torchvision's `resize(..., antialias=True)` does it: bilinear, over as many pixels of the source as one of the target
//! covers, rounded to 8 bits after each of two passes. Depth codes are never mixed: a code between an object's and the wall's behind it would
//! be a surface that is not there. Each is that of the nearest pixel, centre to centre.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions};

use crate::limits;

/// The sides of a picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// H.
    pub height: usize,
    /// W.
    pub width: usize,
}

impl Size {
    /// `H * W`.
    pub(crate) fn num_pixels(self) -> usize {
        self.height.saturating_mul(self.width)
    }

    /// Says why pictures cannot be resized to this, if they cannot.
    pub(crate) fn check(self, max_pixels: u64) -> Result<(), String> {
        let longest = self.height.max(self.width);
        if self.height == 0 || self.width == 0 {
            Err("a side is 0".to_owned())
        } else if longest > limits::MAX_SIDE_PX as usize {
            let limit = limits::MAX_SIDE_PX;
            Err(format!(
                "the longer side is over the limit of {limit} pixels"
            ))
        } else if self.num_pixels() as u64 > max_pixels {
            Err(format!("these are over the limit of {max_pixels} pixels"))
        } else {
            Ok(())
        }
    }
}

/// Resizes colour, and keeps what it needs for that.
#[derive(Debug, Default)]
pub(crate) struct Resizer(fast_image_resize::Resizer);

impl Resizer {
    /// Resizes pixels of `N` bytes, `[H, W, N]`, N being 3 or 4.
    ///
    /// # Panics
    ///
    /// When a slice is not of its size, or a size does not pass [`Size::check`].
    pub(crate) fn resize<const N: usize>(
        &mut self,
        (source, from): (&[u8], Size),
        (target, to): (&mut [u8], Size),
    ) {
        assert_eq!(source.len(), from.num_pixels() * N, "one picture");
        assert_eq!(target.len(), to.num_pixels() * N, "one picture");
        let side = |pixels| u32::try_from(pixels).expect("at most MAX_SIDE_PX");
        // The fourth byte is no alpha channel, and weighs nothing.
        let (pixel, options) = match N {
            3 => (PixelType::U8x3, ResizeOptions::new()),
            4 => (PixelType::U8x4, ResizeOptions::new().use_alpha(false)),
            _ => unreachable!("a pixel has 3 or 4 bytes"),
        };
        let options = options.resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
        let source = ImageRef::new(side(from.width), side(from.height), source, pixel)
            .expect("as long as the size says");
        let mut target = Image::from_slice_u8(side(to.width), side(to.height), target, pixel)
            .expect("as long as the size says");
        self.0
            .resize(&source, &mut target, &options)
            .expect("two pictures of one type, and nothing cut away");
    }
}

/// Writes depth codes, taking each from the nearest place of a source whose rows `row` gives.
///
/// # Panics
///
/// When `out` is not of its size, or a row is shorter than `from` says.
pub(crate) fn resize_codes<'a, T: Copy + 'a>(
    from: Size,
    row: impl Fn(usize) -> &'a [T],
    code: impl Fn(T) -> u16,
    (out, to): (&mut [u16], Size),
) {
    assert_eq!(out.len(), to.num_pixels(), "one picture");
    for (y, out) in out.chunks_exact_mut(to.width).enumerate() {
        let row = &row(nearest(y, from.height, to.height))[..from.width];
        if from.width == to.width {
            for (out, &found) in out.iter_mut().zip(row) {
                *out = code(found);
            }
        } else {
            for (x, out) in out.iter_mut().enumerate() {
                *out = code(row[nearest(x, from.width, to.width)]);
            }
        }
    }
}

/// Which of `from` equal parts of a line holds the centre of part `i` of `to`.
fn nearest(i: usize, from: usize, to: usize) -> usize {
    (2 * i + 1) * from / (2 * to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_from_the_nearest_centre() {
        let indices = |from, to| (0..to).map(|i| nearest(i, from, to)).collect::<Vec<_>>();
        assert_eq!(indices(5, 5), [0, 1, 2, 3, 4]);
        assert_eq!(indices(6, 2), [1, 4]);
        assert_eq!(indices(2, 5), [0, 0, 1, 1, 1]);
        assert_eq!(indices(1, 3), [0, 0, 0]);
        assert_eq!(indices(16_384, 1), [8_192]);
    }

    #[test]
    fn codes_are_resized_in_both_directions() {
        let size = |height, width| Size { height, width };
        let codes = [[1_u16, 2, 3], [4, 5, 6]];
        let mut out = [0; 8];
        resize_codes(
            size(2, 3),
            |y| &codes[y],
            |code| code,
            (&mut out, size(4, 2)),
        );
        assert_eq!(out, [1, 3, 1, 3, 4, 6, 4, 6]);
        let mut out = [0; 3];
        resize_codes(
            size(2, 3),
            |y| &codes[y],
            |code| code + 1,
            (&mut out, size(1, 3)),
        );
        assert_eq!(out, [5, 6, 7]);
    }

    #[test]
    fn a_byte_that_means_nothing_changes_no_colour() {
        let (from, to) = (
            Size {
                height: 7,
                width: 9,
            },
            Size {
                height: 4,
                width: 13,
            },
        );
        let rgb: Vec<[u8; 3]> = (0..63_u8)
            .map(|i| [i * 4, 255 - i, i.wrapping_mul(37)])
            .collect();
        let rgbx: Vec<[u8; 4]> = rgb
            .iter()
            .map(|&[r, g, b]| [r, g, b, r.wrapping_mul(91)])
            .collect();
        let (mut three, mut four) = ([[0; 3]; 52], [[0; 4]; 52]);
        let mut resizer = Resizer::default();
        resizer.resize::<3>((rgb.as_flattened(), from), (three.as_flattened_mut(), to));
        resizer.resize::<4>((rgbx.as_flattened(), from), (four.as_flattened_mut(), to));
        assert_eq!(four.map(|[r, g, b, _]| [r, g, b]), three);
    }

    #[test]
    fn sizes_have_bounds() {
        let check = |height, width| Size { height, width }.check(1 << 20);
        assert_eq!(check(1, 1), Ok(()));
        assert_eq!(check(1024, 1024), Ok(()));
        assert!(check(1024, 1025).unwrap_err().contains("1048576 pixels"));
        assert!(check(1, 16_385).unwrap_err().contains("16384"));
        assert!(check(usize::MAX, usize::MAX).is_err());
        assert!(check(0, 5).is_err() && check(5, 0).is_err());
    }
}
