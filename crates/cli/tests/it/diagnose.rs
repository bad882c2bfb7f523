//! `episode-pool diagnose`: one video, step by step.

use std::fs;

use serde_json::Value;
use testkit::fixtures;

use crate::workplace::{Run, Workplace, fixture};

/// The name, status and text of every step.
fn steps(run: &Run) -> Vec<(String, String, String)> {
    let json: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    let text = |step: &Value, name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let steps = json["steps"].as_array().unwrap().iter();
    steps
        .map(|step| {
            let told = text(step, "found") + " -> " + &text(step, "remedy");
            (text(step, "name"), text(step, "status"), told)
        })
        .collect()
}

#[test]
fn a_sound_video_passes_every_step() {
    let workplace = Workplace::new();
    let dataset = fixture("hevc_small");
    let run = workplace.run(&["diagnose", &dataset, "--episode", "2", "--json"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let steps = steps(&run);
    let names: Vec<_> = steps.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "bytes",
            "container",
            "stream",
            "gops",
            "decoders",
            "frames",
            "device"
        ]
    );
    assert!(
        steps.iter().all(|(_, status, _)| status != "failed"),
        "{steps:?}"
    );
    assert!(
        steps[2]
            .2
            .starts_with("hevc 160x128 yuv420p, 15 fps, 128 frames"),
        "{steps:?}"
    );
    assert!(
        steps[5].2.starts_with("of episode 2: first at"),
        "{steps:?}"
    );

    let text = workplace.stdout(&["diagnose", &dataset]);
    assert!(
        text.contains("hevc") && text.contains("episode 0"),
        "{text}"
    );
}

#[test]
fn each_failure_has_its_step_and_its_remedy() {
    let workplace = Workplace::new();
    let copy = fixtures::copy_dataset("hevc_small");
    let video = copy
        .path()
        .join("videos/observation.images.front/chunk-000/file-000.mp4");
    let sound = fs::read(&video).unwrap();
    let mdat = sound.windows(4).position(|kind| kind == b"mdat").unwrap();
    let mut holed = sound.clone();
    holed[mdat + 4..mdat + 2000].fill(0xff);
    let header_only = [&sound[..28], &sound[mdat - 4..]].concat();
    let cases: [(&[u8], &str, &str); 8] = [
        (b"", "bytes", "copy the file again"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
            "bytes",
            "git lfs pull",
        ),
        (b"<!DOCTYPE html><title>Sign in</title>", "bytes", "a login"),
        (b"{\"error\": \"gated\"}", "bytes", "a login"),
        (&[0; 4096], "bytes", "download the file again"),
        (&sound[..sound.len() - 900], "container", "was not finished"),
        (&header_only, "container", "was not finished"),
        (&holed, "frames", "copy the file again"),
    ];
    for (bytes, step, remedy) in cases {
        fs::write(&video, bytes).unwrap();
        let root = copy.path().to_str().unwrap();
        for path in [root, video.to_str().unwrap()] {
            let run = workplace.run(&["diagnose", path, "--json"]);
            assert_eq!(run.status, Some(1), "{step}: {run:?}");
            let steps = steps(&run);
            let (name, status, told) = steps.last().unwrap();
            assert_eq!(
                (name.as_str(), status.as_str()),
                (step, "failed"),
                "{steps:?}"
            );
            assert!(told.contains(remedy), "{told}");
            assert!(
                run.stderr.contains(step) && !run.stderr.contains("panicked"),
                "{}",
                run.stderr
            );
        }
    }
}

#[test]
fn what_is_not_there_is_named() {
    let workplace = Workplace::new();
    let dataset = fixture("hevc_small");
    for (args, message) in [
        (
            &["diagnose", dataset.as_str(), "--episode", "99"][..],
            "no episode 99",
        ),
        (
            &["diagnose", &dataset, "--camera", "top"],
            "observation.images.front",
        ),
        (&["diagnose", &fixture("no_camera")], "no such video"),
        (&["diagnose", "https://example.org/a.mp4"], "https"),
    ] {
        let run = workplace.run(args);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
    let run = workplace.run(&["diagnose", "no/such.mp4"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("no"), "{run:?}");
}
