//! Bounds on what a file may ask of us, each with its reason. A file that asks for more is refused before anything is reserved.

/// The largest width or height of a picture, in pixels. Beyond what any camera of a robot delivers, and the
/// limit of H.264 and of JPEG encoders in practice; a product of two such sides still fits an `i32` row stride.
pub(crate) const MAX_SIDE_PX: u32 = 16_384;

/// The default largest number of pixels of a picture: 8192 x 8192, 192 MiB as RGB bytes.
pub(crate) const DEFAULT_MAX_PIXELS: u64 = 1 << 26;

/// The largest number of packets in a file. A day of video at 60 frames a second has 5.2 million; the index of
/// this many takes 448 MiB.
pub(crate) const MAX_PACKETS: usize = 1 << 24;

/// The largest packet, in bytes. A raw 4K frame of 16-bit RGB is 50 MB; FFmpeg's own sizes are `i32`.
pub(crate) const MAX_PACKET_BYTES: u32 = 1 << 28;

/// What the decoder of a PNG or JPEG may allocate, in bytes, beside the picture's own sides.
pub(crate) const MAX_IMAGE_BYTES: u64 = 1 << 29;

/// The most bytes that are read at once, unless a single packet has more. A GOP of a robot's camera is far smaller.
pub(crate) const READ_AHEAD_BYTES: u64 = 1 << 20;

/// The largest MP4 header that is read as a whole. That of a day of video has some 100 MB.
pub(crate) const MAX_HEADER_BYTES: u64 = 1 << 28;
