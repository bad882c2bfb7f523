//! From decoded pixels to RGB bytes.
//!
//! | what the stream says | what is done |
//! | --- | --- |
//! | matrix BT.601, BT.709, BT.2020, SMPTE 240M, FCC | that matrix |
//! | no matrix | BT.601, whatever the size |
//! | range limited or full | that range |
//! | no range | limited, and full for the `yuvj` formats |
//! | more than 8 bits | rounded to 8 |
//! | chroma of half the size | yuv420p of an even height: that of the pixel's block, unblended; else interpolated |
//! | primaries, transfer, chroma position, rotation | not applied |
//!
//! The matrix is applied with swscale's own rounding, which the readers that others train with have too: for limited range its values are a
//! level darker in the mean than exact ones, and up to three at a pixel. A faster conversion that is nearer the formula would be further from them.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use rusty_ffmpeg::ffi;

use super::frame::{Frame, PixelFormat};
use super::{check, out_of_memory};
use crate::error::FfmpegError;

/// The vector code of swscale works in blocks of up to this many pixels, and writes whole blocks.
const BLOCK_PIXELS: usize = 32;

/// The most conversions that are kept: one for each camera of most datasets.
const MAX_CONTEXTS: usize = 8;

/// How the bytes of a pixel lie behind one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue, and a byte that means nothing. The colours are those of [`Packing::Rgb`]; swscale is faster at it, and so is whoever takes
    /// the channels apart.
    Rgbx,
}

impl Packing {
    /// The bytes of a pixel.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Rgbx => 4,
        }
    }

    fn raw(self) -> ffi::AVPixelFormat {
        match self {
            Self::Rgb => ffi::AV_PIX_FMT_RGB24,
            Self::Rgbx => ffi::AV_PIX_FMT_RGB0,
        }
    }
}

/// Owner of conversions to RGB, one for each kind of frame seen of late.
///
/// Bilinear at 1:1 and without `SWS_ACCURATE_RND`, as PyAV and torchcodec convert: pixels then equal theirs.
#[derive(Debug, Default)]
pub(crate) struct Scaler {
    /// Most recently used last.
    contexts: Vec<(Likeness, Context)>,
    /// Rows padded to whole blocks, for widths that are not.
    padded: Vec<u8>,
}

/// What a conversion depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Likeness {
    width: c_int,
    height: c_int,
    format: PixelFormat,
    matrix: ffi::AVColorSpace,
    range: ffi::AVColorRange,
    packing: Packing,
}

impl Scaler {
    /// Writes a frame as pixels, `[H, W]` of `packing`.
    ///
    /// # Panics
    ///
    /// When `rgb` is not `H * W` pixels long.
    pub(crate) fn convert(
        &mut self,
        frame: &Frame,
        packing: Packing,
        rgb: &mut [u8],
    ) -> Result<(), FfmpegError> {
        let (width, height) = (frame.width(), frame.height());
        let row_bytes = width * packing.bytes();
        assert_eq!(
            rgb.len(),
            row_bytes * height,
            "one frame of {width}x{height} RGB"
        );
        let raw = frame.get();
        let likeness = Likeness {
            width: raw.width,
            height: raw.height,
            format: frame.pixel_format(),
            matrix: raw.colorspace,
            range: raw.color_range,
            packing,
        };
        let found = self
            .contexts
            .iter()
            .position(|(made_for, _)| *made_for == likeness);
        let context = match found {
            Some(position) => self.contexts.remove(position).1,
            None => Context::new(likeness)?,
        };
        let converted = if width.is_multiple_of(BLOCK_PIXELS) {
            context.convert(frame, packing, rgb, row_bytes)
        } else {
            let stride = width.next_multiple_of(BLOCK_PIXELS) * packing.bytes();
            self.padded.resize(stride * height, 0);
            context
                .convert(frame, packing, &mut self.padded, stride)
                .map(|()| {
                    for (row, padded) in rgb
                        .chunks_exact_mut(row_bytes)
                        .zip(self.padded.chunks_exact(stride))
                    {
                        row.copy_from_slice(&padded[..row_bytes]);
                    }
                })
        };
        if self.contexts.len() == MAX_CONTEXTS {
            self.contexts.remove(0);
        }
        self.contexts.push((likeness, context));
        converted
    }
}

/// Owner of a swscale context.
#[derive(Debug)]
struct Context(NonNull<ffi::SwsContext>);

// SAFETY: a conversion belongs to no thread, and has no threads of its own.
unsafe impl Send for Context {}

impl Context {
    fn new(like: Likeness) -> Result<Self, FfmpegError> {
        // SAFETY: plain numbers, checked by swscale; null is an error.
        let raw = unsafe {
            ffi::sws_getContext(
                like.width,
                like.height,
                like.format.raw(),
                like.width,
                like.height,
                like.packing.raw(),
                ffi::SWS_BILINEAR as c_int,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null(),
            )
        };
        let context = NonNull::new(raw).map(Self).ok_or_else(out_of_memory)?;
        // An RGB stream has neither matrix nor range to convert.
        if !like.format.is_rgb() {
            context.set_color(like)?;
        }
        Ok(context)
    }

    /// Sets matrix and range by the stream's tags, and leaves the rest as swscale has it.
    fn set_color(&self, like: Likeness) -> Result<(), FfmpegError> {
        let (mut matrix, mut rgb_matrix): (*mut c_int, *mut c_int) =
            (ptr::null_mut(), ptr::null_mut());
        let (mut range, mut rgb_range, mut brightness, mut contrast, mut saturation) =
            (0, 0, 0, 0, 0);
        // SAFETY: an initialised context, and places for each answer.
        check(unsafe {
            ffi::sws_getColorspaceDetails(
                self.0.as_ptr(),
                &raw mut matrix,
                &raw mut range,
                &raw mut rgb_matrix,
                &raw mut rgb_range,
                &raw mut brightness,
                &raw mut contrast,
                &raw mut saturation,
            )
        })?;
        let range = match like.range {
            ffi::AVCOL_RANGE_JPEG => 1,
            ffi::AVCOL_RANGE_MPEG => 0,
            _ => range,
        };
        // SAFETY: swscale gives its default, BT.601, for numbers that it does not know. The tables are its constants, and it copies
        // what it needs of them.
        check(unsafe {
            let matrix = ffi::sws_getCoefficients(c_int::try_from(like.matrix).unwrap_or(-1));
            ffi::sws_setColorspaceDetails(
                self.0.as_ptr(),
                matrix,
                range,
                rgb_matrix,
                rgb_range,
                brightness,
                contrast,
                saturation,
            )
        })?;
        Ok(())
    }

    /// # Panics
    ///
    /// When `out` has no room for all rows, or a row no room for whole blocks.
    fn convert(
        &self,
        frame: &Frame,
        packing: Packing,
        out: &mut [u8],
        stride: usize,
    ) -> Result<(), FfmpegError> {
        let (width, height) = (frame.width(), frame.height());
        let block_bytes = width.next_multiple_of(BLOCK_PIXELS) * packing.bytes();
        assert!(stride >= block_bytes && out.len() >= stride * height);
        let raw = frame.get();
        let stride = c_int::try_from(stride).map_err(|_too_wide| out_of_memory())?;
        let (planes, strides) = (
            [
                out.as_mut_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
            ],
            [stride, 0, 0, 0],
        );
        // SAFETY: the context was made for frames like this one. Its planes have the rows that its format says, by the invariant of
        // `Frame`; the output has room for all rows in whole blocks, by the assertion.
        let rows = check(unsafe {
            ffi::sws_scale(
                self.0.as_ptr(),
                raw.data.as_ptr().cast(),
                raw.linesize.as_ptr(),
                0,
                raw.height,
                planes.as_ptr(),
                strides.as_ptr(),
            )
        })?;
        if rows == raw.height {
            Ok(())
        } else {
            Err(FfmpegError::new(ffi::AVERROR_BUG))
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: ours, and not used again.
        unsafe { ffi::sws_freeContext(self.0.as_ptr()) };
    }
}
