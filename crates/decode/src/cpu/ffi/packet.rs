//! Encoded packets.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use rusty_ffmpeg::ffi;

use super::{check, out_of_memory};
use crate::error::FfmpegError;

/// Owner of one packet, empty or full.
#[derive(Debug)]
pub(super) struct PacketBuffer(NonNull<ffi::AVPacket>);

// SAFETY: a packet's buffer is reference counted with atomics, and no part of it belongs to a thread.
unsafe impl Send for PacketBuffer {}

impl PacketBuffer {
    pub(super) fn new() -> Result<Self, FfmpegError> {
        // SAFETY: no arguments; null is an error.
        NonNull::new(unsafe { ffi::av_packet_alloc() })
            .map(Self)
            .ok_or_else(out_of_memory)
    }

    pub(super) fn as_ptr(&mut self) -> *mut ffi::AVPacket {
        self.0.as_ptr()
    }

    pub(super) fn get(&self) -> ffi::AVPacket {
        // SAFETY: allocated, and initialised by `av_packet_alloc`. The copy's pointers are not followed.
        unsafe { *self.0.as_ptr() }
    }

    pub(super) fn has_new_extradata(&self) -> bool {
        // SAFETY: an allocated packet; a null size is allowed, and the result is only compared with null.
        unsafe {
            !ffi::av_packet_get_side_data(
                self.0.as_ptr(),
                ffi::AV_PKT_DATA_NEW_EXTRADATA,
                ptr::null_mut(),
            )
            .is_null()
        }
    }

    /// Fills the packet with a copy of `bytes`, and with a time.
    pub(super) fn fill(&mut self, bytes: &[u8], pts: i64) -> Result<(), FfmpegError> {
        self.clear();
        let len = c_int::try_from(bytes.len()).map_err(|_too_long| out_of_memory())?;
        let raw = self.as_ptr();
        // SAFETY: an allocated, empty packet. FFmpeg reserves `len` bytes, and after them the zeros that decoders may read into.
        check(unsafe { ffi::av_new_packet(raw, len) })?;
        // SAFETY: the packet has `len` bytes of its own since the line above.
        unsafe {
            (*raw)
                .data
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            (*raw).pts = pts;
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        // SAFETY: an allocated packet.
        unsafe { ffi::av_packet_unref(self.0.as_ptr()) };
    }
}

impl Drop for PacketBuffer {
    fn drop(&mut self) {
        let mut packet = self.0.as_ptr();
        // SAFETY: ours, and not used again.
        unsafe { ffi::av_packet_free(&raw mut packet) };
    }
}
