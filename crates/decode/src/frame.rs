//! What a frame is made of, and how the caller wants it laid out.

/// The order of a frame's axes in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// `[T, H, W, C]`: the channels of a pixel lie together.
    #[default]
    Hwc,
    /// `[T, C, H, W]`: one plane per channel, as PyTorch's convolutions take them.
    Chw,
}

/// What the codes of a stream mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A picture: three channels, red, green and blue, of 8 bits.
    Color,
    /// A depth map, or any gray stream of more than 8 bits: one channel of exact `u16` codes.
    ///
    /// The unit of a code is not in the stream; a LeRobot dataset has it in `info.json`.
    Depth,
}

impl Kind {
    /// The number of channels, C: 3 for colour, 1 for depth.
    #[must_use]
    pub fn channels(self) -> usize {
        match self {
            Self::Color => 3,
            Self::Depth => 1,
        }
    }
}

/// Where frames are written, and as what: a caller's buffer of exactly `T * H * W * C` elements.
#[derive(Debug)]
pub enum Pixels<'a> {
    /// Colour, 0 to 255.
    U8(&'a mut [u8]),
    /// Colour, in `[0, 1]`: the 8-bit value divided by 255.
    F32(&'a mut [f32]),
    /// Depth codes, as coded.
    U16(&'a mut [u16]),
}

impl Pixels<'_> {
    /// The number of elements, not bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(out) => out.len(),
            Self::F32(out) => out.len(),
            Self::U16(out) => out.len(),
        }
    }

    /// Whether there is no room for any element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type's name, as Rust and NumPy-minded readers know it.
    #[must_use]
    pub fn dtype(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::F32(_) => "f32",
            Self::U16(_) => "u16",
        }
    }

    /// What kind of stream can be written here.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::U8(_) | Self::F32(_) => Kind::Color,
            Self::U16(_) => Kind::Depth,
        }
    }

    /// Writes one frame of RGB bytes, `[H, W, 3]`, at `frame_index`, in the layout asked for.
    ///
    /// # Panics
    ///
    /// When these are U16 pixels: callers check `kind` first.
    pub(crate) fn write_rgb(&mut self, frame_index: usize, layout: Layout, rgb: &[u8]) {
        let start = frame_index * rgb.len();
        match self {
            Self::U8(out) => arrange(rgb, &mut out[start..start + rgb.len()], layout, |v| v),
            Self::F32(out) => {
                arrange(rgb, &mut out[start..start + rgb.len()], layout, |v| {
                    f32::from(v) / 255.0
                });
            }
            Self::U16(_) => unreachable!("the kind of the output is checked before decoding"),
        }
    }

    /// The part of the frame at `position`, each being of `frame_len` elements.
    ///
    /// # Panics
    ///
    /// When there is no such frame.
    pub fn frame(&mut self, frame_len: usize, position: usize) -> Pixels<'_> {
        let range = position * frame_len..(position + 1) * frame_len;
        match self {
            Self::U8(out) => Pixels::U8(&mut out[range]),
            Self::F32(out) => Pixels::F32(&mut out[range]),
            Self::U16(out) => Pixels::U16(&mut out[range]),
        }
    }

    /// Copies frame `from` to frame `to`, both of `frame_len` elements.
    ///
    /// # Panics
    ///
    /// When there is no such frame.
    pub fn copy_frame(&mut self, frame_len: usize, from: usize, to: usize) {
        let source = from * frame_len..(from + 1) * frame_len;
        match self {
            Self::U8(out) => out.copy_within(source, to * frame_len),
            Self::F32(out) => out.copy_within(source, to * frame_len),
            Self::U16(out) => out.copy_within(source, to * frame_len),
        }
    }
}

/// Converts interleaved RGB, `[H, W, 3]`, element by element, into either layout.
fn arrange<T: Copy>(rgb: &[u8], out: &mut [T], layout: Layout, convert: impl Fn(u8) -> T) {
    match layout {
        Layout::Hwc => {
            for (target, &value) in out.iter_mut().zip(rgb) {
                *target = convert(value);
            }
        }
        Layout::Chw => {
            let (red, rest) = out.split_at_mut(rgb.len() / 3);
            let (green, blue) = rest.split_at_mut(rgb.len() / 3);
            for (((pixel, r), g), b) in rgb.chunks_exact(3).zip(red).zip(green).zip(blue) {
                *r = convert(pixel[0]);
                *g = convert(pixel[1]);
                *b = convert(pixel[2]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RGB: [u8; 12] = [0, 1, 2, 10, 11, 12, 20, 21, 22, 255, 254, 253];

    #[test]
    fn chw_puts_each_channel_into_its_plane() {
        let mut out = [9; 24];
        Pixels::U8(&mut out).write_rgb(1, Layout::Chw, &RGB);
        assert_eq!(out[..12], [9; 12]);
        assert_eq!(out[12..], [0, 10, 20, 255, 1, 11, 21, 254, 2, 12, 22, 253]);
    }

    #[test]
    fn floats_are_the_byte_over_255() {
        let mut out = [9.0; 12];
        Pixels::F32(&mut out).write_rgb(0, Layout::Hwc, &RGB);
        for (value, byte) in out.iter().zip(RGB) {
            assert_eq!(*value, f32::from(byte) / 255.0);
        }
        assert_eq!(out[9], 1.0);
    }

    #[test]
    fn copy_frame_moves_whole_frames() {
        let mut out = [1, 2, 3, 4, 5, 6];
        Pixels::U16(&mut out).copy_frame(2, 0, 2);
        assert_eq!(out, [1, 2, 3, 4, 1, 2]);
    }
}
