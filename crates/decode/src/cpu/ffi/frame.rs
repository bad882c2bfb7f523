//! Decoded frames and their pixel formats.

use std::ffi::c_int;
use std::ptr::NonNull;

use rusty_ffmpeg::ffi;

use super::{out_of_memory, static_text};
use crate::error::FfmpegError;

/// Owner of a frame, empty or full.
///
/// Invariant: the frame is allocated, and full only with what a decoder of system memory has put there.
#[derive(Debug)]
pub(crate) struct Frame(NonNull<ffi::AVFrame>);

// SAFETY: a frame's buffers are reference counted with atomics, and no part of it belongs to a thread.
unsafe impl Send for Frame {}
// SAFETY: as above, and a shared frame is only read.
unsafe impl Sync for Frame {}

impl Frame {
    pub(super) fn new() -> Result<Self, FfmpegError> {
        // SAFETY: no arguments; null is an error.
        NonNull::new(unsafe { ffi::av_frame_alloc() })
            .map(Self)
            .ok_or_else(out_of_memory)
    }

    /// Moves what the frame holds into one of its own, without a copy of the pixels.
    pub(crate) fn take(&mut self) -> Result<Self, FfmpegError> {
        let mut taken = Self::new()?;
        // SAFETY: two allocated frames, of which the first is empty.
        unsafe { ffi::av_frame_move_ref(taken.as_ptr(), self.as_ptr()) };
        Ok(taken)
    }

    /// The memory that the pixels take, padding included, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let buffers = self.get().buf.iter();
        buffers
            // SAFETY: each is null, or a buffer that the frame holds a reference to.
            .filter_map(|&buffer| unsafe { buffer.as_ref() })
            .map(|buffer| buffer.size)
            .sum()
    }

    pub(super) fn as_ptr(&mut self) -> *mut ffi::AVFrame {
        self.0.as_ptr()
    }

    pub(super) fn get(&self) -> &ffi::AVFrame {
        // SAFETY: allocated and initialised, by the type's invariant; written only through `as_ptr`, which borrows mutably.
        unsafe { self.0.as_ref() }
    }

    /// The number under which the packet of this frame was sent.
    pub(crate) fn id(&self) -> i64 {
        self.get().pts
    }

    /// W, in pixels.
    pub(crate) fn width(&self) -> usize {
        usize::try_from(self.get().width).unwrap_or(0)
    }

    /// H, in pixels.
    pub(crate) fn height(&self) -> usize {
        usize::try_from(self.get().height).unwrap_or(0)
    }

    pub(crate) fn pixel_format(&self) -> PixelFormat {
        PixelFormat(self.get().format)
    }

    /// Whether the decoder has marked the frame as one that it could not decode in full.
    pub(crate) fn is_damaged(&self) -> bool {
        let frame = self.get();
        frame.flags & ffi::AV_FRAME_FLAG_CORRUPT as c_int != 0 || frame.decode_error_flags != 0
    }

    /// The first `num_bytes` bytes of row `y` of the first plane.
    ///
    /// # Panics
    ///
    /// When the frame has no such row, or its rows are shorter.
    pub(crate) fn row(&self, y: usize, num_bytes: usize) -> &[u8] {
        let frame = self.get();
        let stride = frame.linesize[0] as isize;
        assert!(
            y < self.height() && num_bytes <= stride.unsigned_abs() && !frame.data[0].is_null()
        );
        let y = isize::try_from(y).expect("a height is a c_int");
        // SAFETY: a full frame's first plane has `height` rows, `linesize` bytes apart, each at least that long, and lives as long as
        // the frame is not written, which the borrow prevents.
        unsafe { std::slice::from_raw_parts(frame.data[0].offset(y * stride), num_bytes) }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let mut frame = self.0.as_ptr();
        // SAFETY: ours, and not used again.
        unsafe { ffi::av_frame_free(&raw mut frame) };
    }
}

#[cfg(test)]
impl Frame {
    /// A frame whose bytes `fill` writes, plane by plane and row by row.
    pub(crate) fn filled(
        (width, height): (usize, usize),
        format: PixelFormat,
        mut fill: impl FnMut(&mut [u8]),
    ) -> Self {
        super::silence_log();
        let mut frame = Self::new().unwrap();
        let raw = frame.as_ptr();
        // SAFETY: an allocated, empty frame, of which these are the fields to set before its buffers are made.
        unsafe {
            (*raw).width = c_int::try_from(width).unwrap();
            (*raw).height = c_int::try_from(height).unwrap();
            (*raw).format = format.0;
            assert_eq!(ffi::av_frame_get_buffer(raw, 0), 0);
        }
        for plane in 0.. {
            // SAFETY: plain numbers; not positive for a plane that does not exist.
            let row_bytes = unsafe { ffi::av_image_get_linesize(format.0, (*raw).width, plane) };
            let Some(row_bytes) = usize::try_from(row_bytes).ok().filter(|&bytes| bytes > 0) else {
                break;
            };
            let plane = usize::try_from(plane).unwrap();
            let shift = match plane {
                0 => 0,
                _ => format.descriptor().unwrap().log2_chroma_h,
            };
            for y in 0..height.div_ceil(1 << shift) {
                // SAFETY: `av_frame_get_buffer` has made these rows, `linesize` apart, of initialised bytes as soon as they are zeroed here.
                fill(unsafe {
                    let row = (*raw).data[plane].add(y * (*raw).linesize[plane] as usize);
                    row.write_bytes(0, row_bytes);
                    std::slice::from_raw_parts_mut(row, row_bytes)
                });
            }
        }
        frame
    }
}

/// How pixels are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PixelFormat(ffi::AVPixelFormat);

#[cfg(test)]
impl PixelFormat {
    /// By FFmpeg's name.
    pub(crate) fn named(name: &str) -> Self {
        let name = std::ffi::CString::new(name).unwrap();
        // SAFETY: a NUL-terminated string.
        Self(unsafe { ffi::av_get_pix_fmt(name.as_ptr()) })
    }
}

impl PixelFormat {
    pub(super) fn raw(self) -> ffi::AVPixelFormat {
        self.0
    }

    fn descriptor(self) -> Option<&'static ffi::AVPixFmtDescriptor> {
        // SAFETY: null for an unknown format, else an entry of FFmpeg's constant table.
        unsafe { ffi::av_pix_fmt_desc_get(self.0).as_ref() }
    }

    /// FFmpeg's name for it.
    pub(crate) fn name(self) -> &'static str {
        // SAFETY: the names are string constants.
        self.descriptor()
            .map_or("unknown", |format| unsafe { static_text(format.name) })
    }

    pub(super) fn is_rgb(self) -> bool {
        self.descriptor()
            .is_some_and(|format| format.flags & u64::from(ffi::AV_PIX_FMT_FLAG_RGB) != 0)
    }

    /// Whether a pixel is one native-endian `u16` code of more than 8 bits, and nothing else.
    pub(crate) fn is_deep_gray(self) -> bool {
        let unlike = ffi::AV_PIX_FMT_FLAG_PAL
            | ffi::AV_PIX_FMT_FLAG_BITSTREAM
            | ffi::AV_PIX_FMT_FLAG_HWACCEL
            | ffi::AV_PIX_FMT_FLAG_RGB
            | ffi::AV_PIX_FMT_FLAG_BAYER
            | ffi::AV_PIX_FMT_FLAG_FLOAT
            | if cfg!(target_endian = "little") {
                ffi::AV_PIX_FMT_FLAG_BE
            } else {
                0
            };
        self.descriptor().is_some_and(|format| {
            let gray = format.comp[0];
            format.nb_components == 1
                && format.flags & u64::from(unlike) == 0
                && (9..=16).contains(&gray.depth)
                && (gray.step, gray.offset, gray.shift) == (2, 0, 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_gray_is_what_holds_depth_codes() {
        for format in [
            ffi::AV_PIX_FMT_GRAY10,
            ffi::AV_PIX_FMT_GRAY12,
            ffi::AV_PIX_FMT_GRAY16,
        ] {
            assert!(
                PixelFormat(format).is_deep_gray(),
                "{}",
                PixelFormat(format).name()
            );
        }
        let others = [
            ffi::AV_PIX_FMT_GRAY8,
            ffi::AV_PIX_FMT_YUV420P,
            ffi::AV_PIX_FMT_YUV420P10LE,
            ffi::AV_PIX_FMT_RGB24,
            ffi::AV_PIX_FMT_PAL8,
            -1,
        ];
        for format in others {
            assert!(
                !PixelFormat(format).is_deep_gray(),
                "{}",
                PixelFormat(format).name()
            );
        }
    }

    #[test]
    #[should_panic(expected = "y < self.height()")]
    fn an_empty_frame_has_no_rows() {
        let _ = Frame::new().unwrap().row(0, 1);
    }
}
