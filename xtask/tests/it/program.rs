//! The matrix with the real program in place of the stand-in.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use testkit::slurm::Slurm;

use crate::workplace::Workplace;

/// `EPISODE_POOL_BIN`, which has to work, or the program that cargo has built beside this test.
fn program() -> Option<PathBuf> {
    let given = env::var_os("EPISODE_POOL_BIN").map(PathBuf::from);
    let beside = || PathBuf::from(env!("CARGO_BIN_EXE_xtask")).with_file_name("episode-pool");
    let program = given.clone().unwrap_or_else(beside);
    let works = Command::new(&program)
        .args(["bench", "--help"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    assert!(
        works || given.is_none(),
        "EPISODE_POOL_BIN: `{} bench --help` fails",
        program.display()
    );
    works.then_some(program)
}

#[test]
fn the_real_program_s_results_are_summarized() {
    let Some(program) = program() else {
        eprintln!(
            "SKIPPED: no episode-pool with `bench` here; `cargo build -p cli`, or name one in EPISODE_POOL_BIN"
        );
        return;
    };
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    let dataset = testkit::fixtures::dataset("pusht_like");
    let dataset = fs::canonicalize(dataset).unwrap();
    for (name, value) in [
        ("RUN", program.to_str().unwrap()),
        ("REPO_ID", dataset.to_str().unwrap()),
        ("SOURCES", "hub"),
        ("DECODES", "cpu"),
        ("MEM", "1500M"),
        ("NUM_BATCHES", "4"),
        ("WARMUP_BATCHES", "1"),
    ] {
        workplace.set(name, value);
    }
    workplace.xtask(&["bench-matrix"]).well();
    slurm.wait_for_jobs();
    let summary = workplace.xtask(&["summarize", "out"]).well();
    for (job, state) in summary.states() {
        let log = fs::read_dir(workplace.path("out"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect::<String>();
        assert_eq!(state, "ok", "{job}: {log}");
    }
    let fps = fs::read_to_string(workplace.path("out/summary.csv")).unwrap();
    for line in fps.lines().skip(1) {
        let frames: f64 = line.split(',').nth(6).unwrap().parse().unwrap();
        assert!(frames > 0.0, "{line}");
    }
}
