//! `cargo xtask bench-matrix`: the benchmark's jobs, submitted to SLURM.
//!
//! Each source, mode and device is a job of its own on one node, so that a kill for memory ends that job alone and is told as
//! that job's. Jobs wait for each other unless told otherwise: they would share the network. [`settings`] is what was asked
//! for, [`job`] what is run, [`submit`] how SLURM is asked for it, and [`manifest`] what `cargo xtask summarize` reads later.

pub(crate) mod job;
pub(crate) mod manifest;
mod settings;
pub(crate) mod submit;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::flags::BenchMatrix;
use crate::{Result, sh};

use job::Job;
use manifest::{Entry, Manifest};
use settings::Settings;
use submit::Submission;

pub(crate) fn run(flags: &BenchMatrix, invoked_in: &Path) -> Result {
    let lookup = |name: &str| env::var(name).ok();
    let settings = Settings::new(flags, lookup, invoked_in)?;
    let jobs = job::jobs(&settings);
    if settings.dry_run {
        return sh::print(&submit::script(&settings, &jobs));
    }
    submit::check_sbatch(lookup)?;
    submit_all(&settings, &jobs)
}

fn submit_all(settings: &Settings, jobs: &[Job]) -> Result {
    fs::create_dir_all(&settings.out_dir)
        .map_err(|error| format!("{}: {error}", settings.out_dir))?;
    let out_dir = PathBuf::from(&settings.out_dir);
    let mut manifest = Manifest::open(&out_dir)?;
    let mut previous: Option<String> = None;
    let mut unreachable = None;
    let mut failed = Vec::new();
    let mut ids = Vec::new();
    for job in jobs {
        set_aside(&out_dir, &job.stem)?;
        let submission = match &unreachable {
            None => submit::sbatch(settings, job, previous.as_deref())?,
            Some(message) => Submission::Unreachable(format!("not tried after: {message}")),
        };
        let (id, error) = match submission {
            Submission::Accepted(id) => (Some(id), None),
            Submission::Refused(message) => (None, Some(message)),
            Submission::Unreachable(message) => {
                unreachable.get_or_insert(message.clone());
                (None, Some(message))
            }
        };
        let shown = match (&id, &error) {
            (Some(id), _) => format!("job {id}"),
            (None, error) => format!("FAILED: {}", error.as_deref().unwrap_or_default()),
        };
        eprintln!("{:<28} {shown}", job.stem);
        if let Some(id) = &id {
            previous = settings.serial.then(|| id.job.clone());
            ids.push(id.job.clone());
        } else {
            failed.push(job.stem.as_str());
        }
        // After each, so that it tells the truth even if this program is stopped here.
        manifest.put(Entry::new(job, id, error));
        manifest.write(&out_dir)?;
    }

    if !ids.is_empty() {
        let ids = ids.join(",");
        let watch = sh::quoted(&settings.out_dir);
        eprintln!(
            "\nwatch:      squeue --me --jobs={ids}\nstop:       scancel {}\nsummarize:  cargo xtask summarize {watch}",
            ids.replace(',', " ")
        );
    }
    match unreachable {
        Some(message) => Err(format!(
            "{} of {} jobs were not submitted: SLURM cannot be reached: {message}\n\
             Is this a login node of the cluster, and is its controller up (`scontrol ping`)?",
            failed.len(),
            jobs.len()
        )),
        None if !failed.is_empty() => Err(format!(
            "sbatch refused {} of {} jobs: {}. The others were submitted; each refusal stands above and in {}",
            failed.len(),
            jobs.len(),
            failed.join(", "),
            Manifest::path(&out_dir).display()
        )),
        None => Ok(()),
    }
}

/// Renames what an earlier run of the same job has left, so that it is not taken for this one's.
fn set_aside(out_dir: &Path, stem: &str) -> Result {
    for suffix in ["json", "csv", "exit", "log"] {
        let file = out_dir.join(format!("{stem}.{suffix}"));
        if file.exists() {
            let old = out_dir.join(format!("{stem}.{suffix}.old"));
            fs::rename(&file, old).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}
