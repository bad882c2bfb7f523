//! The project's own commands: `cargo xtask --help` lists them.

#![forbid(unsafe_code)]

mod flags;
mod sh;

mod bench;
mod bench_matrix;
mod contracts;
mod demo;
mod fuzz;
mod python;
mod setup;
mod summarize;
mod test;
mod tidy;

use std::env;
use std::process::ExitCode;

use flags::XtaskCmd;

/// What went wrong, as a sentence that says what to do next.
type Result<T = ()> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let command = flags::Xtask::from_env_or_exit().subcommand;
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &XtaskCmd) -> Result {
    let invoked_in = env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
    let root = sh::project_root();
    env::set_current_dir(&root).map_err(|error| format!("{}: {error}", root.display()))?;

    match command {
        XtaskCmd::Setup(_) => setup::run(),
        XtaskCmd::Demo(_) => demo::run(),
        XtaskCmd::Test(flags) => test::run(flags),
        XtaskCmd::Python(_) => python::run(),
        XtaskCmd::Contracts(flags) => contracts::run(flags, &invoked_in),
        XtaskCmd::Tidy(_) => tidy::run(),
        XtaskCmd::Fuzz(flags) => fuzz::run(flags),
        XtaskCmd::Bench(flags) => bench::run(flags),
        XtaskCmd::BenchMatrix(flags) => bench_matrix::run(flags, &invoked_in),
        XtaskCmd::Summarize(flags) => summarize::run(flags, &invoked_in),
    }
}
