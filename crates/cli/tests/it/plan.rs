//! `plan` prints the order of an epoch, or how well it mixes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;
use testkit::Spec;

use crate::workplace::{Workplace, fixture, root};

/// What `plan --format csv` prints; it may warn of a share that is too small.
fn csv(path: &str, options: &[&str]) -> String {
    let run = Workplace::new().run(&[&["plan", path, "--format", "csv"], options].concat());
    assert_eq!(run.status, Some(0), "{options:?}: {}", run.stderr);
    run.stdout
}

/// The rows below the heading: position, episode_index, frame_index, index.
fn rows(csv: &str) -> Vec<[usize; 4]> {
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("position,episode_index,frame_index,index")
    );
    lines
        .map(|line| {
            let numbers: Vec<usize> = line
                .split(',')
                .map(|number| number.parse().unwrap())
                .collect();
            numbers.try_into().unwrap()
        })
        .collect()
}

#[test]
fn golden_order() {
    let dataset = Spec::new(10, &[3, 5, 2]).write();
    let found = csv(
        &root(&dataset),
        &["--seed", "7", "--epoch", "2", "--episode-pool-size", "2"],
    );
    assert_eq!(found, include_str!("golden_order.csv"));
}

#[test]
fn without_shuffling_the_order_is_the_datasets() {
    let dataset = Spec::new(10, &[3, 1, 2]).write();
    let found = rows(&csv(
        &root(&dataset),
        &["--no-shuffle", "--episode-pool-size", "1"],
    ));
    let expected = [
        [0, 0, 0, 0],
        [1, 0, 1, 1],
        [2, 0, 2, 2],
        [3, 1, 0, 3],
        [4, 2, 0, 4],
        [5, 2, 1, 5],
    ];
    assert_eq!(found, expected);
}

#[test]
fn all_consumers_together_plan_every_frame_once() {
    let path = fixture("pusht_like");
    for (world_size, num_workers) in [(1, 0), (2, 3), (3, 2)] {
        let mut indices = BTreeSet::new();
        for rank in 0..world_size {
            for worker in 0..num_workers.max(1) {
                let options =
                    [rank, world_size, worker, num_workers].map(|number: usize| number.to_string());
                let [rank, world_size, worker, num_workers] =
                    options.each_ref().map(String::as_str);
                let options = [
                    &["--rank", rank, "--world-size", world_size][..],
                    &["--worker", worker, "--num-workers", num_workers],
                ];
                for (position, row) in rows(&csv(&path, &options.concat())).into_iter().enumerate()
                {
                    assert_eq!(row[0], position);
                    assert!(indices.insert(row[3]), "{row:?} came before");
                }
            }
        }
        assert_eq!(
            indices,
            (0..296).collect(),
            "{world_size} ranks, {num_workers} workers"
        );
    }
}

#[test]
fn json_tells_the_same_as_csv() {
    let dataset = Spec::new(10, &[3, 5]).write();
    let path = root(&dataset);
    let json = Workplace::new().json(&["plan", &path, "--format", "json"]);
    let names = ["position", "episode_index", "frame_index", "index"];
    let row =
        |line: &Value| names.map(|name| usize::try_from(line[name].as_u64().unwrap()).unwrap());
    let found: Vec<[usize; 4]> = json.as_array().unwrap().iter().map(row).collect();
    assert_eq!(found, rows(&csv(&path, &[])));
}

#[test]
fn mixing_is_told_for_parts_and_all() {
    let dataset = Spec::new(10, &[4, 4]).write();
    let found =
        Workplace::new().stdout(&["plan", &root(&dataset), "--no-shuffle", "--batch-size", "4"]);
    // A batch of 4 of these 8 frames lacks one of the two episodes with probability 2 / C(8, 4) = 2 / 70.
    let expected = "\
epoch 0 of rank 0 of 1, worker 0 of 1: 8 frames
in the dataset's order

Distinct episodes in a batch of 4, and how closely the order follows the dataset's
(rank correlation: 1 the same, 0 shuffled):

  part            batches  mean  fewest  correlation
  first 5 %             1  1.00       1       +1.000
  middle 5 %            1  1.00       1       +1.000
  last 5 %              1  1.00       1       +1.000
  all                   2  1.00       1       +1.000
  global shuffle        -  1.97       -            0
";
    assert_eq!(found, expected);
}

#[test]
fn a_large_pool_mixes_as_a_global_shuffle_does() {
    let found = Workplace::new().stdout(&["plan", &fixture("no_camera")]);
    let mean = |name: &str| -> f64 {
        let line = found
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap();
        line.trim_start()
            .strip_prefix(name)
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    };
    // Every episode fits into the pool, so the order is a global shuffle; the seed is fixed.
    assert!(
        (mean("all") - mean("global shuffle")).abs() < 0.2,
        "{found}"
    );
}

#[test]
fn a_reader_may_stop_early() {
    // More than a pipe holds.
    let dataset = Spec::new(10, &[5000, 5000]).write();
    let mut program = Workplace::new()
        .command(&["plan", &root(&dataset), "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heading = String::new();
    BufReader::new(program.stdout.take().unwrap())
        .read_line(&mut heading)
        .unwrap();
    let mut complaints = String::new();
    program
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut complaints)
        .unwrap();
    assert_eq!(
        (program.wait().unwrap().code(), complaints.as_str()),
        (Some(0), "")
    );
}

#[test]
fn a_consumer_without_frames_has_an_empty_order_and_no_statistics() {
    let dataset = Spec::new(10, &[6]).write();
    let path = root(&dataset);
    let consumer = ["--rank", "0", "--world-size", "1", "--num-workers", "2"];
    let frames = |worker| {
        rows(&csv(
            &path,
            &[&["--worker", worker], &consumer[..]].concat(),
        ))
        .len()
    };
    assert_eq!(frames("0") + frames("1"), 6);
    let empty = if frames("0") == 0 { "0" } else { "1" };
    for command in ["plan", "stream"] {
        let args = [&[command, &path, "--worker", empty], &consumer[..]].concat();
        let run = Workplace::new().run(&args);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""));
        assert!(
            run.stderr
                .contains(&format!("worker {empty} of 2 owns no ")),
            "{}",
            run.stderr
        );
    }
}
