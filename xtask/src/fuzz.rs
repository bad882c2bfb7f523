//! `cargo xtask fuzz`: every target of fuzz/, on the stable toolchain.
//!
//! The folder has cargo-fuzz's layout, but one cargo command with its flags does the same without installing it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::flags::Fuzz;
use crate::setup::Purpose;
use crate::{Result, setup, sh};

/// How long a target runs when nothing is said.
const DEFAULT_SECONDS: u32 = 10;

/// One input may take this long, and the process may hold this much, before it counts as a find.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=2048"];

/// What a run came to, in place of a line for each new input.
const SUMMARY: [&str; 3] = ["-verbosity=0", "-print_funcs=0", "-print_final_stats=1"];

/// Coverage counters and comparisons for libFuzzer, and AddressSanitizer; cargo-fuzz passes the same.
const RUSTFLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Zsanitizer=address --cfg fuzzing";

/// A seed longer than this slows a target more than it teaches it.
const MAX_SEED_BYTES: usize = 300_000;

pub(crate) fn run(flags: &Fuzz) -> Result {
    let seconds = flags.seconds.unwrap_or(DEFAULT_SECONDS);
    let features = if flags.arrow2 { "arrow2" } else { "" };
    fuzz(&flags.target, seconds, ("release", features), &[])
}

/// A short run for a check: quick to build, and seeded, so that the same code meets the same inputs.
pub(crate) fn smoke(seconds: u32) -> Result {
    fuzz(&[], seconds, ("smoke", ""), &["-seed=1"])
}

fn fuzz(
    only: &[String],
    seconds: u32,
    (profile, features): (&str, &str),
    options: &[&str],
) -> Result {
    let known = targets()?;
    if let Some(stranger) = only.iter().find(|name| !known.contains(name)) {
        return Err(format!(
            "there is no fuzz target `{stranger}`; there are {}",
            known.join(", ")
        ));
    }
    setup::ensure(Purpose::Fuzz)?;
    let programs = build(profile, features)?;

    for target in known
        .iter()
        .filter(|name| only.is_empty() || only.contains(name))
    {
        let corpus = Path::new("fuzz/corpus").join(target);
        let artifacts = Path::new("fuzz/artifacts").join(target);
        write_seeds(target, &corpus)?;
        create(&artifacts)?;

        let mut program = Command::new(programs.join(target));
        program
            .arg(&corpus)
            .arg(format!("-artifact_prefix={}/", artifacts.display()));
        program.arg(format!("-max_total_time={seconds}"));
        program.args(LIMITS).args(SUMMARY).args(options);
        sh::run(&mut program).map_err(|error| {
            let folder = artifacts.display();
            format!("{error}\nThe input is in {folder}; give it to the program above in place of the corpus to see it again")
        })?;
    }
    Ok(())
}

/// The names of the targets, sorted.
fn targets() -> Result<Vec<String>> {
    let mut names: Vec<String> = files_under(Path::new("fuzz/fuzz_targets"))?
        .iter()
        .filter_map(|path| path.file_stem())
        .map(|stem| stem.to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Builds all targets in a profile of fuzz/Cargo.toml and with features of it, and returns the folder of their programs.
fn build(profile: &str, features: &str) -> Result<PathBuf> {
    let target_dir = sh::target_dir().join("fuzz");
    let versions = sh::read("rustc", &["-vV"]).ok_or("cannot run rustc")?;
    let host = versions
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("`rustc -vV` names no host")?;

    // A target that is named keeps the flags away from build scripts and procedural macros.
    let mut build = sh::cargo("build --manifest-path fuzz/Cargo.toml --bins");
    build
        .args(["--profile", profile, "--features", features])
        .args(["--target", host, "--target-dir"])
        .arg(&target_dir);
    build.env("RUSTFLAGS", RUSTFLAGS);
    // Lets the stable compiler take `-Z` flags.
    build.env("RUSTC_BOOTSTRAP", "1");
    sh::run(&mut build)?;
    Ok(target_dir.join(host).join(profile))
}

/// The fixtures that seed every target.
const FIXTURES: [&str; 6] = [
    "aloha_like",
    "h264_gop30",
    "hevc_small",
    "image_only",
    "no_camera",
    "pusht_like",
];

/// The fixtures whose metadata `dataset_rows` knows, by their position in `fuzz/src/tables.rs`.
const FIXTURES_OF_ROWS: [&str; 3] = ["no_camera", "image_only", "pusht_like"];

/// Fills a target's corpus from the fixtures, in the form that fuzz/README.md gives for it.
fn write_seeds(target: &str, corpus: &Path) -> Result {
    create(corpus)?;
    for fixture in FIXTURES {
        for (name, bytes) in seeds(target, fixture)? {
            if bytes.len() <= MAX_SEED_BYTES {
                let path = corpus.join(name);
                fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// A target's seeds from one fixture, with their file names.
fn seeds(target: &str, fixture: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = Path::new("fixtures").join(fixture);
    let dataset = folder.join("dataset");
    let one = |bytes: Vec<u8>| vec![(fixture.to_owned(), bytes)];
    match target {
        "dataset_info" => Ok(one(read(&dataset.join("meta/info.json"))?)),
        "dataset_tables" => {
            let episodes = read(&dataset.join("meta/episodes/chunk-000/file-000.parquet"))?;
            let tasks = read(&dataset.join("meta/tasks.parquet"))?;
            let length = u32::try_from(episodes.len()).map_err(|error| error.to_string())?;
            Ok(one([&length.to_le_bytes()[..], &episodes, &tasks].concat()))
        }
        "dataset_rows" => {
            let Some(pick) = (0..)
                .zip(FIXTURES_OF_ROWS)
                .find(|(_, name)| *name == fixture)
            else {
                return Ok(Vec::new());
            };
            let rows = read(&dataset.join("data/chunk-000/file-000.parquet"))?;
            Ok(one([&[pick.0][..], &rows].concat()))
        }
        "packets" => {
            let videos = files_under(&dataset)?
                .into_iter()
                .filter(|path| path.extension().is_some_and(|e| e == "mp4"));
            videos
                .map(|path| Ok((path.to_string_lossy().replace('/', "-"), read(&path)?)))
                .collect()
        }
        "delta_timestamps" => windows(&folder.join("truth.json"), fixture),
        _ => Err(format!(
            "fuzz target `{target}` has no seeds yet: add them to xtask/src/fuzz.rs"
        )),
    }
}

/// The windows of a fixture's truth, one seed for each key.
fn windows(truth: &Path, fixture: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let truth_json: Value = serde_json::from_slice(&read(truth)?)
        .map_err(|error| format!("{}: {error}", truth.display()))?;
    let fps = truth_json["fps"]
        .as_f64()
        .ok_or_else(|| format!("{}: no fps", truth.display()))?;
    let keys = truth_json["delta_timestamps"]
        .as_object()
        .into_iter()
        .flatten();
    let seed = |(key, deltas): (&String, &Value)| {
        let deltas = deltas
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64);
        let numbers = [fps, 1e-4].into_iter().chain(deltas);
        (
            format!("{fixture}_{key}"),
            numbers.flat_map(f64::to_le_bytes).collect(),
        )
    };
    Ok(keys.map(seed).collect())
}

fn files_under(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files.extend(files_under(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn create(folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}
