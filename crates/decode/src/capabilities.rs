//! What the linked FFmpeg is, and what it can decode.

use std::ffi::CString;

use crate::cpu::ffi;

/// The release of the FFmpeg that is linked, as it spells it: `5.1.6-0+deb12u1`, `8.0`.
#[must_use]
pub fn ffmpeg_version() -> &'static str {
    ffi::version()
}

/// The decoder that the CPU path would use for a codec, both as FFmpeg spells them; `None` if this FFmpeg has none, or does not know the
/// codec.
///
/// # Examples
///
/// ```
/// assert_eq!(decode::decoder_for("h264"), Some("h264"));
/// assert_eq!(decode::decoder_for("no such codec"), None);
/// ```
#[must_use]
pub fn decoder_for(codec: &str) -> Option<&'static str> {
    ffi::decoder_name(&CString::new(codec).ok()?)
}
