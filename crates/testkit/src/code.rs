//! The code burned into every picture, which tells the frame it belongs to.
//!
//! Blocks of `b = max(4, min(H, W) / 16)` pixels run along the top left in rows of `W / b` blocks. Block `i` is white where
//! bit `i` is 1 and black where it is 0: bits 0-7 are the episode, 8-17 the frame, 18-19 the camera's position in the list
//! of cameras, least significant bit first.

const EPISODE_BITS: usize = 8;
const FRAME_BITS: usize = 10;
const CAMERA_BITS: usize = 2;
const BITS: usize = EPISODE_BITS + FRAME_BITS + CAMERA_BITS;

/// What is not a block.
const BACKGROUND: u8 = 128;

/// What a picture says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code {
    /// The episode, below 256.
    pub episode: usize,
    /// The frame within the episode, below 1024.
    pub frame: usize,
    /// The position of the camera in the list of cameras, below 4.
    pub camera: usize,
}

impl Code {
    /// A code that keeps the low bits of numbers that are too large for it.
    pub fn wrapping(episode: usize, frame: usize, camera: usize) -> Self {
        Self {
            episode: episode % (1 << EPISODE_BITS),
            frame: frame % (1 << FRAME_BITS),
            camera: camera % (1 << CAMERA_BITS),
        }
    }

    fn bits(self) -> usize {
        assert!(
            self == Self::wrapping(self.episode, self.frame, self.camera),
            "{self:?} does not fit into {BITS} bits"
        );
        self.episode | self.frame << EPISODE_BITS | self.camera << (EPISODE_BITS + FRAME_BITS)
    }
}

/// Reads the code of a picture, RGB of `[height, width, 3]`: a block is 1 where its centre is over 127.
///
/// # Panics
///
/// If `pixels` does not have that many samples, or the picture is too small for a code.
pub fn read(pixels: &[u8], height: usize, width: usize) -> Code {
    assert_eq!(
        pixels.len(),
        height * width * 3,
        "an RGB picture of {width}x{height}"
    );
    let blocks = Blocks::new(height, width);
    let bit = |i| {
        let (y, x) = blocks.corner(i);
        let at = ((y + blocks.side / 2) * width + x + blocks.side / 2) * 3;
        let sum: usize = pixels[at..at + 3]
            .iter()
            .map(|&sample| usize::from(sample))
            .sum();
        usize::from(sum > 127 * 3)
    };
    let bits = (0..BITS).fold(0, |bits, i| bits | bit(i) << i);
    Code {
        episode: bits & ((1 << EPISODE_BITS) - 1),
        frame: bits >> EPISODE_BITS & ((1 << FRAME_BITS) - 1),
        camera: bits >> (EPISODE_BITS + FRAME_BITS),
    }
}

/// Paints a grey picture with `code` in it: RGB of `[height, width, 3]`.
///
/// # Panics
///
/// If a number does not fit into its bits (see [`Code::wrapping`]), or the picture is too small for a code.
pub fn paint(code: Code, height: usize, width: usize) -> Vec<u8> {
    let blocks = Blocks::new(height, width);
    let bits = code.bits();
    let mut pixels = vec![BACKGROUND; height * width * 3];
    for i in 0..BITS {
        let sample = if bits >> i & 1 == 1 { 255 } else { 0 };
        let (y, x) = blocks.corner(i);
        for row in y..y + blocks.side {
            pixels[(row * width + x) * 3..][..blocks.side * 3].fill(sample);
        }
    }
    pixels
}

/// Where the blocks of a picture lie.
struct Blocks {
    side: usize,
    per_row: usize,
}

impl Blocks {
    fn new(height: usize, width: usize) -> Self {
        let side = (height.min(width) / 16).max(4);
        let per_row = width / side;
        assert!(
            per_row > 0 && BITS.div_ceil(per_row) * side <= height,
            "a picture of {width}x{height} has no room for {BITS} blocks of {side}x{side}"
        );
        Self { side, per_row }
    }

    /// The (y, x) of a block's top left pixel.
    fn corner(&self, i: usize) -> (usize, usize) {
        (i / self.per_row * self.side, i % self.per_row * self.side)
    }
}
