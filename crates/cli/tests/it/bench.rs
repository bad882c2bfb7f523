//! `episode-pool bench`: one mode, one JSON and one CSV file.

use serde_json::Value;
use testkit::Spec;

use crate::workplace::{Workplace, fixture, root};

fn read(workplace: &Workplace, name: &str) -> String {
    std::fs::read_to_string(workplace.path(name)).unwrap()
}

#[test]
fn a_run_is_one_json_and_one_row_that_say_the_same() {
    let workplace = Workplace::new();
    let dataset = fixture("hevc_small");
    let printed = workplace.stdout(&[
        "bench",
        &dataset,
        "--source",
        "hub-1",
        "--mode",
        "sarm",
        "--batch-size",
        "4",
        "--num-workers",
        "2",
        "--warmup-batches",
        "3",
        "--batches",
        "50",
        "--episode-pool-size",
        "3",
        "--out-dir",
        "made/here",
    ]);
    assert!(printed.contains("camera frames/s"), "{printed}");
    let stem = "made/here/hub-1_sarm_b4_w2_cpu";
    let json: Value = serde_json::from_str(&read(&workplace, &format!("{stem}.json"))).unwrap();
    let results = &json["results"];
    let number = |name: &str| {
        results[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name} in {results}"))
    };
    // More than the dataset's 128 frames: further epochs follow, and the last batch of each worker may be short.
    assert_eq!(results["batches"], 50);
    assert!(
        number("epochs_begun") > 1.0 && number("samples") > 128.0 && number("samples") <= 200.0
    );
    // One camera, eight frames.
    assert_eq!(
        results["camera_frames"].as_u64(),
        results["samples"].as_u64().map(|samples| samples * 8)
    );
    let ratio = number("frames_per_s_node") / number("samples_per_s");
    assert!((ratio - 8.0).abs() < 1e-6, "{ratio}");
    assert!(
        (number("samples") / number("wallclock_s") / number("samples_per_s") - 1.0).abs() < 1e-9
    );
    assert!(number("p50_sample_latency_ms") <= number("p99_sample_latency_ms"));
    assert_eq!(
        json["config"]["delta_timestamps"]["observation.images.front"]
            .as_array()
            .map(Vec::len),
        Some(8)
    );
    assert_eq!(json["config"]["warmup_batches"], 3);
    assert_eq!(json["versions"]["episode_pool"], env!("CARGO_PKG_VERSION"));
    assert!(json["host"]["cores"].as_u64() > Some(0), "{json}");

    let csv = read(&workplace, &format!("{stem}.csv"));
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let [names, values] = &lines[..] else {
        panic!("{csv}")
    };
    let cell = |name: &str| values[names.iter().position(|found| *found == name).unwrap()];
    assert_eq!(
        (cell("source"), cell("mode"), cell("decode_device")),
        ("hub-1", "sarm", "cpu")
    );
    for name in [
        "samples",
        "samples_per_s",
        "wallclock_s",
        "first_batch_latency_s",
        "peak_rss_bytes",
    ] {
        assert_eq!(cell(name), results[name].to_string(), "{name}");
    }
}

#[test]
fn what_yields_no_frame_fails_and_writes_nothing() {
    let workplace = Workplace::new();
    let no_camera = fixture("no_camera");
    let no_frames = Spec::new(10, &[]).write();
    let hevc = fixture("hevc_small");
    for (args, message) in [
        (&["bench", no_camera.as_str()][..], "has no camera"),
        (&["bench", &root(&no_frames)], "no"),
        (&["bench", &hevc, "--decode", "cuda"], "--decode cpu"),
        (&["bench", "no/such/dataset"], "no/such/dataset"),
    ] {
        let run = workplace.run(args);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
    let ranks = [("RANK", "1"), ("WORLD_SIZE", "2")];
    let run = workplace.run_with(&["bench", &hevc], &ranks);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("rank 1 of 2"), "{}", run.stderr);
    let left = std::fs::read_dir(workplace.path(".")).unwrap().count();
    assert_eq!(left, 0);

    let run = workplace.run(&["bench", &hevc, "--source", "../out"]);
    assert_eq!(run.status, Some(2), "{}", run.stderr);
}
