//! Datasets behind a network, and the cache that runs share.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;

use testkit::server::{Fault, REPOSITORY, Request, Server};

use crate::workplace::Workplace;

/// How many pieces, parts and users lie in a cache.
fn left_in(cache: &Path) -> [usize; 3] {
    let root = cache.join("episode-pool-cache-v1");
    ["pieces", "parts", "users"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap().count())
}

fn is_of_video(request: &Request) -> bool {
    request.range.is_some() && request.path.contains("/videos/")
}

/// A run that is killed in the middle of fetching can do nothing about what it leaves: the next one does.
#[test]
fn what_a_killed_run_leaves_is_taken_away_by_the_next() {
    let server = Server::start(&testkit::fixtures::dataset("aloha_like"));
    let workplace = Workplace::new();
    let cache = workplace.path("cache");
    let url = server.files_url();
    let args = ["stream", &url, "--cache-dir", "cache", "--batches", "2"];
    let (sender, silent) = mpsc::sync_channel(1);
    let mut answered = 0;
    server.set_faults(move |request| {
        // Headers are smaller than pieces.
        let is_piece = |(first, last): (u64, u64)| last - first > 100_000;
        answered += usize::from(is_of_video(request) && request.range.is_some_and(is_piece));
        if answered < 3 {
            return Fault::None;
        }
        // The test may be over.
        let _ = sender.try_send(());
        Fault::Silence
    });
    let mut child = workplace.command(&args).spawn().unwrap();
    silent.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let [pieces, parts, users] = left_in(&cache);
    assert!(pieces + parts > 0 && users == 1, "{pieces} {parts} {users}");

    server.set_faults(|_| Fault::None);
    workplace.stdout(&args);
    assert_eq!(left_in(&cache), [0, 0, 0]);
}

/// Runs that share a folder fetch nothing twice, while they run and after.
#[test]
fn runs_that_share_a_cache_fetch_each_byte_once() {
    let server = Server::start(&testkit::fixtures::dataset("h264_gop30"));
    let workplace = Workplace::new();
    let url = server.files_url();
    let args = [
        "stream",
        &url,
        "--cache-dir=cache",
        "--warm-cache",
        "--fetch=files",
        "--json",
    ];
    let spawn = || {
        let mut command = workplace.command(&args);
        command.stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let children = [spawn(), spawn()];
    let together = children.map(|child| child.wait_with_output().unwrap());
    for output in &together {
        assert!(output.status.success());
    }
    let after = workplace.json(&args);
    assert_eq!(after["coverage"]["exactly_once"], true);
    assert_eq!(
        after["fetch"]["cache_hit_rate"]
            .as_f64()
            .map(|rate| rate > 0.5),
        Some(true)
    );
    let requests = server.requests();
    let ranges = requests.iter().filter(|request| is_of_video(request));
    let ranges: Vec<_> = ranges
        .map(|request| (request.path.clone(), request.range))
        .collect();
    let distinct: BTreeSet<_> = ranges.iter().collect();
    assert_eq!(ranges.len(), distinct.len(), "{ranges:?}");
}

/// A disk that fills up costs time, not samples; and the cache's limit is not needed for it.
#[test]
fn a_full_disk_is_lived_with() {
    let workplace = Workplace::new();
    let disk = workplace.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=200k", "tmpfs"])
        .arg(&disk)
        .output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: a small disk can be mounted by root alone");
        return;
    }
    let server = Server::start(&testkit::fixtures::dataset("h264_gop30"));
    let url = server.files_url();
    let run = workplace.run(&["stream", &url, "--cache-dir=disk", "--json"]);
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.unwrap().success());
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("cannot write to the cache"),
        "{}",
        run.stderr
    );
    let summary: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(summary["coverage"]["exactly_once"], true);
    assert!(summary["fetch"]["bytes_not_kept"].as_u64().unwrap() > 0);
}

/// C22: where the source lists its files, a cache that is too small for one of them is an error before anything is read.
#[test]
fn a_cache_too_small_for_an_episode_is_an_error_at_the_start() {
    let root = testkit::fixtures::dataset("h264_gop30");
    let server = Server::start(&root);
    let workplace = Workplace::new();
    let url = format!("hf://datasets/{REPOSITORY}");
    let endpoint = server.endpoint();
    let run = |bytes: u64| {
        let bytes = bytes.to_string();
        let args = [
            "stream",
            &url,
            "--cache-dir=cache",
            "--fetch=files",
            "--cache-bytes",
            &bytes,
        ];
        workplace.run_with(&args, &[("HF_ENDPOINT", &endpoint)])
    };
    let refused = run(1);
    assert_eq!(refused.status, Some(1));
    assert!(!server.requests().iter().any(is_of_video));
    // The message says how much it takes.
    let needed = refused
        .stderr
        .split("needs ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let needed: u64 = needed.unwrap().parse().unwrap();
    let refused = run(needed - 1);
    assert!(
        refused.status == Some(1) && refused.stderr.contains(&(needed - 1).to_string()),
        "{}",
        refused.stderr
    );
    let served = run(needed);
    assert_eq!(served.status, Some(0), "{}", served.stderr);
}

/// What is left out is told where the run is summed up, and is no failure of the run's.
#[test]
fn what_is_left_out_is_in_the_summary() {
    let server = Server::start(&testkit::fixtures::dataset("aloha_like"));
    let workplace = Workplace::new();
    let url = server.files_url();
    server.set_faults(|request| {
        if is_of_video(request) && request.path.contains("file-001") {
            Fault::Status(404, Vec::new())
        } else {
            Fault::None
        }
    });
    let strict = workplace.run(&["stream", &url, "--cache-dir=cache"]);
    assert_eq!(strict.status, Some(1));
    assert!(
        strict.stderr.contains("404") && strict.stderr.contains("file-001"),
        "{}",
        strict.stderr
    );
    let lenient = workplace.run(&[
        "stream",
        &url,
        "--cache-dir=cache",
        "--on-fetch-error=skip-episode",
    ]);
    assert_eq!(lenient.status, Some(0), "{}", lenient.stderr);
    assert!(lenient.stdout.contains("left out"), "{}", lenient.stdout);
    assert!(
        lenient.stderr.contains("is left out of this epoch"),
        "{}",
        lenient.stderr
    );
}

#[test]
fn an_index_is_made_and_found() {
    let root = testkit::fixtures::dataset("aloha_like");
    let server = Server::start(&root);
    let workplace = Workplace::new();
    let url = server.files_url();
    let made = workplace.stdout(&["index", &url, "--cache-dir=cache"]);
    assert!(
        made.starts_with("indexed ") && made.contains("episode-pool-index-v1"),
        "{made}"
    );
    let requests = |index: &[&str]| {
        let args = [&["stream", &url, "--json", "--batches=3"], index].concat();
        workplace.json(&args)["fetch"]["requests"].as_u64().unwrap()
    };
    let (with, without) = (
        requests(&["--cache-dir=cache"]),
        requests(&["--cache-dir=other"]),
    );
    assert!(with < without, "{with} {without}");
    let made = workplace.stdout(&["index", &url, "--output=here"]);
    assert!(made.ends_with("in here\n"), "{made}");
    assert_eq!(requests(&["--cache-dir=third", "--index=here"]), with);
    let local = workplace.run(&["index", root.to_str().unwrap()]);
    assert!(
        local.status == Some(1) && local.stderr.contains("directory of this machine"),
        "{}",
        local.stderr
    );
}
