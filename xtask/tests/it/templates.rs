//! The templates in `slurm/`: fit for their shell, and run on a real SLURM with stand-ins for the programs.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::slurm::Slurm;

use crate::script::check;
use crate::workplace::Workplace;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm")
}

#[test]
fn templates_are_fit_for_their_shell() {
    let mut templates: Vec<PathBuf> = folder()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "sbatch")
        })
        .collect();
    templates.sort();
    assert_eq!(templates.len(), 2, "{templates:?}");
    for template in templates {
        let text = fs::read_to_string(&template).unwrap();
        assert!(
            text.starts_with("#!/bin/bash\n#SBATCH "),
            "{}",
            template.display()
        );
        check("bash", &["-n"], &template);
        check("dash", &["-n"], &template);
        check("shellcheck", &["--shell=bash"], &template);
    }
}

/// Submits a template, sized to the small cluster, and gives what its job wrote, sorted: processes write as they come.
fn run(template: &str, tasks: usize, variables: &[(&str, &str)]) -> Vec<String> {
    let slurm = Slurm::start();
    let mut workplace = Workplace::on(&slurm);
    workplace.program(
        "bin/program",
        "#!/bin/sh\nprintf '%s ' \"${RANK:-$SLURM_PROCID}/${WORLD_SIZE:-$SLURM_STEP_NUM_TASKS}\" \"$@\"\necho\n",
    );
    workplace.set("DATASET", "/data/of a user");
    for (name, value) in variables {
        workplace.set(name, value);
    }
    let output = workplace
        .command("sbatch")
        .args([
            "--nodes=1",
            "--cpus-per-task=1",
            "--mem=200M",
            "--output=job.log",
        ])
        .arg(format!("--ntasks-per-node={tasks}"))
        .args(template.starts_with("train").then_some("--gpus-per-node=2"))
        .arg(folder().join(template))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    slurm.wait_for_jobs();
    let log = fs::read_to_string(workplace.path("job.log")).unwrap();
    let place = workplace.path("").to_str().unwrap().to_owned();
    let mut lines: Vec<String> = log
        .lines()
        .map(|line| line.replace(&place, "").trim().to_owned())
        .collect();
    lines.sort();
    lines
}

#[test]
fn the_bench_starts_one_process_a_node_with_its_own_rank() {
    let lines = run(
        "bench-multinode.sbatch",
        1,
        &[
            ("RUN", "bin/program"),
            ("NUM_WORKERS", "3"),
            ("STATE_DIR", "the state"),
        ],
    );
    assert_eq!(
        lines,
        [
            "0: 0/1 stream /data/of a user --distributed --batch-size 2 --num-workers 3 --state-dir the state --save-every 100"
        ]
    );
}

#[test]
fn training_starts_every_process_with_its_own_rank() {
    let lines = run(
        "train-multinode.sbatch",
        2,
        &[("TRAIN", "bin/program --fast")],
    );
    let rest = "--fast --dataset /data/of a user --checkpoints checkpoints_1";
    assert_eq!(lines, [format!("0: 0/2 {rest}"), format!("1: 1/2 {rest}")]);
}
