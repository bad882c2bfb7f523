//! Hostile videos for `decode`.
pub fn packets(_bytes: &[u8]) {}
