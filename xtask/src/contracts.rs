//! `cargo xtask contracts`: the promises about the order, on random episode lengths or on your own.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use pool_core::contracts::{self, Setup, Violation};

use crate::flags::{Contracts, Lengths};
use crate::{Result, sh};

type Contract = fn(&Setup) -> std::result::Result<(), Violation>;

/// By the names that ARCHITECTURE.md gives them.
const CONTRACTS: [(&str, Contract); 8] = [
    ("exactly_once", contracts::exactly_once),
    ("order_is_a_function", contracts::order_is_a_function),
    ("epochs_reshuffle", contracts::epochs_reshuffle),
    ("consumers_decorrelate", contracts::consumers_decorrelate),
    ("uniform_over_the_pool", contracts::uniform_over_the_pool),
    ("pool_is_bounded", contracts::pool_is_bounded),
    ("resume_equals_suffix", contracts::resume_equals_suffix),
    ("elastic_covers_once", elastic_covers_once),
];

/// After each topology to check, others go on with the epoch.
fn elastic_covers_once(setup: &Setup) -> std::result::Result<(), Violation> {
    contracts::elastic_covers_once(setup, &[(2, 3), (1, 1), (4, 0)])
}

/// Ranks and workers of each that are checked when none are given: alone, with workers, and numbers that do not divide evenly.
const TOPOLOGIES: [(usize, usize); 4] = [(1, 0), (1, 4), (2, 2), (3, 3)];

pub(crate) fn run(flags: &Contracts, invoked_in: &Path) -> Result {
    let lengths = match (&flags.lengths, &flags.lengths_file) {
        (Some(Lengths(lengths)), None) => lengths.clone(),
        (None, Some(file)) => read_lengths(&invoked_in.join(file))?,
        (None, None) => return on_random_lengths(flags),
        (Some(_), Some(_)) => return Err("give --lengths or --lengths-file, not both".to_owned()),
    };
    if flags.cases.is_some() {
        return Err(
            "--cases counts random datasets; with lengths of your own there is one".to_owned(),
        );
    }
    on_own_lengths(&lengths, flags)
}

fn on_random_lengths(flags: &Contracts) -> Result {
    let of_lengths = [
        flags.world_size.is_some(),
        flags.num_workers.is_some(),
        flags.episode_pool_size.is_some(),
        flags.seed.is_some(),
    ];
    if of_lengths.contains(&true) {
        return Err(
            "topology and options are random, too, unless you give --lengths or --lengths-file"
                .to_owned(),
        );
    }
    let mut command = sh::cargo("test -p pool-core --test it contracts");
    if let Some(cases) = flags.cases {
        command.env("PROPTEST_CASES", cases.to_string());
    }
    sh::run(&mut command)
}

fn on_own_lengths(lengths: &[usize], flags: &Contracts) -> Result {
    let topologies = match (flags.world_size, flags.num_workers) {
        (None, None) => TOPOLOGIES.to_vec(),
        (world_size, num_workers) => vec![(world_size.unwrap_or(1), num_workers.unwrap_or(0))],
    };
    let frames: u128 = lengths.iter().map(|&length| length as u128).sum();
    eprintln!("{} episodes, {frames} frames", lengths.len());
    for (world_size, num_workers) in topologies {
        let mut setup = Setup::new(lengths, world_size, num_workers);
        setup.options.seed = flags.seed.unwrap_or(setup.options.seed);
        setup.options.episode_pool_size = flags
            .episode_pool_size
            .unwrap_or(setup.options.episode_pool_size);

        eprintln!(
            "\n{world_size} rank(s), {num_workers} worker(s) each, a pool of {}:",
            setup.options.episode_pool_size
        );
        for (name, contract) in CONTRACTS {
            let started = Instant::now();
            contract(&setup).map_err(|violation| chain(&violation))?;
            eprintln!(
                "  {name:<22} holds  {:>6.1} s",
                started.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}

/// An error and its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line = format!("{line}: {cause}");
        source = cause.source();
    }
    line
}

fn read_lengths(file: &Path) -> Result<Vec<usize>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| {
        format!("{shown}: no JSON array of lengths in frames, such as [3, 1, 4]: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_without_episodes_is_refused_with_its_cause() {
        let violation = contracts::exactly_once(&Setup::new(&[], 1, 0)).unwrap_err();
        let line = chain(&violation);
        assert!(line.starts_with("the setup is not valid: "), "{line}");
    }
}
