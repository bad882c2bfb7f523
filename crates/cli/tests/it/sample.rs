//! `sample` gives what lerobot's own reader gives: values exactly, frames within what decoders differ by.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{FIXTURES, Truth, TruthItem, read_png};

use crate::workplace::{Workplace, fixture};

#[test]
fn plain_items_are_those_of_lerobots_reader() {
    for name in FIXTURES {
        let workplace = Workplace::new();
        let truth = Truth::read(name);
        check(&workplace, name, &truth.plain, "plain", &[]);
    }
}

#[test]
fn windowed_items_are_those_of_lerobots_reader() {
    for name in FIXTURES {
        let workplace = Workplace::new();
        let truth = Truth::read(name);
        workplace.write("deltas.json", &json!(truth.delta_timestamps).to_string());
        check(
            &workplace,
            name,
            &truth.windowed,
            "windowed",
            &["--delta-timestamps", "deltas.json"],
        );
    }
}

/// Asks for all of the items in one run, and compares values and pictures.
fn check(workplace: &Workplace, name: &str, truth: &[TruthItem], prefix: &str, options: &[&str]) {
    let indices: Vec<String> = truth
        .iter()
        .map(|item| format!("--index={}", item.dataset_index))
        .collect();
    let path = fixture(name);
    let mut args = vec!["sample", &path, "--frames", "frames"];
    args.extend(options);
    args.extend(indices.iter().map(String::as_str));
    let found = workplace.json(&args);

    let found = found.as_array().unwrap();
    assert_eq!(found.len(), truth.len(), "{name}");
    for (found, truth) in found.iter().zip(truth) {
        assert_eq!(found["dataset_index"], truth.dataset_index, "{name}");
        assert_item(
            &found["item"],
            &Value::Object(truth.item.clone()),
            name,
            truth.dataset_index,
        );
    }

    let mut compared = 0;
    for picture in files(&testkit::fixtures::fixtures().join(name).join("frames")) {
        if picture.starts_with(prefix) {
            assert_frames_match(
                &workplace.path("frames").join(&picture),
                &testkit::fixtures::fixtures()
                    .join(name)
                    .join("frames")
                    .join(&picture),
            );
            compared += 1;
        }
    }
    assert_eq!(
        compared > 0,
        name != "no_camera",
        "{name}: {compared} pictures"
    );
}

fn assert_item(found: &Value, truth: &Value, name: &str, dataset_index: usize) {
    let keys = |item: &Value| {
        item.as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(found), keys(truth), "{name}, {dataset_index}");
    for key in keys(truth) {
        assert_eq!(found[&key], truth[&key], "{name}, {dataset_index}: {key}");
    }
}

/// Decoders may round colours differently: a mean difference of 1 level, and nowhere more than 4.
fn assert_frames_match(found: &Path, truth: &Path) {
    let (found, stored) = (read_png(found), read_png(truth));
    assert_eq!(
        (found.height, found.width),
        (stored.height, stored.width),
        "{}",
        truth.display()
    );
    let differences = found
        .pixels
        .iter()
        .zip(&stored.pixels)
        .map(|(found, truth)| found.abs_diff(*truth));
    let (sum, max) = differences.fold((0_u64, 0), |(sum, max), d| (sum + u64::from(d), max.max(d)));
    let mean = sum as f64 / stored.pixels.len() as f64;
    assert!(
        mean <= 1.0 && max <= 4,
        "{}: mean {mean}, max {max}",
        truth.display()
    );
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn pictures_are_named_by_item_camera_and_delta() {
    let workplace = Workplace::new();
    workplace.write("deltas.json", r#"{"observation.images.front": [0.0, 0.1]}"#);
    let path = fixture("h264_gop30");
    workplace.stdout(&[
        "sample",
        &path,
        "--index",
        "7",
        "--delta-timestamps",
        "deltas.json",
        "--frames",
        "a/new/folder",
    ]);
    assert_eq!(
        files(&workplace.path("a/new/folder")),
        [
            "plain_7_observation.images.wrist.png",
            "windowed_7_observation.images.front_0.png",
            "windowed_7_observation.images.front_1.png",
        ]
    );
}

#[test]
fn items_come_in_the_order_asked_for_one_a_line() {
    let text = Workplace::new().stdout(&[
        "sample",
        &fixture("no_camera"),
        "--index",
        "5",
        "--index",
        "2",
        "--index",
        "5",
    ]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[4]), (5, "[", "]"));
    for (line, index) in lines[1..4].iter().zip([5, 2, 5]) {
        assert!(
            line.starts_with(&format!(
                "{{\"dataset_index\":{index},\"item\":{{\"observation.state\":["
            )),
            "{line}"
        );
    }
}

#[test]
fn nothing_is_printed_when_one_item_fails() {
    let run = Workplace::new().run(&[
        "sample",
        &fixture("no_camera"),
        "--index",
        "0",
        "--index",
        "99999999",
    ]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""));
    assert!(
        run.stderr.contains("frame 99999999 is not in the dataset"),
        "{}",
        run.stderr
    );
}
