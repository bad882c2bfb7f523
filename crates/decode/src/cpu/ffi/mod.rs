//! Everything that calls FFmpeg, and the only unsafe code of the crate.
//!
//! Each C object has an owner here: a type whose constructor makes it, whose methods keep its rules, and whose `Drop` frees it. Only
//! names that exist in every FFmpeg from 5.1 to 8 are used, so that nothing is compiled conditionally.

mod decoder;
mod demux;
mod frame;
mod packet;
mod scale;

use std::ffi::{CStr, c_char, c_int};
use std::sync::Once;

use rusty_ffmpeg::ffi;

use crate::error::FfmpegError;

pub(crate) use decoder::{
    Codec, Color, Decoder, Header, Likeness, Parameters, Received, decoder_name,
};
pub(crate) use demux::{Scan, scan};
pub(crate) use frame::{Frame, PixelFormat};
pub(crate) use scale::{Packing, Scaler};

// Bound at build time, so checked then: a binding made from other headers must not get as far as the linker.
const _: () = assert!(
    ffi::LIBAVCODEC_VERSION_MAJOR >= 59 && ffi::LIBAVCODEC_VERSION_MAJOR <= 62,
    "decode needs the headers of FFmpeg 5.1 to 8 (libavcodec 59.37 to 62)"
);

/// FFmpeg's text for an error number.
pub(crate) fn error_text(code: i32) -> String {
    let mut text = [0 as c_char; 128];
    // SAFETY: the buffer is as long as we say. FFmpeg writes a NUL-terminated text, a generic one for a number it does not know.
    unsafe { ffi::av_strerror(code, text.as_mut_ptr(), text.len()) };
    // SAFETY: NUL-terminated, by the line above, and alive until the copy is made.
    unsafe { CStr::from_ptr(text.as_ptr()) }
        .to_string_lossy()
        .into_owned()
}

/// The release of the linked FFmpeg, as it spells it.
pub(crate) fn version() -> &'static str {
    // SAFETY: a text that is compiled into the library.
    unsafe { static_text(ffi::av_version_info()) }
}

/// Silences FFmpeg's log, which is global to the process and goes to stderr: what it would say comes back as errors that name the
/// file and the frame.
fn silence_log() {
    static ONCE: Once = Once::new();
    // SAFETY: sets one integer; FFmpeg allows it at any time.
    ONCE.call_once(|| unsafe { ffi::av_log_set_level(ffi::AV_LOG_QUIET) });
}

/// A negative return value as an error.
fn check(code: c_int) -> Result<c_int, FfmpegError> {
    if code < 0 {
        Err(FfmpegError::new(code))
    } else {
        Ok(code)
    }
}

/// The error of an allocation that came back empty.
fn out_of_memory() -> FfmpegError {
    FfmpegError::new(ffi::AVERROR(ffi::ENOMEM))
}

/// A string that FFmpeg owns for ever, or `unknown`.
///
/// # Safety
///
/// `text` is null, or NUL-terminated and never freed.
unsafe fn static_text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "unknown";
    }
    // SAFETY: not null, and the rest is the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .unwrap_or("unknown")
}
