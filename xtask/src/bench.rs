//! `cargo xtask bench`: the criterion benches.

use crate::flags::Bench;
use crate::setup::Purpose;
use crate::{Result, setup, sh};

pub(crate) fn run(flags: &Bench) -> Result {
    setup::ensure(Purpose::Build)?;
    let mut command = sh::cargo("bench -p benches");
    if !flags.filter.is_empty() {
        command.arg("--").args(&flags.filter);
    }
    sh::run(&mut command)
}
