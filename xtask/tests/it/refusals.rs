//! What is said where jobs cannot be submitted.

use std::fs;

use testkit::slurm::Slurm;

use crate::workplace::Workplace;

#[test]
fn a_refused_job_is_named_and_the_rest_of_the_chain_is_submitted() {
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    workplace.set("SOURCES", "hub bucket");
    workplace.set("MODES", "single");
    // The node has two.
    workplace.set("GPUS", "9");
    let said = workplace.xtask(&["bench-matrix"]).failed();
    for part in [
        "sbatch refused 2 of 4 jobs: hub_single_b2_w1_cuda, bucket_single_b2_w1_cuda",
        "Requested node configuration is not available",
        "cargo xtask summarize",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let jobs = workplace.jobs();
    assert_eq!(jobs.len(), 4);
    assert!(jobs[0]["error"].is_null() && jobs[0]["id"].is_string());
    assert!(jobs[1]["id"].is_null());
    slurm.wait_for_jobs();
    let states = workplace.xtask(&["summarize", "out"]).well().states();
    let states: Vec<&str> = states
        .iter()
        .map(|(_, state)| state.get(..14).unwrap_or(state))
        .collect();
    assert_eq!(states, ["ok", "not submitted:", "ok", "not submitted:"]);
    assert_eq!(
        workplace.log("started"),
        ["hub single cpu", "bucket single cpu"]
    );
}

#[test]
fn a_controller_that_is_away_is_told_of_once_with_sbatch_s_words() {
    let mut slurm = Slurm::start();
    slurm.stop_controller();
    let workplace = Workplace::on(&slurm);
    let said = workplace.xtask(&["bench-matrix"]).failed();
    for part in [
        "12 of 12 jobs were not submitted: SLURM cannot be reached",
        "Unable to contact slurm controller",
        "scontrol ping",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let jobs = workplace.jobs();
    let tried = |job: &serde_json::Value| !job["error"].as_str().unwrap().starts_with("not tried");
    assert_eq!(jobs.iter().filter(|job| tried(job)).count(), 1);
    let states = workplace.xtask(&["summarize", "out"]).well().states();
    assert_eq!(states.len(), 12);
    assert!(
        states
            .iter()
            .all(|(_, state)| state.starts_with("not submitted: "))
    );
}

#[test]
fn without_slurm_the_error_says_where_to_run_and_what_to_install() {
    let mut workplace = Workplace::new();
    fs::create_dir(workplace.path("empty")).unwrap();
    let empty = workplace.path("empty").to_str().unwrap().to_owned();
    workplace.set("PATH", &empty);
    let said = workplace.xtask(&["bench-matrix"]).failed();
    for part in [
        "no sbatch on PATH",
        "login node",
        "slurm-client",
        "--dry-run",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!workplace.path("out").exists());
    // What would be submitted can be seen all the same.
    let shown = workplace.xtask(&["bench-matrix", "--dry-run"]).well();
    assert_eq!(shown.stdout.matches("=$(sbatch ").count(), 12);
}

#[test]
fn what_is_unset_is_said_before_anything_is_submitted() {
    let mut workplace = Workplace::new();
    workplace.set("BUCKET", "");
    workplace.set("WARM_BUCKET", "");
    let said = workplace.xtask(&["bench-matrix"]).failed();
    assert!(
        said.contains("BUCKET (for the source bucket), WARM_BUCKET (for"),
        "{said}"
    );
    assert!(!workplace.path("out").exists());
    let flags = ["--bucket", "s3://b", "--warm-bucket", "s3://w"];
    workplace
        .xtask(&[&["bench-matrix", "--dry-run"], &flags[..]].concat())
        .well();
}

#[test]
fn a_folder_with_nothing_in_it_is_an_error() {
    let workplace = Workplace::new();
    fs::create_dir(workplace.path("out")).unwrap();
    let said = workplace.xtask(&["summarize", "out"]).failed();
    assert!(said.contains("no results, and no list of jobs"), "{said}");
}
