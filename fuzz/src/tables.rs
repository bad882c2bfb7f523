//! Hostile files for `dataset`.
pub fn info(_bytes: &[u8]) {}
pub fn tables(_bytes: &[u8]) {}
pub fn rows(_bytes: &[u8]) {}
