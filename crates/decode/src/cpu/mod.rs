//! Decoding on the CPU, with FFmpeg.

/// FFmpeg's text for an error number.
pub(crate) fn error_text(code: i32) -> String {
    code.to_string()
}
