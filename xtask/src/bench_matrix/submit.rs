//! sbatch: its arguments, its answers, and the same as a script to paste.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::sh::{self, Answer, quoted};

use super::job::Job;
use super::settings::Settings;

/// How long one sbatch may take. SLURM's own patience with a silent controller is a few seconds to a minute; a busy one
/// answers late.
const LIMIT: Duration = Duration::from_secs(120);

/// What sbatch said.
#[derive(Debug)]
pub(super) enum Submission {
    Accepted(JobId),
    /// It will not have this job.
    Refused(String),
    /// Nobody answers; the next job would fare no better.
    Unreachable(String),
}

/// A job's id, with its cluster where several are federated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobId {
    pub(crate) job: String,
    pub(crate) cluster: Option<String>,
}

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.job)?;
        self.cluster
            .iter()
            .try_for_each(|cluster| write!(f, " on {cluster}"))
    }
}

/// An id as `sbatch --parsable` prints it, `123` or `123;cluster`, on the last line: sites let their sbatch say more before.
fn parse_id(stdout: &str) -> Option<JobId> {
    let line = stdout.lines().last()?.trim();
    let (job, cluster) = match line.split_once(';') {
        Some((job, cluster)) => (job, Some(cluster.to_owned())),
        None => (line, None),
    };
    let is_number = !job.is_empty() && job.chars().all(|c| c.is_ascii_digit());
    is_number.then(|| JobId {
        job: job.to_owned(),
        cluster: cluster.filter(|name| !name.is_empty()),
    })
}

/// There is an sbatch on the PATH.
pub(super) fn check_sbatch(lookup: impl Fn(&str) -> Option<String>) -> Result {
    let path = lookup("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join("sbatch").is_file());
    if found {
        return Ok(());
    }
    Err("there is no sbatch on PATH: run this on a login node of a SLURM cluster, after `module load slurm` where it has modules. \
         Debian has the program in the package slurm-client. `--dry-run` shows what would be submitted."
        .to_owned())
}

/// Submits a job that waits for the end of `previous`, however that ends.
pub(super) fn sbatch(settings: &Settings, job: &Job, previous: Option<&str>) -> Result<Submission> {
    let mut command = Command::new("sbatch");
    command.args(options(settings, job));
    if let Some(previous) = previous {
        command.arg(format!("--dependency=afterany:{previous}"));
    }
    command.arg(wrap(job));
    Ok(match sh::ask(&mut command, LIMIT)? {
        Answer::Missing => Submission::Refused("sbatch is gone from PATH".to_owned()),
        Answer::TooLate => Submission::Unreachable(format!(
            "sbatch did not answer within {} s and was stopped; `squeue --me` tells whether the job is there all the same",
            LIMIT.as_secs()
        )),
        Answer::Ended {
            succeeded: true,
            stdout,
            ..
        } => match parse_id(&stdout) {
            Some(id) => Submission::Accepted(id),
            None => Submission::Refused(format!("sbatch printed no job id: `{stdout}`")),
        },
        Answer::Ended { stderr, stdout, .. } => {
            let message = if stderr.is_empty() { stdout } else { stderr };
            if is_unreachable(&message) {
                Submission::Unreachable(message)
            } else {
                Submission::Refused(message)
            }
        }
    })
}

/// SLURM's words for a controller that is down, a network that is, and a machine that belongs to no cluster.
fn is_unreachable(message: &str) -> bool {
    [
        "Unable to contact slurm controller",
        "Unable to establish a configuration source",
        "Could not establish a configuration source",
        "Unable to process configuration file",
        "Socket timed out",
        "Zero Bytes were transmitted or received",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// All arguments but the dependency and the script.
fn options(settings: &Settings, job: &Job) -> Vec<String> {
    let mut options = vec![
        "--parsable".to_owned(),
        format!("--job-name={}", job.name),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        format!("--cpus-per-task={}", job.decode.num_workers.max(1)),
        format!("--time={}", settings.time),
        format!("--mem={}", settings.mem),
        // Run twice, it would run beside the next in the chain.
        "--no-requeue".to_owned(),
        format!("--chdir={}", settings.folder),
        // `%j` and the like are sbatch's; a `%` of a folder's own is doubled.
        format!(
            "--output={}/{}.log",
            settings.out_dir.replace('%', "%%"),
            job.stem
        ),
    ];
    let wanted = [
        ("gpus", &job.decode.gpus),
        ("account", &settings.account),
        ("partition", &settings.partition),
        ("qos", &settings.qos),
    ];
    for (name, value) in wanted {
        options.extend(value.iter().map(|value| format!("--{name}={value}")));
    }
    options
}

/// The script: one argument, whatever it holds.
fn wrap(job: &Job) -> String {
    format!("--wrap={}", job.body)
}

/// A script that submits the same jobs.
pub(super) fn script(settings: &Settings, jobs: &[Job]) -> String {
    let mut script = format!("mkdir -p {}\n", quoted(&settings.out_dir));
    for (position, job) in jobs.iter().enumerate() {
        let words: Vec<String> = options(settings, job).iter().map(quoted).collect();
        let dependency = match position.checked_sub(1) {
            // Not of one that was refused: it has no id.
            Some(previous) if settings.serial => {
                let id = format!("job{previous}");
                format!(" ${{{id}:+\"--dependency=afterany:${{{id}%%;*}}\"}}")
            }
            _ => String::new(),
        };
        let _ = writeln!(
            script,
            "job{position}=$(sbatch {}{dependency} {})",
            words.join(" "),
            quoted(wrap(job))
        );
        if settings.serial {
            // The chain goes on from the last that was taken.
            if let Some(previous) = position.checked_sub(1) {
                let _ = writeln!(script, "job{position}=${{job{position}:-$job{previous}}}");
            }
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_with_and_without_a_cluster() {
        let id = |job: &str, cluster: Option<&str>| {
            Some(JobId {
                job: job.to_owned(),
                cluster: cluster.map(str::to_owned),
            })
        };
        assert_eq!(parse_id("123"), id("123", None));
        assert_eq!(parse_id("123;alps\n"), id("123", Some("alps")));
        assert_eq!(parse_id("Welcome to the cluster!\n123"), id("123", None));
        for text in ["", "Submitted batch job 12", ";alps", "12a", "-1"] {
            assert_eq!(parse_id(text), None, "{text}");
        }
    }

    #[test]
    fn a_refusal_is_not_a_controller_that_is_away() {
        let refusal = "sbatch: error: Batch job submission failed: ";
        assert!(!is_unreachable(&format!(
            "{refusal}Invalid account or account/partition combination specified"
        )));
        assert!(is_unreachable(&format!(
            "{refusal}Unable to contact slurm controller (connect failure)"
        )));
    }
}
