//! What SLURM still knows of jobs: accounting first, which remembers, then the queue, which forgets within minutes.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use crate::bench_matrix::manifest::Entry;
use crate::sh::{self, Answer};

/// Neither is worth waiting for longer: the files beside the results tell most of it.
const LIMIT: Duration = Duration::from_secs(30);

/// A state such as `PENDING` and why, by job id.
pub(super) type States = BTreeMap<String, (String, String)>;

/// Asks for the states of these jobs. Whoever does not answer is left out.
pub(super) fn ask(jobs: &[Entry]) -> States {
    // Federated clusters are asked one by one.
    let mut by_cluster: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for id in jobs.iter().filter_map(|job| job.id.as_ref()) {
        let cluster = by_cluster.entry(id.cluster.as_deref()).or_default();
        cluster.push(&id.job);
    }
    let mut states = States::new();
    for (cluster, ids) in by_cluster {
        let ids = ids.join(",");
        let ask = |program: &str, args: &[&str]| {
            let mut command = Command::new(program);
            command
                .args(args)
                .args(cluster.map(|name| format!("--clusters={name}")));
            match sh::ask(&mut command, LIMIT) {
                Ok(Answer::Ended { stdout, .. }) => parse(&stdout),
                _ => States::new(),
            }
        };
        // `1,1`: squeue takes a single id that it has forgotten for a mistake, and says nothing of the others then.
        let jobs = format!("--jobs={ids},{ids}");
        let of_queue = ask(
            "squeue",
            &["--noheader", "--states=all", "--format=%i|%T|%r", &jobs],
        );
        let of_accounting = ask(
            "sacct",
            &[
                "--noheader",
                "--parsable2",
                "--allocations",
                "--format=JobIDRaw,State,Reason",
                &format!("--jobs={ids}"),
            ],
        );
        states.extend(of_queue);
        states.extend(of_accounting);
    }
    states
}

/// Lines of `id|STATE|reason`. Only the first word of a state counts: `CANCELLED by 1000`.
fn parse(text: &str) -> States {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.split('|').map(str::trim);
            let id = parts.next()?;
            let state = parts.next()?.split_whitespace().next()?;
            let reason = parts.next().unwrap_or_default();
            let is_number = !id.is_empty() && id.chars().all(|c| c.is_ascii_digit());
            is_number.then(|| (id.to_owned(), (state.to_owned(), reason.to_owned())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_from_either_program() {
        let states = parse(
            "CLUSTER: alps\n12|CANCELLED by 1000|None\n13|PENDING|Dependency\n14.batch|FAILED|\nsacct: no\n15|OUT_OF_MEMORY\n",
        );
        let state = |id: &str| {
            states
                .get(id)
                .map(|(state, why)| (state.as_str(), why.as_str()))
        };
        assert_eq!(state("12"), Some(("CANCELLED", "None")));
        assert_eq!(state("13"), Some(("PENDING", "Dependency")));
        assert_eq!(state("15"), Some(("OUT_OF_MEMORY", "")));
        assert_eq!(states.len(), 3);
    }
}
