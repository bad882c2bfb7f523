//! A fresh folder in which xtask runs, with stand-ins for other programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use testkit::slurm::Slurm;

/// What the outside may have set, and would decide in place of a test.
const OUTSIDE_WORLD: [&str; 30] = [
    "SOURCES",
    "MODES",
    "DECODES",
    "REPO_ID",
    "BUCKET",
    "WARM_BUCKET",
    "OUT_DIR",
    "NUM_BATCHES",
    "WARMUP_BATCHES",
    "TIME",
    "MEM",
    "GPUS",
    "CPU_WORKERS",
    "GPU_WORKERS",
    "CPU_POOL_SIZE",
    "GPU_POOL_SIZE",
    "BATCH_SIZE",
    "ACCOUNT",
    "PARTITION",
    "QOS",
    "RUN",
    "CONDA_ENV",
    "SERIAL",
    "HF_HOME",
    "SCRATCH",
    "SLURM_CONF",
    "FAKE_FAIL",
    "FAKE_KILL",
    "FAKE_EAT",
    "FAKE_MEET",
];

/// Behaves like `episode-pool bench`, in a folder named by `FAKE`, where it writes down what it does. `FAKE_FAIL`,
/// `FAKE_KILL` and `FAKE_EAT` name the job (`source mode device`) that exits with 3, is killed, or takes too much memory;
/// with `FAKE_MEET` a job goes on only once another runs.
const FAKE: &str = r#"#!/bin/sh
set -u
test "$1" = bench || exit 64
url=$2
shift 2
while [ $# -gt 0 ]; do
  case $1 in
    --source) source=$2 ;;
    --mode) mode=$2 ;;
    --decode) decode=$2 ;;
    --batch-size) batch=$2 ;;
    --num-workers) workers=$2 ;;
    --episode-pool-size) pool=$2 ;;
    --warmup-batches) warmup=$2 ;;
    --batches) batches=$2 ;;
    --out-dir) out=$2 ;;
    *) exit 64 ;;
  esac
  shift 2
done
job="$source $mode $decode"
printf '%s\n' "$job" >> "$FAKE/started"
printf '%s\n' "$url" >> "$FAKE/urls"
printf '%s\n' "${HF_HOME:-none}" >> "$FAKE/hf_home"
# Whoever finds another's folder runs beside it.
test -e "$FAKE/running" && printf '%s\n' "$job" >> "$FAKE/overlaps"
case $job in
  "${FAKE_FAIL:-}") exit 3 ;;
  "${FAKE_KILL:-}") kill -9 $$ ;;
  # tail keeps the last line, which is all there is; the sleep ends it if nobody else does.
  "${FAKE_EAT:-}") { head -c 300000000 /dev/zero; sleep 60; } | tail > /dev/null; exit 65 ;;
esac
mkdir -p "$FAKE/running"
if [ -n "${FAKE_MEET:-}" ]; then
  : > "$FAKE/here $job"
  left=300
  while [ "$(ls "$FAKE" | grep -c '^here ')" -lt 2 ]; do
    left=$((left - 1)); test $left -gt 0 || exit 66
    sleep 0.1
  done
else
  sleep 0.1
fi
frames=$((100 * batch))
cat > "$out/${source}_${mode}_b${batch}_w${workers}_${decode}.json" <<JSON
{"schema_version": 1, "source": "$source", "url": "elsewhere", "mode": "$mode", "decode_device": "$decode", "batch_size": $batch,
 "num_workers": $workers, "episode_pool_size": $pool, "started_at": "2026-01-01T00:00:00Z",
 "results": {"batches": $batches, "samples": $warmup, "frames_per_s_node": $frames, "samples_per_s": 100.5, "open_s": 0.1,
 "first_batch_latency_s": 0.25, "p50_sample_latency_ms": 1.5, "p95_sample_latency_ms": 2.5, "p99_sample_latency_ms": null,
 "peak_rss_bytes": 1073741824, "bytes_fetched": 0, "stalls": {"count": 1, "seconds": 0.5},
 "video_decoder_cache": {"hits": 1, "misses": 1, "evictions": 0, "hit_rate": 0.5}}}
JSON
if [ -z "${FAKE_MEET:-}" ]; then rmdir "$FAKE/running"; fi
"#;

pub(crate) struct Workplace {
    folder: TempDir,
    variables: Vec<(String, String)>,
    slurm_conf: Option<PathBuf>,
}

/// What a run of xtask gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) succeeded: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workplace {
    /// A folder with a stand-in for the program, `fake`, and settings that suit the small cluster.
    pub(crate) fn new() -> Self {
        let mut workplace = Self {
            folder: TempDir::new().unwrap(),
            variables: Vec::new(),
            slurm_conf: None,
        };
        workplace.program("fake", FAKE);
        fs::create_dir(workplace.path("log")).unwrap();
        let log = workplace.path("log").to_str().unwrap().to_owned();
        for (name, value) in [
            ("REPO_ID", "lerobot/pusht"),
            ("BUCKET", "s3://bucket/pusht"),
            ("WARM_BUCKET", "s3://warm/pusht"),
            ("OUT_DIR", "out"),
            ("RUN", "./fake"),
            ("MEM", "50M"),
            ("TIME", "10"),
            ("CPU_WORKERS", "2"),
            ("GPU_WORKERS", "1"),
            ("BATCH_SIZE", "2"),
            ("FAKE", &log),
        ] {
            workplace.set(name, value);
        }
        workplace
    }

    /// The same, on a cluster.
    pub(crate) fn on(slurm: &Slurm) -> Self {
        let mut workplace = Self::new();
        workplace.slurm_conf = Some(slurm.conf());
        workplace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets a variable for all runs from here on.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Writes a program into the folder, and the folders on the way.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Puts a folder before all others on the PATH.
    pub(crate) fn first_on_path(&mut self, folder: &Path) {
        let path = std::env::var("PATH").unwrap_or_default();
        self.set("PATH", &format!("{}:{path}", folder.display()));
    }

    /// A command in the folder, which knows the variables and nothing else that matters.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        for name in OUTSIDE_WORLD {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(conf) = &self.slurm_conf {
            command.env("SLURM_CONF", conf);
        }
        command
    }

    pub(crate) fn xtask(&self, args: &[&str]) -> Run {
        let mut command = self.command(env!("CARGO_BIN_EXE_xtask"));
        let Output {
            status,
            stdout,
            stderr,
        } = command.args(args).output().unwrap();
        Run {
            succeeded: status.success(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    /// The lines that the stand-in has written into one of its files; none if it did not come to that.
    pub(crate) fn log(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("log").join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The jobs in the manifest of the folder `out`.
    pub(crate) fn jobs(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.path("out/manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest["jobs"].as_array().unwrap().clone()
    }
}

impl Run {
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert!(self.succeeded, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// What it said before it failed.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert!(!self.succeeded, "{}\n{}", self.stdout, self.stderr);
        self.stderr
    }

    /// For each row of a printed table the first three columns, and the state in the last.
    pub(crate) fn states(&self) -> Vec<(String, String)> {
        let mut lines = self.stdout.lines();
        let state = lines.next().unwrap().find("state").unwrap();
        lines
            .take_while(|line| !line.is_empty())
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().take(3).collect();
                (words.join(" "), line[state..].to_owned())
            })
            .collect()
    }
}
