//! A fresh directory in which the program runs.

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// What a launcher may have set where the tests run.
const OUTSIDE_WORLD: [&str; 13] = [
    "RANK",
    "WORLD_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_STEP_ID",
    "SLURM_STEPID",
    "TORCHELASTIC_RUN_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "RUST_LOG",
];

pub(crate) struct Workplace {
    folder: TempDir,
}

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit status.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// Writes a file into the directory.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with these arguments, in the directory, told nothing by the environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_episode-pool"));
        command.args(args).current_dir(self.folder.path());
        for variable in OUTSIDE_WORLD {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, &[])
    }

    /// As [`run`](Self::run), with some environment variables set.
    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        Run {
            status: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    /// What the program prints when all goes well: nothing on standard error.
    pub(crate) fn stdout(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(
            (run.status, run.stderr.as_str()),
            (Some(0), ""),
            "{args:?} printed {}",
            run.stdout
        );
        run.stdout
    }

    /// The same, as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.stdout(args)).unwrap()
    }
}

/// The path of a bundled dataset, as an argument.
pub(crate) fn fixture(name: &str) -> String {
    testkit::fixtures::dataset(name)
        .to_str()
        .unwrap()
        .to_owned()
}

/// A small dataset's path, as an argument.
pub(crate) fn root(dataset: &testkit::Dataset) -> String {
    dataset.root().to_str().unwrap().to_owned()
}
