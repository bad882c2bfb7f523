//! The matrix on a real SLURM: in which order jobs run, what they leave, and what is told of it.

use std::fs;

use testkit::slurm::Slurm;

use crate::workplace::Workplace;

/// The jobs in the order of the matrix.
fn matrix() -> Vec<String> {
    let mut jobs = Vec::new();
    for source in ["hub", "bucket", "warmed_bucket"] {
        for mode in ["single", "sarm"] {
            for device in ["cpu", "cuda"] {
                jobs.push(format!("{source} {mode} {device}"));
            }
        }
    }
    jobs
}

#[test]
fn twelve_jobs_run_one_by_one_and_each_is_told_of_by_its_own_name() {
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    workplace.set("FAKE_FAIL", "hub sarm cpu");
    workplace.set("FAKE_KILL", "bucket single cuda");
    workplace.set("FAKE_EAT", "warmed_bucket single cpu");
    workplace.set("SCRATCH", "/scratch of mine");
    let submitted = workplace.xtask(&["bench-matrix"]).well();
    assert!(
        submitted.stderr.contains("squeue --me --jobs=1,2,3,"),
        "{}",
        submitted.stderr
    );
    assert!(
        submitted.stderr.contains("cargo xtask summarize "),
        "{}",
        submitted.stderr
    );
    // The first may already run; the last waits for eleven others.
    let early = workplace.xtask(&["summarize", "out"]).well().states();
    assert_eq!(early.len(), 12);
    assert_eq!(early[11].1, "waits (Dependency)");

    slurm.wait_for_jobs();
    assert_eq!(workplace.log("started"), matrix());
    assert_eq!(workplace.log("overlaps"), Vec::<String>::new());
    assert_eq!(
        workplace.log("urls")[..5],
        [
            "hf://datasets/lerobot/pusht",
            "hf://datasets/lerobot/pusht",
            "hf://datasets/lerobot/pusht",
            "hf://datasets/lerobot/pusht",
            "s3://bucket/pusht",
        ]
    );
    assert_eq!(workplace.log("hf_home")[0], "/scratch of mine/hf_home");

    let summary = workplace
        .xtask(&["summarize", "out", "--plot", "plot.svg"])
        .well();
    let expected: Vec<(String, String)> = matrix()
        .into_iter()
        .map(|job| {
            let state = match job.as_str() {
                "hub sarm cpu" => "failed (exit 3)",
                "bucket single cuda" => "killed (exit 137)",
                "warmed_bucket single cpu" => "out of memory (the whole job: FAILED)",
                _ => "ok",
            };
            (job, state.to_owned())
        })
        .collect();
    assert_eq!(summary.states(), expected, "{}", summary.stdout);
    assert!(
        summary
            .stdout
            .contains("9 of 12 jobs ended well; 4 of 9 reach their target"),
        "{}",
        summary.stdout
    );
    let csv = fs::read_to_string(workplace.path("out/summary.csv")).unwrap();
    assert_eq!(csv.lines().count(), 13);
    assert!(
        csv.lines().nth(1).unwrap().starts_with(
            "hub,single,cpu,2,2,ok,200,120,met,100.5,0.1,0.25,1.5,2.5,,1073741824,0,1,0.5,0.5,"
        ),
        "{csv}"
    );
    assert!(
        fs::read_to_string(workplace.path("plot.svg"))
            .unwrap()
            .contains("out of memory")
    );

    // Once SLURM has forgotten them, the records are still there.
    drop(slurm);
    let forgotten = workplace.xtask(&["summarize", "out"]).well().states();
    assert_eq!(forgotten[2], expected[2]);
    assert_eq!(forgotten[8].1, "out of memory (the whole job)");
}

#[test]
fn jobs_run_side_by_side_when_asked_to() {
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    // Each of the two ends well only while the other runs.
    workplace.set("FAKE_MEET", "1");
    workplace.set("SERIAL", "0");
    workplace.set("SOURCES", "hub");
    workplace.set("MODES", "single");
    workplace.xtask(&["bench-matrix"]).well();
    slurm.wait_for_jobs();
    let states = workplace.xtask(&["summarize", "out"]).well().states();
    assert_eq!(states.len(), 2);
    assert!(states.iter().all(|(_, state)| state == "ok"), "{states:?}");
}

#[test]
fn names_with_spaces_quotes_and_dollars_reach_the_program_whole() {
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    let odd = "o'u t $HOME \"q\" `id` 100%j";
    let program = fs::read_to_string(workplace.path("fake")).unwrap();
    let program = workplace.program(&format!("{odd}/the fake"), &program);
    // Remembers its arguments, and runs what follows the environment's name.
    let bin = workplace.program(
        "bin/conda",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$FAKE/conda\"\nshift 4\nexec \"$@\"\n",
    );
    workplace.first_on_path(bin.parent().unwrap());
    workplace.set("RUN", program.to_str().unwrap());
    workplace.set("CONDA_ENV", "my $env");
    workplace.set("OUT_DIR", &format!("{odd}/out"));
    workplace.set("BUCKET", odd);
    let flags = ["--sources", "bucket", "--modes", "sarm", "--decodes", "cpu"];
    let args = [&["bench-matrix"], &flags[..]].concat();
    let shown = workplace
        .xtask(&[&args[..], &["--dry-run"]].concat())
        .well();
    assert!(shown.stdout.contains("--wrap="), "{}", shown.stdout);
    assert!(!workplace.path(odd).join("out").exists());

    workplace.xtask(&args).well();
    slurm.wait_for_jobs();
    let out = workplace.path(odd).join("out");
    let log = fs::read_to_string(out.join("bucket_sarm_b2_w2_cpu.log")).unwrap();
    assert_eq!(workplace.log("urls"), [odd], "{log}");
    let conda = workplace.log("conda");
    assert_eq!(
        conda[..5],
        [
            "run",
            "--no-capture-output",
            "-n",
            "my $env",
            program.to_str().unwrap()
        ]
    );
    assert_eq!(conda[5..7], ["bench", odd]);
    assert_eq!(
        fs::read_to_string(out.join("bucket_sarm_b2_w2_cpu.exit")).unwrap(),
        "0\n"
    );
    let summary = workplace
        .xtask(&["summarize", out.to_str().unwrap()])
        .well();
    assert_eq!(
        summary.states(),
        [("bucket sarm cpu".to_owned(), "ok".to_owned())]
    );
}

#[test]
fn a_second_run_into_the_same_folder_leaves_no_old_result_to_be_taken_for_new() {
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    let args = ["bench-matrix", "--sources", "hub", "--modes", "single"];
    workplace.xtask(&args).well();
    slurm.wait_for_jobs();
    workplace.set("FAKE_FAIL", "hub single cpu");
    workplace
        .xtask(&[&args[..], &["--decodes", "cpu"]].concat())
        .well();
    slurm.wait_for_jobs();
    let states = workplace.xtask(&["summarize", "out"]).well().states();
    let states: Vec<&str> = states.iter().map(|(_, state)| state.as_str()).collect();
    assert_eq!(states, ["failed (exit 3)", "ok"]);
    assert!(!workplace.path("out/hub_single_b2_w2_cpu.json").exists());
    assert!(workplace.path("out/hub_single_b2_w2_cpu.json.old").exists());
}

#[test]
fn a_cancelled_job_is_told_of_and_the_chain_goes_on() {
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    // It waits for another that never comes.
    let meets = fs::read_to_string(workplace.path("fake"))
        .unwrap()
        .replace("[ -n \"${FAKE_MEET:-}\" ]", "[ \"$decode\" = cpu ]");
    workplace.program("fake", &meets);
    workplace.set("SOURCES", "hub");
    workplace.set("MODES", "single");
    workplace.xtask(&["bench-matrix"]).well();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while workplace.log("started").is_empty() {
        assert!(
            std::time::Instant::now() < deadline,
            "the first job does not start"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(
        workplace.xtask(&["summarize", "out"]).well().states()[0].1,
        "runs"
    );
    assert!(
        slurm
            .command("scancel")
            .arg("1")
            .status()
            .unwrap()
            .success()
    );
    slurm.wait_for_jobs();
    let states = workplace.xtask(&["summarize", "out"]).well().states();
    let states: Vec<&str> = states.iter().map(|(_, state)| state.as_str()).collect();
    assert_eq!(states, ["cancelled", "ok"]);
}
