//! What was asked for: by flag, else by environment variable, else by default.

use std::path::Path;

use crate::Result;
use crate::flags::BenchMatrix;

/// Where the bytes come from, in the order of every table.
pub(crate) const SOURCES: [&str; 3] = ["hub", "bucket", "warmed_bucket"];
/// What a sample is: one frame of each camera, or eight a second apart.
pub(crate) const MODES: [&str; 2] = ["single", "sarm"];
pub(crate) const DECODES: [&str; 2] = ["cpu", "cuda"];

/// All that decides what is submitted.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) sources: Vec<Source>,
    pub(super) modes: Vec<String>,
    pub(super) decodes: Vec<Decode>,
    /// Absolute.
    pub(super) out_dir: String,
    /// Where the jobs run, so that relative paths mean there what they mean here.
    pub(super) folder: String,
    pub(super) num_batches: u64,
    pub(super) warmup_batches: u64,
    pub(super) batch_size: u64,
    pub(super) time: String,
    pub(super) mem: String,
    pub(super) account: Option<String>,
    pub(super) partition: Option<String>,
    pub(super) qos: Option<String>,
    pub(super) conda_env: Option<String>,
    /// Words of a shell.
    pub(super) run: String,
    pub(super) serial: bool,
    pub(super) dry_run: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) label: String,
    pub(super) url: String,
}

/// A decode device, and what a job needs for it.
#[derive(Debug, Clone)]
pub(super) struct Decode {
    pub(super) device: String,
    pub(super) num_workers: u64,
    pub(super) episode_pool_size: u64,
    /// As `sbatch --gpus` takes it; nothing to leave it out.
    pub(super) gpus: Option<String>,
}

/// One look at flag and variable after the other, with all faults gathered.
struct Reader<L> {
    lookup: L,
    faults: Vec<String>,
}

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    /// An empty value is none: `MEM= cargo xtask bench-matrix` is the usual way to unset a variable for one command.
    fn text(&self, flag: &Option<String>, variable: &str) -> Option<String> {
        let variable = || (self.lookup)(variable);
        flag.clone()
            .or_else(variable)
            .filter(|value| !value.trim().is_empty())
    }

    fn number(&mut self, flag: &Option<String>, variable: &str, default: u64, least: u64) -> u64 {
        let Some(value) = self.text(flag, variable) else {
            return default;
        };
        match value.trim().parse() {
            Ok(number) if number >= least => number,
            _ => {
                self.faults.push(format!(
                    "{variable} is `{value}`: a whole number of at least {least} is wanted"
                ));
                default
            }
        }
    }

    /// Some of `known`, in the order of `known`; all by default.
    fn subset(&mut self, flag: &Option<String>, variable: &str, known: &[&str]) -> Vec<String> {
        let Some(value) = self.text(flag, variable) else {
            return known.iter().map(|&name| name.to_owned()).collect();
        };
        let wanted: Vec<&str> = value
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|name| !name.is_empty())
            .collect();
        for stranger in wanted.iter().filter(|name| !known.contains(name)) {
            self.faults.push(format!(
                "{variable} names `{stranger}`: known are {}",
                known.join(", ")
            ));
        }
        if wanted.is_empty() {
            self.faults
                .push(format!("{variable} is `{value}`, which names none"));
        }
        known
            .iter()
            .filter(|name| wanted.contains(name))
            .map(|&name| name.to_owned())
            .collect()
    }
}

impl Settings {
    /// `lookup` answers for environment variables; relative paths start at `invoked_in`.
    pub(super) fn new(
        flags: &BenchMatrix,
        lookup: impl Fn(&str) -> Option<String>,
        invoked_in: &Path,
    ) -> Result<Self> {
        let mut reader = Reader {
            lookup,
            faults: Vec::new(),
        };
        let sources = reader.subset(&flags.sources, "SOURCES", &SOURCES);
        let modes = reader.subset(&flags.modes, "MODES", &MODES);
        let decodes = reader.subset(&flags.decodes, "DECODES", &DECODES);

        let mut unset = Vec::new();
        let sources = sources
            .into_iter()
            .filter_map(|label| {
                let (flag, variable) = match label.as_str() {
                    "hub" => (&flags.repo_id, "REPO_ID"),
                    "bucket" => (&flags.bucket, "BUCKET"),
                    _ => (&flags.warm_bucket, "WARM_BUCKET"),
                };
                let Some(value) = reader.text(flag, variable) else {
                    unset.push(format!("{variable} (for the source {label})"));
                    return None;
                };
                let url = if label == "hub" {
                    hub_url(value)
                } else {
                    value
                };
                Some(Source { label, url })
            })
            .collect();
        if !unset.is_empty() {
            reader.faults.push(format!(
                "not set: {}. Set them, by flag or variable, or leave their sources out with SOURCES",
                unset.join(", ")
            ));
        }

        let gpus = reader.text(&flags.gpus, "GPUS").unwrap_or("1".to_owned());
        let mut decode = |device: String| {
            let gpu = device == "cuda";
            let (workers, pool) = if gpu {
                let workers = reader.number(&flags.gpu_workers, "GPU_WORKERS", 4, 0);
                // Each worker holds a context and decode sessions; what they take is not there for episodes.
                let pool = reader.number(&flags.gpu_pool_size, "GPU_POOL_SIZE", 16, 1);
                (workers, pool)
            } else {
                let workers = reader.number(&flags.cpu_workers, "CPU_WORKERS", 8, 0);
                let pool = reader.number(&flags.cpu_pool_size, "CPU_POOL_SIZE", 64, 1);
                (workers, pool)
            };
            Decode {
                gpus: (gpu && gpus != "0").then(|| gpus.clone()),
                device,
                num_workers: workers,
                episode_pool_size: pool,
            }
        };
        let decodes = decodes.into_iter().map(&mut decode).collect();

        let num_batches = reader.number(&flags.num_batches, "NUM_BATCHES", 200, 1);
        let warmup_batches = reader.number(&flags.warmup_batches, "WARMUP_BATCHES", 20, 0);
        let batch_size = reader.number(&flags.batch_size, "BATCH_SIZE", 32, 1);
        let serial = match reader.text(&flags.serial, "SERIAL").as_deref() {
            None | Some("1" | "true" | "yes") => true,
            Some("0" | "false" | "no") => false,
            Some(other) => {
                reader
                    .faults
                    .push(format!("SERIAL is `{other}`: 1 or 0 is wanted"));
                true
            }
        };

        let out_dir = reader
            .text(&flags.out_dir, "OUT_DIR")
            .unwrap_or("bench_matrix".to_owned());
        let out_dir = path_text(&invoked_in.join(out_dir), &mut reader.faults);
        let folder = path_text(invoked_in, &mut reader.faults);
        // sbatch reads a backslash in --output its own way, and its list of files is read by lines.
        if out_dir.contains(['\\', '\n']) {
            reader.faults.push(format!(
                "OUT_DIR is {out_dir:?}: sbatch takes no folder with a backslash or a line break in its name"
            ));
        }

        let run = reader
            .text(&flags.run, "RUN")
            .unwrap_or("episode-pool".to_owned());
        let run = if invoked_in.join(&run).is_file() {
            crate::sh::quoted(&run)
        } else {
            run
        };
        let settings = Self {
            sources,
            modes,
            decodes,
            out_dir,
            folder,
            num_batches,
            warmup_batches,
            batch_size,
            time: reader
                .text(&flags.time, "TIME")
                .unwrap_or("01:00:00".to_owned()),
            mem: reader.text(&flags.mem, "MEM").unwrap_or("32G".to_owned()),
            account: reader.text(&flags.account, "ACCOUNT"),
            partition: reader.text(&flags.partition, "PARTITION"),
            qos: reader.text(&flags.qos, "QOS"),
            conda_env: reader.text(&flags.conda_env, "CONDA_ENV"),
            run,
            serial,
            dry_run: flags.dry_run,
        };
        if reader.faults.is_empty() {
            Ok(settings)
        } else {
            Err(format!(
                "nothing was submitted:\n- {}",
                reader.faults.join("\n- ")
            ))
        }
    }
}

/// The Hub's URL of `owner/name`; a URL or a path stays what it is.
fn hub_url(repo: String) -> String {
    let is_path = repo.starts_with(['/', '.']) || repo.matches('/').count() > 1;
    if is_path || repo.contains("://") {
        repo
    } else {
        format!("hf://datasets/{repo}")
    }
}

fn path_text(path: &Path, faults: &mut Vec<String>) -> String {
    path.to_str().map(str::to_owned).unwrap_or_else(|| {
        faults.push(format!("{path:?}: a path in UTF-8 is wanted"));
        String::new()
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::flags::{Xtask, XtaskCmd};

    /// Settings from variables alone.
    pub(in super::super) fn from_vars(variables: &[(&str, &str)]) -> Result<Settings> {
        from(&[], variables)
    }

    fn from(flags: &[&str], variables: &[(&str, &str)]) -> Result<Settings> {
        let words = [&["bench-matrix"], flags].concat();
        let words = words.into_iter().map(Into::into).collect();
        let XtaskCmd::BenchMatrix(flags) = Xtask::from_vec(words).unwrap().subcommand else {
            panic!("another command");
        };
        let lookup = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::new(&flags, lookup, Path::new("/data/of a user"))
    }

    const URLS: [(&str, &str); 3] = [
        ("REPO_ID", "lerobot/pusht"),
        ("BUCKET", "s3://b/pusht"),
        ("WARM_BUCKET", "s3://w/pusht"),
    ];

    #[test]
    fn all_that_is_unset_is_named_at_once() {
        let error = from_vars(&[("BATCH_SIZE", "0"), ("MODES", "single,double")]).unwrap_err();
        for part in [
            "nothing was submitted",
            "REPO_ID (for the source hub), BUCKET (for the source bucket), WARM_BUCKET",
            "BATCH_SIZE is `0`: a whole number of at least 1",
            "MODES names `double`: known are single, sarm",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert!(from_vars(&[("SOURCES", "bucket"), ("BUCKET", "")]).is_err());
        assert!(from_vars(&[("SOURCES", "bucket"), ("BUCKET", "s3://b")]).is_ok());
    }

    #[test]
    fn a_flag_wins_over_a_variable_and_a_variable_over_the_default() {
        let variables = [&URLS[..], &[("CPU_WORKERS", "3"), ("MEM", "")]].concat();
        let flags = ["--batch-size", "7", "--cpu-workers", "5"];
        let settings = from(&flags, &variables).unwrap();
        assert_eq!(settings.batch_size, 7);
        assert_eq!(settings.decodes[0].num_workers, 5);
        assert_eq!(settings.mem, "32G");
        assert!(settings.serial);
        let settings = from_vars(&variables).unwrap();
        assert_eq!(settings.decodes[0].num_workers, 3);
        assert!(settings.decodes[1].episode_pool_size < settings.decodes[0].episode_pool_size);
        assert_eq!(settings.out_dir, "/data/of a user/bench_matrix");
    }

    #[test]
    fn gpus_are_asked_for_by_cuda_jobs_unless_there_are_to_be_none() {
        let gpus = |value: &str| {
            let settings = from_vars(&[&URLS[..], &[("GPUS", value)]].concat()).unwrap();
            let decodes = settings.decodes.into_iter();
            decodes.map(|decode| decode.gpus).collect::<Vec<_>>()
        };
        assert_eq!(gpus(""), [None, Some("1".to_owned())]);
        assert_eq!(gpus("a100:2"), [None, Some("a100:2".to_owned())]);
        assert_eq!(gpus("0"), [None, None]);
    }

    #[test]
    fn only_a_name_becomes_a_url_of_the_hub() {
        for (repo, url) in [
            ("lerobot/pusht", "hf://datasets/lerobot/pusht"),
            ("hf://datasets/lerobot/pusht", "hf://datasets/lerobot/pusht"),
            ("s3://b/pusht", "s3://b/pusht"),
            ("/data/pusht", "/data/pusht"),
            ("./lerobot/pusht", "./lerobot/pusht"),
            ("fixtures/pusht_like/dataset", "fixtures/pusht_like/dataset"),
        ] {
            assert_eq!(hub_url(repo.to_owned()), url);
        }
    }

    #[test]
    fn subsets_are_lists_by_comma_or_space() {
        let variables = [("SOURCES", "warmed_bucket, hub hub"), ("DECODES", "cpu")];
        let settings = from_vars(&[&URLS[..], &variables].concat()).unwrap();
        let labels: Vec<&str> = settings.sources.iter().map(|s| s.label.as_str()).collect();
        assert_eq!(labels, ["hub", "warmed_bucket"]);
        assert_eq!(settings.decodes.len(), 1);
    }
}
