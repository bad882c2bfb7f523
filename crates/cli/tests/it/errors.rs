//! What a user reads when something is wrong, and what a script sees.

use testkit::Spec;

use crate::workplace::{Workplace, fixture, root};

/// Runs the program, and checks that it fails with this status, prints no result, and says all of this.
fn check(workplace: &Workplace, args: &[&str], status: i32, messages: &[&str]) {
    let run = workplace.run(args);
    assert_eq!(
        (run.status, run.stdout.as_str()),
        (Some(status), ""),
        "{args:?}: {}",
        run.stderr
    );
    for message in messages {
        assert!(
            run.stderr.contains(message),
            "{args:?}: `{message}` in {}",
            run.stderr
        );
    }
    for noise in ["panicked", "backtrace", "Error {"] {
        assert!(!run.stderr.contains(noise), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_dataset_that_is_not_there_is_named() {
    let workplace = Workplace::new();
    for command in ["info", "stream", "plan"] {
        check(
            &workplace,
            &[command, "no/such/dataset"],
            1,
            &["error: ", "no/such/dataset"],
        );
    }
    check(
        &workplace,
        &["sample", "no/such/dataset", "--index", "0"],
        1,
        &["no/such/dataset"],
    );
    check(
        &workplace,
        &["look", "no/such/dataset", "--out", "a.png"],
        1,
        &["no/such/dataset"],
    );
}

#[test]
fn a_directory_that_is_no_dataset_is_told_from_a_dataset() {
    let workplace = Workplace::new();
    workplace.write("notes.txt", "nothing");
    check(
        &workplace,
        &["info", "."],
        1,
        &["error: cannot read the dataset", "meta/info.json"],
    );
}

#[test]
fn an_option_that_does_not_fit_the_dataset_names_what_does() {
    let workplace = Workplace::new();
    let dataset = Spec::new(10, &[3, 5, 2]).write();
    let path = root(&dataset);
    workplace.write("unknown.json", r#"{"velocity": [0.0]}"#);
    workplace.write("between.json", r#"{"action": [0.0, 0.25]}"#);
    workplace.write("text.json", r#"{"action": "now"}"#);
    workplace.write("ranges.json", r#"{"1": [[0, 6]]}"#);
    for (options, messages) in [
        (
            &["--episodes", "0,9"][..],
            &[
                "error: cannot plan the epoch",
                "episode 9",
                "3 episodes, numbered 0 to 2",
            ][..],
        ),
        (&["--exclude-episodes", "0-2"], &["no frame is selected"]),
        (
            &["--keep-ranges", "ranges.json"],
            &["keep_ranges of episode 1"],
        ),
        (
            &["--keep-ranges", "missing.json"],
            &[
                "cannot read the keep-ranges file `missing.json`",
                "because: ",
            ],
        ),
        (
            &["--delta-timestamps", "missing.json"],
            &["cannot read `missing.json`", "because: "],
        ),
        (
            &["--delta-timestamps", "text.json"],
            &["`text.json` holds no delta_timestamps", "line 1 column"],
        ),
        (
            &["--delta-timestamps", "unknown.json"],
            &["delta_timestamps do not fit the dataset", "`velocity`"],
        ),
        (
            &["--delta-timestamps", "between.json"],
            &["delta_timestamps do not fit the dataset", "0.25"],
        ),
        (&["--tolerance-s", "-1"], &["`tolerance_s` is -1"]),
        (
            &["--rank", "2", "--world-size", "2"],
            &["cannot tell which consumer this is", "rank 2"],
        ),
        (&["--worker", "3", "--num-workers", "2"], &["worker 3"]),
    ] {
        check(
            &workplace,
            &[&["plan", &path], options].concat(),
            1,
            messages,
        );
    }
}

#[test]
fn a_wrong_command_line_is_a_matter_of_its_own() {
    let workplace = Workplace::new();
    let path = fixture("no_camera");
    for (args, messages) in [
        (&[][..], &["Usage: episode-pool"][..]),
        (&["play", &path], &["unrecognized subcommand 'play'"]),
        (&["sample", &path], &["--index <INDEX>"]),
        (&["look", &path], &["--out <FILE.png>"]),
        (
            &["stream", &path, "--batch-size", "0"],
            &["'--batch-size <SAMPLES>'"],
        ),
        (
            &["stream", &path, "--batch-size", "many"],
            &["invalid value 'many'"],
        ),
        (
            &["stream", &path, "--episode-pool-size", "0"],
            &["'--episode-pool-size <EPISODES>'"],
        ),
        (
            &["stream", &path, "--episodes", "7-3"],
            &["the range `7-3` ends before it begins"],
        ),
        (
            &["stream", &path, "--frame-layout", "whc"],
            &["[possible values: hwc, chw]"],
        ),
        (&["stream", &path, "--rank", "0"], &["--world-size <RANKS>"]),
        (
            &["stream", &path, "--epoch", "1", "--resume-batches", "4"],
            &["cannot be used with"],
        ),
        (
            &["plan", &path, "--format", "xml"],
            &["[possible values: csv, json]"],
        ),
    ] {
        let run = workplace.run(args);
        assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        for message in messages {
            assert!(
                run.stderr.contains(message),
                "{args:?}: `{message}` in {}",
                run.stderr
            );
        }
    }
}

#[test]
fn a_contradictory_environment_is_named() {
    let dataset = Spec::new(10, &[3]).write();
    let path = root(&dataset);
    for (variables, message) in [
        (
            &[("RANK", "1")][..],
            "the environment sets RANK=1 but not WORLD_SIZE",
        ),
        (
            &[("RANK", "two"), ("WORLD_SIZE", "2")],
            "RANK should be a whole number, found `two`",
        ),
        (
            &[("SLURM_PROCID", "2"), ("SLURM_NTASKS", "2")],
            "SLURM_PROCID=2 and SLURM_NTASKS=2",
        ),
    ] {
        let run = Workplace::new().run_with(&["stream", &path], variables);
        assert_eq!(run.status, Some(1), "{variables:?}");
        assert!(
            run.stderr.contains(message),
            "{variables:?}: {}",
            run.stderr
        );
    }
}

#[test]
fn a_run_that_yields_nothing_is_an_error() {
    let dataset = Spec::new(10, &[3, 5]).write();
    let args = [
        "stream",
        &root(&dataset),
        "--drop-last",
        "--batch-size",
        "9",
    ];
    check(
        &Workplace::new(),
        &args,
        1,
        &["the run yielded no batch: 8 frames were left to emit, in batches of 9"],
    );
}

#[test]
fn damage_in_the_middle_of_an_epoch_names_the_file() {
    let dataset = testkit::fixtures::copy_dataset("pusht_like");
    let video = "videos/observation.image/chunk-000/file-000.mp4";
    std::fs::write(dataset.path().join(video), b"not a video").unwrap();
    let path = dataset.path().to_str().unwrap();
    check(
        &Workplace::new(),
        &["stream", path],
        1,
        &["error: cannot read camera `observation.image`", video],
    );
}
