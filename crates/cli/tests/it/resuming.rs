//! Runs that stop, are killed, and go on, here or on other ranks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use testkit::Spec;

use crate::workplace::{Workplace, fixture, root};

/// The lines of a file of frames.
fn lines(workplace: &Workplace, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(workplace.path(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn state(workplace: &Workplace, name: &str) -> Value {
    let text = std::fs::read_to_string(workplace.path(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The frames of a line, as (episode, frame).
fn frames(line: &str) -> Vec<(u64, u64)> {
    let line: Value = serde_json::from_str(line).unwrap();
    serde_json::from_value(line["frames"].clone()).unwrap()
}

/// Runs until so many lines of frames were printed, and is killed there. All lines that it printed, and whether it came to its end before.
fn killed_after(workplace: &Workplace, args: &[&str], num_lines: usize) -> (Vec<String>, bool) {
    let mut command = workplace.command(args);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut received: Vec<String> = printed
        .by_ref()
        .take(num_lines)
        .map(Result::unwrap)
        .collect();
    child.kill().unwrap();
    received.extend(printed.map(Result::unwrap));
    let status = child.wait().unwrap();
    received.retain(|line| line.starts_with(r#"{"epoch""#));
    (received, status.success())
}

#[test]
fn a_run_killed_again_and_again_is_the_uninterrupted_run() {
    let path = fixture("pusht_like");
    for (options, kills) in [
        (&["--num-workers", "0"][..], [1, 6, 2, 17]),
        (&["--num-workers", "3", "--drop-last"], [3, 1, 9, 5]),
        (
            &[
                "--num-workers",
                "2",
                "--canonical-consumers",
                "4",
                "--epoch-end",
                "drop_tail",
            ],
            [2, 8, 1, 11],
        ),
    ] {
        let workplace = Workplace::new();
        let args = [
            &[
                "stream",
                &path,
                "--seed",
                "5",
                "--batch-size",
                "8",
                "--epochs",
                "2",
            ],
            options,
        ]
        .concat();
        workplace.run(&[&args[..], &["--frames-out", "whole.jsonl"]].concat());
        let whole = lines(&workplace, "whole.jsonl");
        assert!(whole.len() > 50, "{}", whole.len());

        let to_be_killed = [
            "--frames-out",
            "/dev/stdout",
            "--save-state",
            "state.json",
            "--save-every",
            "1",
        ];
        let mut together: Vec<String> = Vec::new();
        for (nth, num_lines) in kills.into_iter().cycle().enumerate() {
            let is_saved = workplace.path("state.json").exists();
            let resume: &[&str] = if is_saved {
                &["--resume", "state.json"]
            } else {
                &[]
            };
            let (printed, is_over) = killed_after(
                &workplace,
                &[&args[..], &to_be_killed, resume].concat(),
                num_lines,
            );
            // A line is written before the state that counts it: what is beyond the state comes again.
            if !is_over && !workplace.path("state.json").exists() {
                continue;
            }
            let state = state(&workplace, "state.json");
            let consumed = state["batches_consumed"].as_u64().unwrap() as usize;
            together.extend(printed[..consumed - together.len()].iter().cloned());
            assert_eq!(together, whole[..together.len()], "after kill {nth}");
            if together.len() >= whole.len() {
                break;
            }
        }
        assert_eq!(together, whole);
        let over = workplace.run(&[&args[..], &["--resume", "state.json"]].concat());
        assert_eq!(over.status, Some(1));
        assert!(
            over.stderr
                .contains("the run is over: the state is at the start of epoch 2"),
            "{}",
            over.stderr
        );
    }
}

#[test]
fn other_ranks_go_on_with_an_epoch() {
    let dataset = Spec::new(10, &[9, 14, 5, 11, 8, 13, 6, 20]).write();
    let path = root(&dataset);
    let workplace = Workplace::new();
    let mut frames_seen = Vec::new();
    for (rank, frames_out, saved) in [("0", "a.jsonl", "a.json"), ("1", "b.jsonl", "b.json")] {
        let args = [
            "stream",
            &path,
            "--world-size",
            "2",
            "--rank",
            rank,
            "--num-workers",
            "2",
            "--batch-size",
            "4",
            "--batches",
            "5",
        ];
        let run = workplace.run(
            &[
                &args[..],
                &["--frames-out", frames_out, "--save-state", saved],
            ]
            .concat(),
        );
        assert_eq!(run.status, Some(0), "{run:?}");
        frames_seen.extend(
            lines(&workplace, frames_out)
                .iter()
                .flat_map(|line| frames(line)),
        );
    }
    assert_eq!(frames_seen.len(), 40);
    assert_eq!(state(&workplace, "a.json"), state(&workplace, "b.json"));
    for rank in ["0", "1", "2"] {
        let args = [
            "stream",
            &path,
            "--world-size",
            "3",
            "--rank",
            rank,
            "--batch-size",
            "4",
            "--resume",
            "a.json",
            "--json",
        ];
        let run = workplace.run(&[&args[..], &["--frames-out", "c.jsonl"]].concat());
        assert_eq!(run.status, Some(0), "{run:?}");
        let summary: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(summary["coverage"]["exactly_once"], true, "{summary}");
        frames_seen.extend(
            lines(&workplace, "c.jsonl")
                .iter()
                .flat_map(|line| frames(line)),
        );
    }
    let distinct: BTreeSet<_> = frames_seen.iter().collect();
    assert_eq!((frames_seen.len(), distinct.len()), (86, 86));
}

#[test]
fn a_state_of_another_run_is_refused_unless_told_otherwise() {
    let path = fixture("no_camera");
    let workplace = Workplace::new();
    let save = [
        "stream",
        &path,
        "--batches",
        "7",
        "--save-state",
        "state.json",
        "--json",
    ];
    workplace.stdout(&save);
    let resume = [
        "stream",
        &path,
        "--resume",
        "state.json",
        "--seed",
        "3",
        "--episode-pool-size",
        "8",
        "--json",
    ];
    let run = workplace.run(&resume);
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr.contains(
            "the saved state does not fit: seed was 0 and is 3; episode_pool_size was 64 and is 8; give the run the saved values"
        ),
        "{}",
        run.stderr
    );
    let run = workplace.run(&[&resume[..], &["--no-strict"]].concat());
    assert_eq!(run.status, Some(0));
    assert!(run.stderr.contains("seed was 0 and is 3"), "{}", run.stderr);
    let summary: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(summary["coverage"]["exactly_once"], true, "{summary}");

    // A trainer's own state.
    workplace.write(
        "bare.json",
        r#"{"batches_consumed": 7, "batch_size": 16, "loss": 0.2}"#,
    );
    let bare = workplace.json(&["stream", &path, "--resume", "bare.json", "--json"]);
    let saved = workplace.json(&["stream", &path, "--resume", "state.json", "--json"]);
    assert_eq!(bare["coverage"], saved["coverage"]);
    assert_eq!(bare["samples"], saved["samples"]);
}

#[test]
fn files_that_are_no_states_are_named_with_what_is_wrong() {
    let path = fixture("no_camera");
    let workplace = Workplace::new();
    workplace.write("empty.json", "");
    workplace.write("newer.json", r#"{"version": 7}"#);
    for (file, expected) in [
        ("missing.json", "missing.json"),
        ("empty.json", "the saved state cannot be used: EOF"),
        (
            "newer.json",
            "it is of version 7, and this release reads version 1",
        ),
    ] {
        let run = workplace.run(&["stream", &path, "--resume", file]);
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(
            run.stderr.contains(expected) && run.stderr.contains(file),
            "{}",
            run.stderr
        );
    }
    // Counters that no run has come to.
    let last = u64::MAX;
    workplace.write(
        "far.json",
        &format!(r#"{{"batches_consumed": {last}, "batch_size": 16}}"#),
    );
    workplace.json(&["stream", &path, "--save-state", "begun.json", "--json"]);
    let mut state = state(&workplace, "begun.json");
    state["epoch"] = last.into();
    workplace.write("last.json", &state.to_string());
    workplace.json(&["stream", &path, "--resume", "far.json", "--json"]);
    let run = workplace.run(&["stream", &path, "--resume", "last.json", "--no-strict"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(
        run.stderr.contains("the run ends before epoch"),
        "{}",
        run.stderr
    );
    for option in ["--save-state", "--frames-out"] {
        let run = workplace.run(&["stream", &path, option, "no/such/folder/file.json"]);
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(
            run.stderr
                .contains("cannot write `no/such/folder/file.json`"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn ranks_end_an_epoch_together_on_request() {
    let dataset = Spec::new(10, &[9, 14, 5, 11, 8, 13, 6, 20]).write();
    let path = root(&dataset);
    let rank = |rank: &str, options: &[&str]| -> (Value, String) {
        let args = [
            "stream",
            &path,
            "--json",
            "--world-size",
            "3",
            "--rank",
            rank,
            "--batch-size",
            "4",
            "--epochs",
            "2",
        ];
        let run = Workplace::new().run(&[&args[..], options].concat());
        assert_eq!(run.status, Some(0), "{run:?}");
        (serde_json::from_str(&run.stdout).unwrap(), run.stderr)
    };
    let batches = |options: &[&str]| {
        ["0", "1", "2"].map(|of| rank(of, options).0["batches"].as_u64().unwrap())
    };
    assert_eq!(batches(&[]), [14, 16, 14]);
    assert_eq!(batches(&["--epoch-end", "drop_tail"]), [14; 3]);
    assert_eq!(batches(&["--epoch-end", "wrap"]), [16; 3]);
    let (summary, told) = rank("1", &["--epoch-end", "drop_tail"]);
    assert!(
        told.contains("every epoch leaves out 4 of 86 frames"),
        "{told}"
    );
    assert_eq!(summary["epoch_end"]["mode"], "drop_tail");
    assert_eq!(summary["epoch_end"]["frames_dropped"], 4);
    let (summary, told) = rank("0", &["--epoch-end", "wrap"]);
    assert!(
        told.contains("every epoch repeats 10 samples beside its 86 frames"),
        "{told}"
    );
    assert_eq!(summary["epoch_end"]["samples_repeated"], 10);

    let run = Workplace::new().run(&[
        "stream",
        &path,
        "--world-size",
        "3",
        "--rank",
        "0",
        "--canonical-consumers",
        "4",
    ]);
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr.contains(
            "cannot serve canonical_consumers 4: one of the numbers has to divide the other"
        ),
        "{}",
        run.stderr
    );
}
