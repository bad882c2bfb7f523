//! `cargo xtask fuzz`: hostile input for every reader.
use crate::{Result, flags::Fuzz};
pub(crate) fn run(flags: &Fuzz) -> Result {
    fuzz(&flags.target, flags.seconds.unwrap_or(10))
}
pub(crate) fn fuzz(_t: &[String], _s: u32) -> Result {
    Err("todo".to_owned())
}
