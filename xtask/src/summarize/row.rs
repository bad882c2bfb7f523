//! One job: what it was to be, what became of it, and its numbers.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;

use crate::Result;
use crate::bench_matrix::manifest::{Entry, Manifest};

use super::slurm::States;

/// The form of the results that this reads.
const SCHEMA_VERSION: u64 = 1;
/// Why a job died stands at the end of its log.
const LOG_END_BYTES: u64 = 64 * 1024;
/// What the shell says of a program that was killed by signal 9: for memory, usually.
const KILLED: i64 = 137;

/// One row of every table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) stem: String,
    pub(super) source: String,
    pub(super) mode: String,
    pub(super) device: String,
    pub(super) batch_size: Option<u64>,
    pub(super) num_workers: Option<u64>,
    pub(super) state: String,
    /// Only of a job that is [`ok`](Self::is_ok).
    pub(super) numbers: Option<Numbers>,
}

/// What is compared. What the program could not measure is not there.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Numbers {
    pub(super) frames_per_s_node: Option<f64>,
    pub(super) samples_per_s: Option<f64>,
    pub(super) open_s: Option<f64>,
    pub(super) first_batch_latency_s: Option<f64>,
    pub(super) p50_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) peak_rss_bytes: Option<f64>,
    pub(super) bytes_fetched: Option<f64>,
    pub(super) stalls: Option<f64>,
    pub(super) stall_s: Option<f64>,
    pub(super) hit_rate: Option<f64>,
}

impl Row {
    pub(super) fn is_ok(&self) -> bool {
        self.numbers.is_some()
    }

    pub(super) fn frames_per_s(&self) -> Option<f64> {
        self.numbers.as_ref()?.frames_per_s_node
    }

    /// `met` or `missed`, where there is a target and a number.
    pub(super) fn verdict(&self) -> Option<&'static str> {
        let frames = self.frames_per_s()?;
        let target = super::target(&self.mode)?;
        Some(if frames >= target { "met" } else { "missed" })
    }

    /// Sources in the order of the matrix, then others by name; within one by mode, device and size.
    fn order(&self) -> impl Ord + use<> {
        let rank = |known: &[&str], name: &str| {
            let position = known.iter().position(|known| *known == name);
            (position.unwrap_or(known.len()), name.to_owned())
        };
        (
            rank(&["hub", "bucket", "warmed_bucket"], &self.source),
            rank(&["single", "sarm"], &self.mode),
            rank(&["cpu", "cuda"], &self.device),
            (self.batch_size, self.num_workers, self.stem.clone()),
        )
    }
}

/// All rows of a folder, sorted. `ask` tells the states that SLURM knows of.
pub(super) fn read(folder: &Path, ask: impl Fn(&[Entry]) -> States) -> Result<Vec<Row>> {
    // A list that cannot be read is no reason to hide the results.
    let manifest = Manifest::open(folder);
    let damage = manifest.as_ref().err().cloned();
    let jobs = manifest.unwrap_or_default().jobs;
    let states = ask(&jobs);

    let mut rows: Vec<Row> = jobs
        .iter()
        .map(|job| planned(folder, job, &states))
        .collect();
    let known: BTreeSet<&str> = jobs.iter().map(|job| job.stem.as_str()).collect();
    for stem in stems(folder)? {
        if !known.contains(stem.as_str()) {
            rows.push(found(folder, &stem));
        }
    }
    if let Some(state) = damage {
        rows.push(Row {
            state: format!("damaged: {state}"),
            ..of_stem("manifest")
        });
    }
    if rows.is_empty() {
        return Err(format!(
            "{}: no results, and no list of jobs (`cargo xtask bench-matrix` writes both)",
            folder.display()
        ));
    }
    rows.sort_by_cached_key(Row::order);
    Ok(rows)
}

/// A job of the list.
fn planned(folder: &Path, job: &Entry, states: &States) -> Row {
    let row = Row {
        stem: job.stem.clone(),
        source: job.source.clone(),
        mode: job.mode.clone(),
        device: job.device.clone(),
        batch_size: Some(job.batch_size),
        num_workers: Some(job.num_workers),
        state: String::new(),
        numbers: None,
    };
    if let Some(error) = &job.error {
        let state = format!("not submitted: {}", one_line(error));
        return Row { state, ..row };
    }
    let known = job.id.as_ref().and_then(|id| {
        let (state, reason) = states.get(&id.job)?;
        Some((state.as_str(), reason.as_str()))
    });
    let out_of_memory = || says_out_of_memory(folder, &job.stem);
    let record = exit_record(folder, &job.stem);
    let id = job.id.as_ref().map(ToString::to_string);
    let id = id.unwrap_or_default();
    let state = match (known, record) {
        // The file says what it is; nothing else would know better.
        (_, Some(Err(fault))) => format!("damaged: {fault}"),
        (Some(("OUT_OF_MEMORY", _)), _) => "out of memory".to_owned(),
        (Some(("TIMEOUT", _)), _) => "stopped at its time limit".to_owned(),
        (Some(("PENDING", "DependencyNeverSatisfied")), _) => {
            "waits for ever: DependencyNeverSatisfied".to_owned()
        }
        (Some(("PENDING", reason)), _) => format!("waits ({reason})"),
        (Some(("RUNNING" | "CONFIGURING" | "COMPLETING" | "SUSPENDED", _)), None) => {
            "runs".to_owned()
        }
        (Some(("CANCELLED", _)), _) => "cancelled".to_owned(),
        (_, Some(Ok(0))) => return with_result(folder, row),
        (_, Some(Ok(status))) => ended(status, out_of_memory()),
        // Results may have been copied without the records. What an earlier run left was set aside, so this is the job's own.
        (None | Some(("COMPLETED", _)), None)
            if folder.join(format!("{}.json", job.stem)).exists() =>
        {
            return with_result(folder, row);
        }
        (Some(("COMPLETED", _)), None) => {
            format!(
                "job {id} ended, and left no exit record: is the folder on the nodes' file system, too?"
            )
        }
        (Some((state, _)), None) if out_of_memory() => {
            format!("out of memory (the whole job: {state})")
        }
        (Some((state, _)), None) => format!("{} as a whole, no exit record", state.to_lowercase()),
        (None, None) if out_of_memory() => "out of memory (the whole job)".to_owned(),
        (None, None) => format!("missing: no exit record, and SLURM knows nothing of job {id}"),
    };
    Row { state, ..row }
}

/// A result that no list tells of.
fn found(folder: &Path, stem: &str) -> Row {
    let row = of_stem(stem);
    match exit_record(folder, stem) {
        None | Some(Ok(0)) => with_result(folder, row),
        Some(Ok(status)) => Row {
            state: ended(status, says_out_of_memory(folder, stem)),
            ..row
        },
        Some(Err(fault)) => Row {
            state: format!("damaged: {fault}"),
            ..row
        },
    }
}

fn ended(status: i64, out_of_memory: bool) -> String {
    match status {
        KILLED if out_of_memory => "out of memory".to_owned(),
        status if out_of_memory => format!("out of memory (exit {status})"),
        KILLED => format!("killed (exit {KILLED})"),
        status => format!("failed (exit {status})"),
    }
}

/// The row with its result, or with what is wrong with that.
fn with_result(folder: &Path, row: Row) -> Row {
    let path = folder.join(format!("{}.json", row.stem));
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let state = "exit 0, but no result".to_owned();
            return Row { state, ..row };
        }
        Err(error) => {
            let state = format!("damaged: {error}");
            return Row { state, ..row };
        }
    };
    match parse(&text) {
        Ok((value, numbers)) => {
            let text = |name: &str, otherwise: String| {
                value[name].as_str().map_or(otherwise, str::to_owned)
            };
            Row {
                source: text("source", row.source),
                mode: text("mode", row.mode),
                device: text("decode_device", row.device),
                batch_size: value["batch_size"].as_u64().or(row.batch_size),
                num_workers: value["num_workers"].as_u64().or(row.num_workers),
                state: "ok".to_owned(),
                numbers: Some(numbers),
                stem: row.stem,
            }
        }
        Err(fault) => Row {
            state: format!("damaged: {fault}"),
            ..row
        },
    }
}

fn parse(text: &[u8]) -> std::result::Result<(Value, Numbers), String> {
    if text.is_empty() {
        return Err("the file is empty".to_owned());
    }
    let value: Value =
        serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
    let Some(results) = value["results"].as_object() else {
        return Err("no member `results`".to_owned());
    };
    if value["schema_version"] != SCHEMA_VERSION {
        return Err(format!(
            "schema_version is {}, and {SCHEMA_VERSION} is what this program reads",
            value["schema_version"]
        ));
    }
    let number = |path: &[&str]| -> std::result::Result<Option<f64>, String> {
        let mut found = results.get(path[0]).unwrap_or(&Value::Null);
        for name in &path[1..] {
            found = &found[name];
        }
        match found {
            Value::Null => Ok(None),
            Value::Number(number) => Ok(number.as_f64()),
            other => Err(format!("results.{} is {other}, no number", path.join("."))),
        }
    };
    let numbers = Numbers {
        frames_per_s_node: number(&["frames_per_s_node"])?,
        samples_per_s: number(&["samples_per_s"])?,
        open_s: number(&["open_s"])?,
        first_batch_latency_s: number(&["first_batch_latency_s"])?,
        p50_ms: number(&["p50_sample_latency_ms"])?,
        p95_ms: number(&["p95_sample_latency_ms"])?,
        p99_ms: number(&["p99_sample_latency_ms"])?,
        peak_rss_bytes: number(&["peak_rss_bytes"])?,
        bytes_fetched: number(&["bytes_fetched"])?,
        stalls: number(&["stalls", "count"])?,
        stall_s: number(&["stalls", "seconds"])?,
        hit_rate: number(&["video_decoder_cache", "hit_rate"])?,
    };
    if numbers.frames_per_s_node.is_none() {
        return Err("results.frames_per_s_node is missing".to_owned());
    }
    Ok((value, numbers))
}

/// The names of what lies in a folder, without the endings of results and of exit records.
fn stems(folder: &Path) -> Result<BTreeSet<String>> {
    let fault = |error| format!("{}: {error}", folder.display());
    let mut stems = BTreeSet::new();
    for entry in folder.read_dir().map_err(fault)? {
        let name = entry.map_err(fault)?.file_name();
        let name = name.to_string_lossy();
        let stem = name
            .strip_suffix(".json")
            .or_else(|| name.strip_suffix(".exit"));
        if let Some(stem) = stem
            && stem != "manifest"
        {
            stems.insert(stem.to_owned());
        }
    }
    Ok(stems)
}

/// What a name like `warmed_bucket_sarm_b32_w8_cuda` tells, read from its end: a source may hold `_`.
fn of_stem(stem: &str) -> Row {
    let mut row = Row {
        stem: stem.to_owned(),
        source: stem.to_owned(),
        mode: String::new(),
        device: String::new(),
        batch_size: None,
        num_workers: None,
        state: String::new(),
        numbers: None,
    };
    let parts: Vec<&str> = stem.rsplitn(5, '_').collect();
    if let [device, workers, batch, mode, source] = parts.as_slice()
        && let Some(Ok(num_workers)) = workers.strip_prefix('w').map(str::parse)
        && let Some(Ok(batch_size)) = batch.strip_prefix('b').map(str::parse)
    {
        row.source = (*source).to_owned();
        row.mode = (*mode).to_owned();
        row.device = (*device).to_owned();
        row.batch_size = Some(batch_size);
        row.num_workers = Some(num_workers);
    }
    row
}

/// The exit status that a job's shell wrote down.
fn exit_record(folder: &Path, stem: &str) -> Option<std::result::Result<i64, String>> {
    match fs::read_to_string(folder.join(format!("{stem}.exit"))) {
        Ok(text) => {
            let status = text.trim().parse().ok();
            Some(
                status
                    .ok_or_else(|| format!("the exit record is {:?}, no number", one_line(&text))),
            )
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Err(format!("the exit record: {error}"))),
    }
}

/// Whether a log ends with the kernel's, SLURM's, CUDA's or Rust's words for it.
fn says_out_of_memory(folder: &Path, stem: &str) -> bool {
    let end = || -> std::io::Result<String> {
        let mut file = File::open(folder.join(format!("{stem}.log")))?;
        let start = file.metadata()?.len().saturating_sub(LOG_END_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(LOG_END_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).to_lowercase())
    };
    // No log, no words.
    let end = end().unwrap_or_default();
    [
        "oom_kill",
        "oom-kill",
        "oom killed",
        "out of memory",
        "out_of_memory",
        "exceeded memory limit",
        "exceeded job memory limit",
        "memory allocation of",
    ]
    .iter()
    .any(|words| end.contains(words))
}

/// The first lines of what may be long, on one line.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(160).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bench_matrix::manifest::Entry;
    use tempfile::TempDir;

    const GOOD: &str = r#"{"schema_version": 1, "source": "hub", "mode": "single", "decode_device": "cpu", "batch_size": 2,
        "num_workers": 1, "results": {"frames_per_s_node": 130.5, "peak_rss_bytes": null, "stalls": {"count": 2, "seconds": 0.5}}}"#;

    pub(in super::super) fn row(stem: &str, frames: Option<f64>) -> Row {
        let numbers = frames.map(|frames| Numbers {
            frames_per_s_node: Some(frames),
            ..Numbers::default()
        });
        let state = if frames.is_some() {
            "ok"
        } else {
            "failed (exit 3)"
        };
        Row {
            state: state.to_owned(),
            numbers,
            ..of_stem(stem)
        }
    }

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    /// What a job in the list comes to, with these files and what SLURM says of it.
    fn state(
        slurm: Option<(&str, &str)>,
        exit: Option<&str>,
        json: Option<&str>,
        log: &str,
    ) -> String {
        let folder = folder(&[("hub_single_b2_w1_cpu.log", log)]);
        let put = |suffix: &str, text: Option<&str>| {
            if let Some(text) = text {
                let path = folder.path().join(format!("hub_single_b2_w1_cpu.{suffix}"));
                fs::write(path, text).unwrap();
            }
        };
        put("exit", exit);
        put("json", json);
        let job = Entry::example("hub_single_b2_w1_cpu", "7");
        let states = slurm.map(|(state, why)| ("7".to_owned(), (state.to_owned(), why.to_owned())));
        planned(folder.path(), &job, &states.into_iter().collect()).state
    }

    #[test]
    fn every_end_of_a_job_has_a_name() {
        let slurmstepd = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.";
        for (slurm, exit, json, log, expected) in [
            (
                Some(("COMPLETED", "None")),
                Some("0\n"),
                Some(GOOD),
                "",
                "ok",
            ),
            (None, Some("0\n"), Some(GOOD), "", "ok"),
            (None, Some("0"), None, "", "exit 0, but no result"),
            (None, Some("3"), Some(GOOD), "", "failed (exit 3)"),
            (None, Some("137"), None, "", "killed (exit 137)"),
            (None, Some("137"), None, slurmstepd, "out of memory"),
            (Some(("OUT_OF_MEMORY", "")), None, None, "", "out of memory"),
            (
                Some(("OUT_OF_MEMORY", "")),
                Some("1"),
                None,
                "",
                "out of memory",
            ),
            (
                Some(("FAILED", "x")),
                None,
                None,
                slurmstepd,
                "out of memory (the whole job: FAILED)",
            ),
            (
                None,
                Some("1"),
                None,
                "CUDA_ERROR_OUT_OF_MEMORY",
                "out of memory (exit 1)",
            ),
            (
                Some(("PENDING", "Dependency")),
                None,
                None,
                "",
                "waits (Dependency)",
            ),
            (Some(("RUNNING", "None")), None, None, "", "runs"),
            (
                Some(("TIMEOUT", "TimeLimit")),
                Some("143"),
                None,
                "",
                "stopped at its time limit",
            ),
            (
                Some(("NODE_FAIL", "None")),
                None,
                None,
                "",
                "node_fail as a whole, no exit record",
            ),
            (
                None,
                None,
                None,
                "",
                "missing: no exit record, and SLURM knows nothing of job 7",
            ),
            (
                None,
                Some(""),
                None,
                "",
                "damaged: the exit record is \"\", no number",
            ),
        ] {
            assert_eq!(
                state(slurm, exit, json, log),
                expected,
                "{slurm:?} {exit:?}"
            );
        }
    }

    #[test]
    fn damaged_results_are_rows_that_say_so() {
        let folder = folder(&[
            ("hub_single_b2_w1_cpu.json", GOOD),
            ("hub_sarm_b2_w1_cpu.json", "{\"results\": "),
            ("bucket_single_b2_w1_cpu.json", ""),
            ("bucket_sarm_b2_w1_cpu.json", "[]"),
            (
                "a_single_b2_w1_cpu.json",
                r#"{"schema_version": 2, "results": {}}"#,
            ),
            (
                "b_single_b2_w1_cpu.json",
                r#"{"schema_version": 1, "results": {"frames_per_s_node": "fast"}}"#,
            ),
            (
                "c_single_b2_w1_cpu.json",
                r#"{"schema_version": 1, "results": {}}"#,
            ),
            ("d_single_b2_w1_cpu.exit", "137\n"),
            ("manifest.json", "no"),
        ]);
        let rows = read(folder.path(), |_| States::new()).unwrap();
        let shown: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {}: {}", row.source, row.mode, row.state))
            .collect();
        let starts = [
            "hub single: ok",
            "hub sarm: damaged: not JSON: ",
            "bucket single: damaged: the file is empty",
            "bucket sarm: damaged: no member `results`",
            "a single: damaged: schema_version is 2",
            "b single: damaged: results.frames_per_s_node is \"fast\", no number",
            "c single: damaged: results.frames_per_s_node is missing",
            "d single: killed (exit 137)",
            "manifest : damaged: ",
        ];
        assert_eq!(shown.len(), starts.len(), "{shown:#?}");
        for (shown, start) in shown.iter().zip(starts) {
            assert!(shown.starts_with(start), "{shown}");
        }
        let numbers = rows[0].numbers.clone().unwrap();
        assert_eq!(numbers.frames_per_s_node, Some(130.5));
        assert_eq!((numbers.peak_rss_bytes, numbers.stalls), (None, Some(2.0)));
        assert_eq!(rows[0].verdict(), Some("met"));
    }

    #[test]
    fn an_empty_folder_is_an_error_and_a_missing_one_too() {
        let folder = folder(&[]);
        assert!(
            read(folder.path(), |_| States::new())
                .unwrap_err()
                .contains("no results")
        );
        assert!(read(&folder.path().join("gone"), |_| States::new()).is_err());
    }

    #[test]
    fn sources_come_in_the_matrix_s_order() {
        let mut rows: Vec<Row> = [
            "zoo_sarm_b2_w1_cpu",
            "warmed_bucket_single_b2_w1_cuda",
            "bucket_sarm_b2_w1_cpu",
            "bucket_single_b10_w1_cpu",
            "bucket_single_b2_w1_cpu",
            "hub_sarm_b2_w1_cuda",
            "hub_sarm_b2_w1_cpu",
            "odd",
        ]
        .map(of_stem)
        .to_vec();
        rows.sort_by_cached_key(Row::order);
        let stems: Vec<&str> = rows.iter().map(|row| row.stem.as_str()).collect();
        assert_eq!(
            stems,
            [
                "hub_sarm_b2_w1_cpu",
                "hub_sarm_b2_w1_cuda",
                "bucket_single_b2_w1_cpu",
                "bucket_single_b10_w1_cpu",
                "bucket_sarm_b2_w1_cpu",
                "warmed_bucket_single_b2_w1_cuda",
                "odd",
                "zoo_sarm_b2_w1_cpu",
            ]
        );
    }

    #[test]
    fn a_listed_job_keeps_its_row_when_nothing_else_is_left_of_it() {
        let states: BTreeMap<_, _> = States::new();
        let mut job = Entry::example("hub_single_b2_w1_cpu", "7");
        job.id = None;
        job.error = Some("sbatch: error: Batch job\nsubmission failed".to_owned());
        let row = planned(Path::new("nowhere"), &job, &states);
        assert_eq!(
            row.state,
            "not submitted: sbatch: error: Batch job submission failed"
        );
    }
}
