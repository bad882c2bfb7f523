//! From decoded frames to the caller's pixels.

use crate::cpu::ffi::{Frame, Packing, Scaler};
use crate::error::FfmpegError;
use crate::frame::{Layout, Pixels};
use crate::resize::{Resizer, Size, resize_codes};

/// Writes decoded frames in a layout.
///
/// For frames of any number of videos and sizes: what each needs is kept for the next that is like it.
#[derive(Debug)]
pub(crate) struct Painter {
    layout: Layout,
    canvas: Canvas,
    /// One frame of pixels, for outputs that are not bytes of RGB.
    pixels: Vec<u8>,
}

impl Painter {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            layout,
            canvas: Canvas::default(),
            pixels: Vec::new(),
        }
    }

    /// Writes one frame, in `size`: `out` is `H * W * C` long.
    ///
    /// # Panics
    ///
    /// When `out` is of another length, or `size` does not pass [`Size::check`].
    pub(crate) fn paint(
        &mut self,
        frame: &Frame,
        size: Size,
        out: Pixels<'_>,
    ) -> Result<(), FfmpegError> {
        let Self {
            layout,
            canvas,
            pixels,
        } = self;
        match (out, *layout) {
            (Pixels::U16(out), _) => {
                let stored = size_of(frame);
                let row = |y| frame.row(y, stored.width * 2).as_chunks().0;
                resize_codes(stored, row, u16::from_ne_bytes, (out, size));
            }
            // The bytes as they are wanted, without a copy.
            (Pixels::U8(out), Layout::Hwc) => canvas.draw::<3>(frame, Packing::Rgb, (out, size))?,
            (out, Layout::Hwc) => {
                pixels.resize(size.num_pixels() * 3, 0);
                canvas.draw::<3>(frame, Packing::Rgb, (pixels, size))?;
                out.write_rgb(Layout::Hwc, pixels.as_chunks::<3>().0);
            }
            (out, Layout::Chw) => {
                pixels.resize(size.num_pixels() * 4, 0);
                canvas.draw::<4>(frame, Packing::Rgbx, (pixels, size))?;
                out.write_rgb(Layout::Chw, pixels.as_chunks::<4>().0);
            }
        }
        Ok(())
    }
}

/// Where a frame becomes RGB of the wanted size.
#[derive(Debug, Default)]
struct Canvas {
    scaler: Scaler,
    resizer: Resizer,
    /// One frame of pixels as stored, for outputs of another size.
    stored: Vec<u8>,
}

impl Canvas {
    /// Writes a frame as pixels of `N` bytes, in `packing`.
    fn draw<const N: usize>(
        &mut self,
        frame: &Frame,
        packing: Packing,
        (out, size): (&mut [u8], Size),
    ) -> Result<(), FfmpegError> {
        let stored = size_of(frame);
        if stored == size {
            return self.scaler.convert(frame, packing, out);
        }
        self.stored.resize(stored.num_pixels() * N, 0);
        self.scaler.convert(frame, packing, &mut self.stored)?;
        self.resizer
            .resize::<N>((&self.stored, stored), (out, size));
        Ok(())
    }
}

fn size_of(frame: &Frame) -> Size {
    Size {
        height: frame.height(),
        width: frame.width(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::ffi::PixelFormat;

    /// A frame of noise.
    fn noise(size: Size, format: &str, seed: u64) -> Frame {
        let mut state = seed;
        let format = PixelFormat::named(format);
        Frame::filled((size.width, size.height), format, |row| {
            for byte in row {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
        })
    }

    const SIZES: [Size; 5] = [
        Size {
            height: 64,
            width: 96,
        },
        Size {
            height: 50,
            width: 66,
        },
        Size {
            height: 50,
            width: 65,
        },
        Size {
            height: 49,
            width: 64,
        },
        Size {
            height: 1,
            width: 1,
        },
    ];

    /// Planar and half planar, with and without subsampling, of more bits and of both ranges, gray, and RGB.
    const FORMATS: [&str; 9] = [
        "yuv420p",
        "yuvj420p",
        "yuv422p",
        "yuv444p",
        "nv12",
        "yuv420p10le",
        "gray",
        "gbrp",
        "rgb24",
    ];

    fn painted(painter: &mut Painter, frame: &Frame, size: Size) -> Vec<u8> {
        let mut out = vec![0; size.num_pixels() * 3];
        painter.paint(frame, size, Pixels::U8(&mut out)).unwrap();
        out
    }

    #[test]
    fn layouts_agree_for_every_format_and_size() {
        let (mut hwc, mut chw) = (Painter::new(Layout::Hwc), Painter::new(Layout::Chw));
        for (format, stored) in FORMATS.iter().flat_map(|f| SIZES.map(|size| (f, size))) {
            let frame = noise(stored, format, 1);
            for size in [
                stored,
                Size {
                    height: 20,
                    width: 33,
                },
            ] {
                let (pixels, planes) = (
                    painted(&mut hwc, &frame, size),
                    painted(&mut chw, &frame, size),
                );
                let regrouped: Vec<u8> = (0..3)
                    .flat_map(|c| pixels.as_chunks::<3>().0.iter().map(move |pixel| pixel[c]))
                    .collect();
                assert!(planes == regrouped, "{format}, {stored:?} to {size:?}");
            }
        }
    }

    #[test]
    fn what_was_painted_before_makes_no_difference() {
        let frames: Vec<_> = FORMATS
            .iter()
            .zip(1..)
            .flat_map(|(format, seed)| SIZES.map(|size| (noise(size, format, seed), size)))
            .collect();
        let mut shared = Painter::new(Layout::Chw);
        // More kinds of frames than conversions are kept, there and back.
        for (frame, size) in frames.iter().chain(frames.iter().rev()) {
            let alone = painted(&mut Painter::new(Layout::Chw), frame, *size);
            assert!(painted(&mut shared, frame, *size) == alone, "{size:?}");
        }
    }
}
