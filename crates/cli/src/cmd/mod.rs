//! The commands.

mod info;
mod look;
mod plan;
mod sample;
mod stream;

use std::io::Write;

use clap::Subcommand;

use crate::error::Error;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what is in a dataset.
    Info(info::InfoArgs),
    /// Run an epoch, or some batches of it, and say how fast that was and what came.
    Stream(stream::StreamArgs),
    /// Draw the first frames of an epoch, with their windows, as one picture.
    Look(look::LookArgs),
    /// Print chosen frames as JSON, and write their pictures.
    Sample(sample::SampleArgs),
    /// Print the order of an epoch, or how well it mixes, without reading rows or video.
    Plan(plan::PlanArgs),
}

/// Runs a command; its results go to `out`.
pub(crate) fn run(command: &Command, out: &mut impl Write) -> Result<(), Error> {
    match command {
        Command::Info(args) => info::run(args, out),
        Command::Stream(args) => stream::run(args, out),
        Command::Look(args) => look::run(args, out),
        Command::Sample(args) => sample::run(args, out),
        Command::Plan(args) => plan::run(args, out),
    }
}
