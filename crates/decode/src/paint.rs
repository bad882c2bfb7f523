//! From decoded frames to the caller's pixels.

use crate::cpu::ffi::{Frame, Scaler};
use crate::error::FfmpegError;
use crate::frame::{Layout, Pixels};

/// Converts decoded frames into a layout.
#[derive(Debug)]
pub(crate) struct Painter {
    layout: Layout,
    scaler: Scaler,
    /// One frame of RGB bytes, for outputs that are not that.
    rgb: Vec<u8>,
}

impl Painter {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            layout,
            scaler: Scaler::default(),
            rgb: Vec::new(),
        }
    }

    /// Writes one frame: `out` is `H * W * C` long.
    pub(crate) fn paint(&mut self, frame: &Frame, out: Pixels<'_>) -> Result<(), FfmpegError> {
        match (out, self.layout) {
            (Pixels::U16(out), _) => {
                let width = frame.width();
                for (y, row) in out.chunks_exact_mut(width).enumerate() {
                    for (code, bytes) in row.iter_mut().zip(frame.row(y, width * 2).chunks_exact(2))
                    {
                        *code = u16::from_ne_bytes([bytes[0], bytes[1]]);
                    }
                }
                Ok(())
            }
            // The bytes as they are wanted, without a copy.
            (Pixels::U8(out), Layout::Hwc) => self.scaler.convert(frame, out),
            (mut out, layout) => {
                self.rgb.resize(out.len(), 0);
                self.scaler.convert(frame, &mut self.rgb)?;
                out.write_rgb(0, layout, &self.rgb);
                Ok(())
            }
        }
    }
}
