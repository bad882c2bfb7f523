//! The bounds that keep arithmetic exact and memory sane, each with its reason.

/// The most frames that one episode may have: frame indices are kept as 32-bit numbers.
///
/// At 30 frames per second this is more than four years of recording.
pub const MAX_EPISODE_FRAMES: usize = u32::MAX as usize;

/// The most frames that may be resident in one consumer's pool.
///
/// A resident frame costs the plan 8 bytes, so this bound is 2 GiB. It is counted for the longest episodes that could
/// meet in the pool, so that an epoch is refused at its start and never fails in its middle.
pub const MAX_POOL_FRAMES: u64 = 1 << 28;

/// The most episodes that a dataset may have: positions are kept as 32-bit numbers, and so are the draws among them.
pub(crate) const MAX_EPISODES: usize = u32::MAX as usize;

/// The most consumers whose shares are worked out at once, each with some hundred bytes of its own.
pub(crate) const MAX_FLEET: usize = 1 << 20;
