//! The commands.

mod bench;
mod diagnose;
mod index;
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
    Stream(Box<stream::StreamArgs>),
    /// Measure data loading alone: one mode, one JSON and one CSV file.
    Bench(bench::BenchArgs),
    /// Note down what opening a remote dataset's files takes, so that epochs begin at once.
    Index(index::IndexArgs),
    /// Look into one video step by step, and say what is wrong with it and what to do.
    Diagnose(diagnose::DiagnoseArgs),
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
        Command::Bench(args) => bench::run(args, out),
        Command::Diagnose(args) => diagnose::run(args, out),
        Command::Index(args) => index::run(args, out),
        Command::Look(args) => look::run(args, out),
        Command::Sample(args) => sample::run(args, out),
        Command::Plan(args) => plan::run(args, out),
    }
}
