//! The `episode-pool` program: looks into, streams and checks LeRobotDataset v3.

#![forbid(unsafe_code)]

mod args;
mod cmd;
mod distributed;
mod error;
mod files;
mod frames;
mod host;
mod json;
mod measure;
mod memory;
mod mixing;
mod percentiles;
mod pictures;
mod remote;
mod sheet;
mod table;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::args::Cli;
use crate::error::Error;

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_warnings_to_stderr();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough, as with `| head`.
        Err(error) if error.is_closed_output() => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, nobody is left to tell.
            let _ = writeln!(io::stderr(), "{}", error::chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), Error> {
    let mut out = BufWriter::new(io::stdout().lock());
    let result = cmd::run(&cli.command, &mut out);
    // What was written before a failure is shown too.
    out.flush().map_err(Error::Output)?;
    result
}

/// Shows warnings, or what `RUST_LOG` asks for.
fn log_warnings_to_stderr() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
}
