//! `stream --distributed`: several processes, one dataset.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};

use serde_json::Value;
use testkit::slurm::Slurm;

use crate::workplace::{Workplace, fixture};

const RANKS: usize = 3;

/// Starts one rank of a run. Its frames go to a file of its own.
fn start(workplace: &Workplace, args: &[&str], run_id: &str, rank: usize) -> Child {
    let (rank, ranks) = (rank.to_string(), RANKS.to_string());
    let frames = format!("frames_{run_id}_{rank}.jsonl");
    let own = [
        "stream",
        "--distributed",
        "--state-dir",
        "states",
        "--run-id",
        run_id,
        "--rank",
        &rank,
        "--world-size",
        &ranks,
        "--frames-out",
        &frames,
        "--json",
    ];
    let mut command = workplace.command(&[&own[..], args].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the test needs several processes")
}

/// Runs all ranks to their end.
fn run(workplace: &Workplace, args: &[&str], run_id: &str) -> Vec<Output> {
    let ranks: Vec<Child> = (0..RANKS)
        .map(|rank| start(workplace, args, run_id, rank))
        .collect();
    ranks
        .into_iter()
        .map(|rank| rank.wait_with_output().unwrap())
        .collect()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// The ranks of every frame that came in an epoch, by (episode, frame).
fn who(workplace: &Workplace, run_id: &str, epoch: u64) -> BTreeMap<(u64, u64), Vec<usize>> {
    let mut who: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for rank in 0..RANKS {
        let text =
            std::fs::read_to_string(workplace.path(&format!("frames_{run_id}_{rank}.jsonl")))
                .unwrap();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let frames: Vec<(u64, u64)> = serde_json::from_value(line["frames"].clone()).unwrap();
            if line["epoch"] == epoch {
                for frame in frames {
                    who.entry(frame).or_default().push(rank);
                }
            }
        }
    }
    who
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn ranks_share_every_epoch_and_rank_0_proves_it() {
    let workplace = Workplace::new();
    let dataset = fixture("no_camera");
    let frames = workplace.json(&["info", &dataset, "--json"])["total_frames"]
        .as_u64()
        .unwrap();
    let args = [
        &dataset,
        "--epochs",
        "2",
        "--num-workers",
        "2",
        "--batch-size",
        "4",
        "--save-every",
        "5",
    ];
    let outputs = run(&workplace, &args, "a");
    for epoch in 0..2 {
        let who = who(&workplace, "a", epoch);
        assert_eq!(who.len() as u64, frames);
        assert!(
            who.values().all(|ranks| ranks.len() == 1),
            "epoch {epoch}: a frame came twice"
        );
        let mut ranks: Vec<usize> = who.values().flatten().copied().collect();
        ranks.sort_unstable();
        ranks.dedup();
        assert_eq!(ranks, [0, 1, 2], "fewer ranks than were started");
    }
    let fleet = &json(&outputs[0])["fleet"];
    assert_eq!(
        (fleet["world_size"].as_u64(), fleet["nodes"].as_u64()),
        (Some(3), Some(1))
    );
    assert_eq!(fleet["samples"].as_u64(), Some(2 * frames));
    for epoch in 0..2 {
        let told = &fleet["epochs"][epoch];
        assert_eq!(
            (&told["exactly_once"], told["emitted"].as_u64()),
            (&Value::Bool(true), Some(frames)),
            "{fleet}"
        );
    }
    for (rank, output) in outputs.iter().enumerate() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains(&format!("rank {rank} of 3, epoch 1: ")),
            "{stderr}"
        );
        assert!(rank == 0 || json(output)["fleet"].is_null());
    }

    // All has been done: started again, it tells so at once.
    let again = run(&workplace, &args, "b");
    let fleet = &json(&again[0])["fleet"];
    assert_eq!(
        (
            fleet["samples"].as_u64(),
            &fleet["epochs"][1]["exactly_once"]
        ),
        (Some(0), &Value::Bool(true)),
        "{fleet}"
    );
    assert_eq!(who(&workplace, "b", 1).len(), 0);
}

#[test]
fn ranks_that_were_killed_go_on_where_each_was() {
    let workplace = Workplace::new();
    let dataset = fixture("pusht_like");
    let args = [
        &dataset,
        "--batch-size",
        "4",
        "--num-workers",
        "1",
        "--save-every",
        "1",
    ];
    for (nth, lines) in [3, 7, 12].into_iter().enumerate() {
        let mut ranks: Vec<Child> = (0..RANKS)
            .map(|rank| start(&workplace, &args, &format!("k{nth}"), rank))
            .collect();
        // The ranks are killed once one of them has saved so often; the others are wherever they are.
        let told = BufReader::new(ranks[nth].stderr.take().unwrap())
            .lines()
            .take(lines);
        assert!(told.map(Result::unwrap).last().is_some());
        for rank in &mut ranks {
            rank.kill().unwrap();
            rank.wait().unwrap();
        }
    }
    let fleet = json(&run(&workplace, &args, "end")[0])["fleet"].clone();
    let epoch = &fleet["epochs"][0];
    assert_eq!(
        (&epoch["exactly_once"], &epoch["complete"]),
        (&Value::Bool(true), &Value::Bool(true)),
        "{fleet}"
    );
    assert!(
        fleet["samples"].as_u64() < epoch["selected"].as_u64(),
        "{fleet}"
    );

    // A state is also one to go on from with other ranks.
    let state = workplace.path("states/rank_1.json");
    let run = workplace.run(&[
        "stream",
        &dataset,
        "--resume",
        state.to_str().unwrap(),
        "--batch-size",
        "4",
        "--epochs",
        "2",
    ]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
}

#[test]
fn ranks_that_do_not_fit_together_are_told_of() {
    let workplace = Workplace::new();
    let dataset = fixture("no_camera");
    let alone = ["stream", &dataset, "--distributed", "--state-dir", "states"];
    let of_two = [&alone[..], &["--world-size", "2", "--batch-size", "4"]].concat();
    let check = |args: &[&str], status, message: &str| {
        let run = workplace.run(args);
        assert_eq!(run.status, Some(status), "{args:?}: {}", run.stderr);
        assert!(
            run.stderr.contains(message) && !run.stderr.contains("panicked"),
            "{args:?}: {}",
            run.stderr
        );
    };
    check(&[&of_two[..], &["--rank", "0"]].concat(), 1, "--run-id");
    check(&["stream", &dataset, "--distributed"], 2, "--state-dir");
    check(&["stream", &dataset, "--save-every", "3"], 2, "--save");

    // Rank 1 never comes.
    let named = [&of_two[..], &["--run-id", "x", "--report-timeout", "0"]].concat();
    check(
        &[&named[..], &["--rank", "0"]].concat(),
        1,
        "no report of rank(s) 1",
    );
    // It comes late, with other frames; rank 0 has done its own by now.
    check(
        &[&named[..], &["--rank", "1", "--episodes", "0-2"]].concat(),
        0,
        "",
    );
    check(
        &[&named[..], &["--rank", "0"]].concat(),
        1,
        "other options than rank 0",
    );

    check(
        &[
            &alone[..],
            &["--rank", "0", "--world-size", "3", "--run-id", "x"],
        ]
        .concat(),
        1,
        "another --state-dir",
    );
    workplace.write(
        "states/rank_0.json",
        "{\"batches_consumed\": 3, \"batch_size\": 4}",
    );
    check(
        &[&named[..], &["--rank", "0"]].concat(),
        1,
        "not written by a rank",
    );
    workplace.write("states/rank_0.json", "no state");
    check(&[&named[..], &["--rank", "0"]].concat(), 1, "rank_0.json");
}

#[test]
fn srun_sets_the_ranks_and_the_name_of_the_run() {
    let slurm = Slurm::start();
    let workplace = Workplace::new();
    let dataset = fixture("hevc_small");
    let mut srun = slurm.command("srun");
    srun.args([
        "--ntasks=2",
        "--quiet",
        "--kill-on-bad-exit=1",
        env!("CARGO_BIN_EXE_episode-pool"),
    ])
    .args([
        "stream",
        &dataset,
        "--distributed",
        "--state-dir",
        "states",
        "--batch-size",
        "8",
        "--num-workers",
        "1",
        "--json",
    ])
    .current_dir(workplace.path("."));
    for variable in ["RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"] {
        srun.env_remove(variable);
    }
    let output = srun.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // One after the other, in any order.
    let printed = String::from_utf8(output.stdout).unwrap();
    let values: Vec<Value> = serde_json::Deserializer::from_str(&printed)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let fleets: Vec<&Value> = values
        .iter()
        .map(|value| &value["fleet"])
        .filter(|fleet| !fleet.is_null())
        .collect();
    assert_eq!((values.len(), fleets.len()), (2, 1), "{printed}");
    assert_eq!(
        (
            &fleets[0]["world_size"],
            &fleets[0]["epochs"][0]["exactly_once"]
        ),
        (&parse("2"), &parse("true")),
        "{printed}"
    );
    let run_id = fleets[0]["run_id"].as_str().unwrap();
    assert!(run_id.ends_with("-0-0"), "{run_id}");
}
