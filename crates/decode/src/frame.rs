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

    /// Writes one frame of pixels, `[H, W]`, each of red, green, blue and bytes that are not read, in the layout asked for.
    ///
    /// # Panics
    ///
    /// When the output is not `H * W * 3` long, or these are U16 pixels: callers check both first.
    pub(crate) fn write_rgb<const N: usize>(self, layout: Layout, rgb: &[[u8; N]]) {
        match self {
            Self::U8(out) => arrange(rgb, out, layout, |v| v),
            Self::F32(out) => arrange(rgb, out, layout, unit),
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

/// `value / 255`, to the last bit, without a division, the slowest of operations.
///
/// `1 / 255` is `257 / 65536` and a rest of `1 / (255 * 65536)`: the first product is exact, and the second too small for its rounding to show
/// in the sum.
fn unit(value: u8) -> f32 {
    let value = f32::from(value);
    value * (257.0 / 65_536.0) + value * (1.0 / (255.0 * 65_536.0))
}

/// Converts pixels, element by element, into either layout. The loops are plain enough to become vector code.
fn arrange<T: Copy, const N: usize>(
    rgb: &[[u8; N]],
    out: &mut [T],
    layout: Layout,
    convert: impl Fn(u8) -> T,
) {
    assert_eq!(out.len(), rgb.len() * 3, "one frame");
    match layout {
        Layout::Hwc if N == 3 => {
            for (target, &value) in out.iter_mut().zip(rgb.as_flattened()) {
                *target = convert(value);
            }
        }
        Layout::Hwc => {
            for (target, pixel) in out.as_chunks_mut::<3>().0.iter_mut().zip(rgb) {
                *target = [convert(pixel[0]), convert(pixel[1]), convert(pixel[2])];
            }
        }
        Layout::Chw => {
            let (red, rest) = out.split_at_mut(rgb.len());
            let (green, blue) = rest.split_at_mut(rgb.len());
            // Few enough that they are still in the nearest cache for the second and third plane.
            let blocks = rgb
                .chunks(CACHED_PIXELS)
                .zip(red.chunks_mut(CACHED_PIXELS))
                .zip(green.chunks_mut(CACHED_PIXELS))
                .zip(blue.chunks_mut(CACHED_PIXELS));
            for (((pixels, red), green), blue) in blocks {
                write_channel::<0, N, T>(pixels, red, &convert);
                write_channel::<1, N, T>(pixels, green, &convert);
                write_channel::<2, N, T>(pixels, blue, &convert);
            }
        }
    }
}

/// As many pixels as take a few KiB.
const CACHED_PIXELS: usize = 1024;

fn write_channel<const C: usize, const N: usize, T>(
    pixels: &[[u8; N]],
    plane: &mut [T],
    convert: impl Fn(u8) -> T,
) {
    if N == 4 {
        // A shifted word becomes vector code, where a byte that is picked out does not.
        let words = pixels.as_flattened().as_chunks().0;
        for (target, &word) in plane.iter_mut().zip(words) {
            *target = convert((u32::from_le_bytes(word) >> (8 * C)) as u8);
        }
    } else {
        for (target, pixel) in plane.iter_mut().zip(pixels) {
            *target = convert(pixel[C]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chw_puts_each_channel_into_its_plane() {
        // More than one block of the loop, and no multiple of it.
        let rgb: Vec<[u8; 3]> = (0..2500_u16)
            .map(|i| [i as u8, (i >> 4) as u8, (i * 7) as u8])
            .collect();
        let rgbx: Vec<[u8; 4]> = rgb.iter().map(|&[r, g, b]| [r, g, b, 9]).collect();
        let planes: Vec<u8> = (0..3).flat_map(|c| rgb.iter().map(move |p| p[c])).collect();
        for layout in [Layout::Hwc, Layout::Chw] {
            let expected = match layout {
                Layout::Hwc => rgb.as_flattened(),
                Layout::Chw => &planes,
            };
            let (mut three, mut four) = (vec![0; 7500], vec![0; 7500]);
            Pixels::U8(&mut three).write_rgb(layout, &rgb);
            Pixels::U8(&mut four).write_rgb(layout, &rgbx);
            assert_eq!((&*three, &*four), (expected, expected), "{layout:?}");
        }
    }

    #[test]
    fn floats_are_the_byte_over_255() {
        for value in 0..=255 {
            assert_eq!(unit(value), f32::from(value) / 255.0);
        }
        let mut out = [9.0; 6];
        Pixels::F32(&mut out).write_rgb(Layout::Chw, &[[0, 51, 255], [255, 1, 0]]);
        assert_eq!(out, [0.0, 1.0, 0.2, 1.0 / 255.0, 1.0, 0.0]);
    }

    #[test]
    fn copy_frame_moves_whole_frames() {
        let mut out = [1, 2, 3, 4, 5, 6];
        Pixels::U16(&mut out).copy_frame(2, 0, 2);
        assert_eq!(out, [1, 2, 3, 4, 1, 2]);
    }
}
