//! `cargo xtask test`: everything a change has to pass, cheapest first.

use std::env;
use std::process::Command;
use std::time::Instant;

use crate::flags::Test;
use crate::setup::Purpose;
use crate::{Result, fuzz, python, setup, sh, tidy};

/// The workspace with everything on. This and the two lists below are the one place that spells feature sets.
const WORKSPACE: &str = "--workspace --features dataset/arrow2";

/// Crates as their users build them by default, without what the workspace turns on.
const LINTED_ALONE: &[&str] = &[
    "-p dataset --all-targets",
    "-p episode-pool --all-targets",
    "-p pool-core",
];

/// Of these, the ones whose tests run once more.
const TESTED_ALONE: &[&str] = &["-p dataset"];

/// How long each fuzz target runs here: enough to see that it works on its seeds. To find something, `cargo xtask fuzz`.
const FUZZ_SECONDS: u32 = 5;

/// One check, and what to call it in the table.
struct Step {
    name: String,
    check: Box<dyn FnOnce() -> Result>,
}

impl Step {
    fn new(name: impl Into<String>, check: impl FnOnce() -> Result + 'static) -> Step {
        Step {
            name: name.into(),
            check: Box::new(check),
        }
    }

    fn command(name: impl Into<String>, mut command: Command) -> Step {
        Step::new(name, move || sh::run(&mut command))
    }
}

pub(crate) fn run(flags: &Test) -> Result {
    let cargo = |args: String| Step::command(args.clone(), sh::cargo(&args));
    let mut steps = vec![
        Step::new("setup", || setup::ensure(Purpose::Test)),
        Step::new("tidy", tidy::run),
        cargo("fmt --all --check".to_owned()),
        cargo(format!("clippy {WORKSPACE} --all-targets -- -D warnings")),
    ];
    if !flags.fast {
        let alone = LINTED_ALONE.iter();
        steps.extend(alone.map(|set| cargo(format!("clippy {set} -- -D warnings"))));
        let mut doc = sh::cargo(&format!("doc {WORKSPACE} --no-deps --lib"));
        doc.env("RUSTDOCFLAGS", "-D warnings");
        steps.push(Step::command("doc", doc));
    }
    steps.push(cargo(format!("test {WORKSPACE}")));
    if !flags.fast {
        steps.extend(TESTED_ALONE.iter().map(|set| cargo(format!("test {set}"))));
        steps.push(Step::new("python", python::run));
    }
    if flags.fuzz || env::var("CI").is_ok_and(|ci| ci == "true") {
        steps.push(Step::new("fuzz", || fuzz::smoke(FUZZ_SECONDS)));
    }
    run_all(steps)
}

/// Runs the steps in order, stops at the first that fails, and ends with a table of how long each took.
fn run_all(steps: Vec<Step>) -> Result {
    let count = steps.len();
    let mut table = String::new();
    for (position, Step { name, check }) in steps.into_iter().enumerate() {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let outcome = check();
        let seconds = started.elapsed().as_secs_f64();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        table.push_str(&format!("{seconds:>8.1} s  {verdict:<6}  {name}\n"));
        if let Err(message) = outcome {
            eprint!("\n{table}");
            return Err(format!(
                "step {} of {count}, {name}: {message}",
                position + 1
            ));
        }
    }
    eprint!("\n{table}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_ends_the_run_and_is_named() {
        let steps = vec![
            Step::new("one", || Ok(())),
            Step::new("two", || Err("`cargo two` failed".to_owned())),
            Step::new("three", || unreachable!("ran past a failure")),
        ];
        let error = run_all(steps).unwrap_err();
        assert_eq!(error, "step 2 of 3, two: `cargo two` failed");
    }
}
