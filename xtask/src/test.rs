//! `cargo xtask test`: everything a change has to pass, cheapest first.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::flags::Test;
use crate::setup::Purpose;
use crate::{Result, fuzz, setup, sh, tidy};

/// The sets of features that are linted, beside the workspace as it stands: what is off by default, and what the
/// workspace turns on for everybody. This is the one list of them.
const FEATURE_SETS: &[&str] = &[
    "-p dataset --features arrow2",
    "-p pool-core",
    "-p pool-core --features contracts",
];

/// The sets whose tests run beside the workspace's own.
const TESTED_FEATURE_SETS: &[&str] = &["-p dataset --features arrow2"];

/// How long each fuzz target runs here. Long enough to see that it works on its seeds; finding takes `cargo xtask fuzz`.
const FUZZ_SECONDS: u32 = 5;

/// A step's name, and what it does.
type Step = (String, Box<dyn FnOnce() -> Result>);

pub(crate) fn run(flags: &Test) -> Result {
    let mut steps: Vec<Step> = vec![
        (
            "setup".to_owned(),
            Box::new(|| setup::ensure(Purpose::Test)),
        ),
        ("tidy".to_owned(), Box::new(tidy::run)),
        cargo("fmt", "fmt --all --check"),
        cargo("clippy", "clippy --workspace --all-targets -- -D warnings"),
    ];
    if !flags.fast {
        steps.extend(FEATURE_SETS.iter().map(|set| {
            cargo(
                &format!("clippy {set}"),
                &format!("clippy --all-targets {set} -- -D warnings"),
            )
        }));
        let mut doc = sh::cargo("doc --workspace --no-deps --lib");
        doc.env("RUSTDOCFLAGS", "-D warnings");
        steps.push(("doc".to_owned(), runs(doc)));
    }
    steps.push(cargo("test", "test --workspace"));
    if !flags.fast {
        steps.extend(
            TESTED_FEATURE_SETS
                .iter()
                .map(|set| cargo(&format!("test {set}"), &format!("test {set}"))),
        );
    }
    if flags.fuzz || env::var("CI").is_ok_and(|ci| ci == "true") {
        steps.push(("fuzz".to_owned(), Box::new(|| fuzz::smoke(FUZZ_SECONDS))));
    }
    run_all(steps)
}

fn cargo(name: &str, args: &str) -> Step {
    (name.to_owned(), runs(sh::cargo(args)))
}

fn runs(mut command: Command) -> Box<dyn FnOnce() -> Result> {
    Box::new(move || sh::run(&mut command))
}

/// Runs the steps in order, stops at the first that fails, and ends with a table of how long each took.
fn run_all(steps: Vec<Step>) -> Result {
    let mut table = String::new();
    let count = steps.len();
    for (position, (name, step)) in steps.into_iter().enumerate() {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let outcome = step();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        table.push_str(&format!(
            "  {:>6.1} s  {verdict:<6}  {name}\n",
            seconds(started.elapsed())
        ));
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

fn seconds(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_ends_the_run_and_is_named() {
        let steps: Vec<Step> = vec![
            ("one".to_owned(), Box::new(|| Ok(()))),
            (
                "two".to_owned(),
                Box::new(|| Err("`cargo two` failed".to_owned())),
            ),
            (
                "three".to_owned(),
                Box::new(|| unreachable!("ran past a failure")),
            ),
        ];
        assert_eq!(
            run_all(steps),
            Err("step 2 of 3, two: `cargo two` failed".to_owned())
        );
    }
}
