//! Several processes that stream one dataset: each keeps its place, and the first sums up.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use episode_pool::StateDict;
use episode_pool::pool_core::{Coverage, CoverageReport, Topology};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::Label;
use crate::error::Error;
use crate::files;
use crate::host::Host;
use crate::table::{Align, Table, count, thousands};

/// How often rank 0 looks for the reports of the others.
const POLL: Duration = Duration::from_millis(50);

/// One rank of several.
#[derive(Debug, Args)]
pub(crate) struct DistributedArgs {
    /// Be one rank of several, as srun, torchrun or mpirun start them: keep the rank's state in --state-dir, go on from it when the
    /// run is started again, tell the throughput on standard error, and let rank 0 sum up what all have done.
    #[arg(long, requires = "state_dir", conflicts_with_all = ["worker", "resume_batches", "canonical_consumers"], help_heading = "Distributed")]
    pub(crate) distributed: bool,

    /// Where each rank keeps its state (rank_0.json, ...), and leaves its report. The same directory for all ranks; made if it
    /// is not there.
    #[arg(
        long,
        value_name = "DIR",
        requires = "distributed",
        group = "saved",
        help_heading = "Distributed"
    )]
    state_dir: Option<PathBuf>,

    /// A name for this start of the run, the same for all ranks, and another for every start. [default: made of SLURM's job, step
    /// and restart count, or torchrun's run id]
    #[arg(
        long,
        value_name = "LABEL",
        requires = "distributed",
        help_heading = "Distributed"
    )]
    run_id: Option<Label>,

    /// How long rank 0 waits for the other ranks to end, once it has ended itself.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 600,
        requires = "distributed",
        help_heading = "Distributed"
    )]
    report_timeout: u64,
}

/// The name of a run's start, from what launchers set.
fn run_id_from(var: impl Fn(&str) -> Option<String>) -> Option<String> {
    let var = |name: &str| var(name).filter(|value| !value.is_empty());
    let restarts = |name: &str| var(name).unwrap_or_else(|| "0".to_owned());
    // torchrun gives this name where none was asked for: every run of its kind has it.
    if let Some(id) = var("TORCHELASTIC_RUN_ID").filter(|id| id != "none") {
        return Some(format!("{id}.{}", restarts("TORCHELASTIC_RESTART_COUNT")));
    }
    let job = var("SLURM_JOB_ID").or_else(|| var("SLURM_JOBID"))?;
    let step = var("SLURM_STEP_ID").or_else(|| var("SLURM_STEPID"))?;
    Some(format!("{job}.{step}.{}", restarts("SLURM_RESTART_COUNT")))
}

/// What a rank has to keep in mind between two starts, beside its state. It is a member of the state's file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kept {
    rank: usize,
    world_size: usize,
    /// For each epoch begun: the digest of what the rank has emitted in it.
    emitted: BTreeMap<u64, String>,
    /// Samples of the first epoch that were emitted before, by whoever: nothing else is known of them.
    passed_over: bool,
}

/// What a rank has done, for rank 0.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    rank: usize,
    world_size: usize,
    node: String,
    /// The digest of what all ranks together have to emit in an epoch.
    selected: String,
    /// As [`Kept::emitted`].
    emitted: BTreeMap<u64, String>,
    passed_over: bool,
    /// The epochs that came to their end.
    epochs_completed: BTreeSet<u64>,
    /// In this start of the run.
    samples: u64,
    camera_frames: u64,
    wallclock_s: f64,
}

/// One rank, in the run of all.
#[derive(Debug)]
pub(crate) struct Rank {
    dir: PathBuf,
    run_id: String,
    topology: Topology,
    timeout: Duration,
    /// What all ranks have to emit in an epoch.
    selected: Coverage,
    emitted: BTreeMap<u64, Coverage>,
    passed_over: bool,
    epochs_completed: BTreeSet<u64>,
    /// The samples told of last, and when that was.
    told: (u64, Instant),
}

impl Rank {
    /// The rank, and its state where it has one. None without --distributed.
    pub(crate) fn new(
        args: &DistributedArgs,
        topology: Topology,
        selected: Coverage,
    ) -> Result<Option<(Self, Option<StateDict>)>, Error> {
        let (true, Some(dir)) = (args.distributed, &args.state_dir) else {
            return Ok(None);
        };
        let given = args.run_id.as_ref().map(|Label(label)| label.clone());
        let id = given.or_else(|| run_id_from(|name| std::env::var(name).ok()));
        // A launcher's name may hold anything; a file's may not.
        let run_id = match id {
            Some(id) => id
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect(),
            None if topology.world_size() == 1 => "alone".to_owned(),
            None => return Err(Error::NoRunId),
        };
        std::fs::create_dir_all(dir).map_err(|source| Error::MakeDirectory {
            path: dir.clone(),
            source,
        })?;
        let mut rank = Self {
            dir: dir.clone(),
            run_id,
            topology,
            timeout: Duration::from_secs(args.report_timeout),
            selected,
            emitted: BTreeMap::new(),
            passed_over: false,
            epochs_completed: BTreeSet::new(),
            told: (0, Instant::now()),
        };
        rank.remove_old_report()?;
        let state = rank.load()?;
        Ok(Some((rank, state)))
    }

    fn state_path(&self) -> PathBuf {
        self.dir.join(format!("rank_{}.json", self.topology.rank()))
    }

    fn report_path(&self, rank: usize) -> PathBuf {
        self.dir.join(format!("report_{}_{rank}.json", self.run_id))
    }

    /// An earlier start of the same name would be taken for this one.
    fn remove_old_report(&self) -> Result<(), Error> {
        let path = self.report_path(self.topology.rank());
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::WriteFile { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Reads the rank's state, if there is one.
    fn load(&mut self) -> Result<Option<StateDict>, Error> {
        let path = self.state_path();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::ReadFile { path, source }),
        };
        let state = StateDict::from_json(&text).map_err(|source| Error::StateFile {
            path: path.clone(),
            source,
        })?;
        let kept = serde_json::from_str::<Value>(&text)
            .and_then(|mut value| Kept::deserialize(value["distributed"].take()))
            .map_err(|source| Error::NotDistributed {
                path: path.clone(),
                source,
            })?;
        if (kept.rank, kept.world_size) != (self.topology.rank(), self.topology.world_size()) {
            return Err(Error::OtherRanks {
                path,
                rank: kept.rank,
                world_size: kept.world_size,
                found: self.topology.world_size(),
            });
        }
        self.emitted = parse(&kept.emitted, &path)?;
        self.passed_over = kept.passed_over;
        Ok(Some(state))
    }

    /// That the run goes on from a state of other ranks.
    pub(crate) fn pass_over(&mut self) {
        self.passed_over = true;
    }

    /// Counts a batch in.
    pub(crate) fn record(&mut self, epoch: u64, frames: impl Iterator<Item = (usize, usize)>) {
        let emitted = self.emitted.entry(epoch).or_default();
        for (episode_index, frame_index) in frames {
            emitted.record(episode_index, frame_index);
        }
    }

    /// That an epoch came to its end.
    pub(crate) fn complete(&mut self, epoch: u64) {
        self.emitted.entry(epoch).or_default();
        self.epochs_completed.insert(epoch);
    }

    /// That nothing is left to do: all epochs before this one came to their end in an earlier start.
    pub(crate) fn complete_before(&mut self, epoch: u64) {
        self.epochs_completed
            .extend(self.emitted.range(..epoch).map(|(&epoch, _)| epoch));
    }

    /// Keeps the state, and tells how fast it goes.
    pub(crate) fn save(
        &mut self,
        state: &StateDict,
        epoch: u64,
        samples: u64,
    ) -> Result<(), Error> {
        let kept = Kept {
            rank: self.topology.rank(),
            world_size: self.topology.world_size(),
            emitted: texts(&self.emitted),
            passed_over: self.passed_over,
        };
        let mut value: Value = serde_json::from_str(&state.to_json()).expect("a state is JSON");
        value["distributed"] = serde_json::to_value(kept).expect("texts and numbers become JSON");
        let path = self.state_path();
        files::replace(&path, format!("{value}\n").as_bytes())
            .map_err(|source| Error::WriteFile { path, source })?;

        let (told, then) = self.told;
        let new = samples - told;
        if new > 0 {
            let now = Instant::now();
            let per_s = new as f64 / (now - then).as_secs_f64();
            // If nobody reads it, nobody misses it.
            let _ = writeln!(
                io::stderr(),
                "rank {} of {}, epoch {epoch}: {} so far, {per_s:.1} samples/s since last told",
                self.topology.rank(),
                self.topology.world_size(),
                count(samples, "sample"),
            );
            self.told = (samples, now);
        }
        Ok(())
    }

    /// Leaves the rank's report; on rank 0, waits for those of the others, and sums up.
    ///
    /// With `exactly_once`, an epoch that all ranks brought to its end has to hold every frame once.
    pub(crate) fn finish(
        self,
        samples: u64,
        camera_frames: u64,
        wallclock_s: f64,
        exactly_once: bool,
    ) -> Result<Option<FleetSummary>, Error> {
        let report = Report {
            rank: self.topology.rank(),
            world_size: self.topology.world_size(),
            node: Host::this().name,
            selected: self.selected.to_string(),
            emitted: texts(&self.emitted),
            passed_over: self.passed_over,
            epochs_completed: self.epochs_completed.clone(),
            samples,
            camera_frames,
            wallclock_s,
        };
        let path = self.report_path(report.rank);
        let text = serde_json::to_string(&report).expect("texts and numbers become JSON");
        files::replace(&path, text.as_bytes())
            .map_err(|source| Error::WriteFile { path, source })?;
        if report.rank > 0 {
            return Ok(None);
        }
        FleetSummary::new(&self, &self.wait_for_all()?, exactly_once).map(Some)
    }

    /// The reports of all ranks, by rank.
    fn wait_for_all(&self) -> Result<Vec<Report>, Error> {
        let deadline = Instant::now().checked_add(self.timeout);
        let mut reports = BTreeMap::new();
        loop {
            let ranks = 0..self.topology.world_size();
            let missing: Vec<usize> = ranks.filter(|rank| !reports.contains_key(rank)).collect();
            if missing.is_empty() {
                return Ok(reports.into_values().collect());
            }
            for &rank in &missing {
                if let Some(report) = self.read_report(rank)? {
                    reports.insert(rank, report);
                }
            }
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late && reports.len() < self.topology.world_size() {
                let ranks = missing.iter().filter(|rank| !reports.contains_key(rank));
                return Err(Error::MissingRanks {
                    ranks: ranks.map(usize::to_string).collect::<Vec<_>>().join(", "),
                    seconds: self.timeout.as_secs(),
                    run_id: self.run_id.clone(),
                });
            }
            if reports.len() < self.topology.world_size() {
                thread::sleep(POLL);
            }
        }
    }

    fn read_report(&self, rank: usize) -> Result<Option<Report>, Error> {
        let path = self.report_path(rank);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::ReadFile { path, source }),
        };
        let report: Report =
            serde_json::from_str(&text).map_err(|source| Error::NotDistributed {
                path: path.clone(),
                source,
            })?;
        let selected = self.selected.to_string();
        if report.world_size != self.topology.world_size() || report.selected != selected {
            return Err(Error::RanksDiffer {
                rank,
                found: format!("{} ranks that emit {}", report.world_size, report.selected),
                expected: format!("{} ranks that emit {selected}", self.topology.world_size()),
            });
        }
        Ok(Some(report))
    }
}

fn texts(digests: &BTreeMap<u64, Coverage>) -> BTreeMap<u64, String> {
    digests
        .iter()
        .map(|(&epoch, digest)| (epoch, digest.to_string()))
        .collect()
}

fn parse(texts: &BTreeMap<u64, String>, path: &Path) -> Result<BTreeMap<u64, Coverage>, Error> {
    let digests = texts.iter().map(|(&epoch, text)| {
        let digest = text.parse().map_err(|source| Error::Digest {
            path: path.to_owned(),
            source,
        })?;
        Ok((epoch, digest))
    });
    digests.collect()
}

/// What all ranks have done.
#[derive(Debug, Serialize)]
pub(crate) struct FleetSummary {
    run_id: String,
    world_size: usize,
    nodes: usize,
    /// In this start of the run, as the rates are.
    samples: u64,
    /// The longest of any rank's.
    wallclock_s: f64,
    samples_per_s: f64,
    frames_per_s_node: f64,
    ranks: Vec<RankSummary>,
    epochs: Vec<EpochSummary>,
}

#[derive(Debug, Serialize)]
struct RankSummary {
    rank: usize,
    node: String,
    samples: u64,
    wallclock_s: f64,
    samples_per_s: f64,
}

/// An epoch, over all starts of the run.
#[derive(Debug, Serialize)]
struct EpochSummary {
    epoch: u64,
    /// Whether all ranks came to its end.
    complete: bool,
    selected: u64,
    emitted: u64,
    /// Whether every frame came once; none where that cannot be said: the epoch is not over, or was begun by others.
    exactly_once: Option<bool>,
}

impl FleetSummary {
    fn new(rank: &Rank, reports: &[Report], exactly_once: bool) -> Result<Self, Error> {
        let rate = |number: u64, seconds: f64| {
            if seconds > 0.0 {
                number as f64 / seconds
            } else {
                0.0
            }
        };
        let nodes: BTreeSet<&str> = reports.iter().map(|report| &*report.node).collect();
        let samples = reports.iter().map(|report| report.samples).sum();
        let camera_frames: u64 = reports.iter().map(|report| report.camera_frames).sum();
        let wallclock_s = reports
            .iter()
            .map(|report| report.wallclock_s)
            .fold(0.0, f64::max);

        let begun: BTreeSet<u64> = reports
            .iter()
            .flat_map(|report| report.emitted.keys().copied())
            .collect();
        let first = begun.first().copied();
        let mut emitted: BTreeMap<u64, Coverage> = BTreeMap::new();
        for report in reports {
            for (epoch, digest) in parse(&report.emitted, &rank.report_path(report.rank))? {
                emitted.entry(epoch).or_default().merge(digest);
            }
        }
        if emitted.values().all(|digest| digest.num_frames() == 0) {
            return Err(Error::NothingByAnyRank {
                ranks: reports.len(),
            });
        }
        let epochs = emitted.into_iter().map(|(epoch, digest)| {
            // One that came to its end in an earlier start is only in the ranks' memory: an epoch behind it was begun.
            let is_over = |report: &Report| {
                report.epochs_completed.contains(&epoch)
                    || report.emitted.keys().any(|&begun| begun > epoch)
            };
            let complete = reports.iter().all(is_over);
            let is_known = first != Some(epoch) || !reports.iter().any(|report| report.passed_over);
            let coverage = CoverageReport::new(rank.selected, digest);
            EpochSummary {
                epoch,
                complete,
                selected: coverage.selected,
                emitted: coverage.emitted,
                exactly_once: (complete && is_known).then_some(coverage.exactly_once),
            }
        });
        let summary = Self {
            run_id: rank.run_id.clone(),
            world_size: reports.len(),
            nodes: nodes.len(),
            samples,
            wallclock_s,
            samples_per_s: rate(samples, wallclock_s),
            frames_per_s_node: rate(camera_frames, wallclock_s) / nodes.len() as f64,
            epochs: epochs.collect(),
            ranks: reports
                .iter()
                .map(|report| RankSummary {
                    rank: report.rank,
                    node: report.node.clone(),
                    samples: report.samples,
                    wallclock_s: report.wallclock_s,
                    samples_per_s: rate(report.samples, report.wallclock_s),
                })
                .collect(),
        };
        let wrong = summary
            .epochs
            .iter()
            .find(|epoch| epoch.exactly_once == Some(false));
        match wrong {
            Some(epoch) if exactly_once => Err(Error::FleetCoverage {
                epoch: epoch.epoch,
                emitted: epoch.emitted,
                selected: epoch.selected,
                ranks: summary.world_size,
            }),
            _ => Ok(summary),
        }
    }

    pub(crate) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "all ranks: {} on {}, run {}",
            count(self.world_size as u64, "rank"),
            count(self.nodes as u64, "node"),
            self.run_id
        )?;
        let mut table = Table::new(&[
            ("rank", Align::Right),
            ("node", Align::Left),
            ("samples", Align::Right),
            ("seconds", Align::Right),
            ("samples/s", Align::Right),
        ]);
        for rank in &self.ranks {
            table.push([
                rank.rank.to_string(),
                rank.node.clone(),
                thousands(rank.samples),
                format!("{:.3}", rank.wallclock_s),
                format!("{:.1}", rank.samples_per_s),
            ]);
        }
        table.write(out)?;
        writeln!(
            out,
            "  throughput      {:.1} samples/s, {:.1} camera frames/s and node",
            self.samples_per_s, self.frames_per_s_node
        )?;
        for epoch in &self.epochs {
            let verdict = match (epoch.exactly_once, epoch.complete) {
                (Some(true), _) => "each once",
                (Some(false), _) => "not each once, as asked for",
                (None, true) => "the others before this run",
                (None, false) => "not over yet",
            };
            writeln!(
                out,
                "  epoch {:<9} {} of {} frames, {verdict}",
                epoch.epoch,
                thousands(epoch.emitted),
                thousands(epoch.selected)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(variables: &[(&str, &str)]) -> Option<String> {
        let find = |name: &str| variables.iter().find(|(found, _)| *found == name);
        run_id_from(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn starts_of_a_run_have_names_of_their_own() {
        assert_eq!(id(&[]), None);
        let job = ("SLURM_JOB_ID", "17");
        assert_eq!(
            id(&[job]),
            None,
            "outside of a step, srun has started nothing"
        );
        assert_eq!(
            id(&[job, ("SLURM_STEP_ID", "0")]).as_deref(),
            Some("17.0.0")
        );
        let again = [
            ("SLURM_JOBID", "17"),
            ("SLURM_STEPID", "2"),
            ("SLURM_RESTART_COUNT", "1"),
        ];
        assert_eq!(id(&again).as_deref(), Some("17.2.1"));
        assert_eq!(id(&[("TORCHELASTIC_RUN_ID", "none")]), None);
        let torchrun = [
            ("TORCHELASTIC_RUN_ID", "a"),
            ("TORCHELASTIC_RESTART_COUNT", "3"),
            job,
            ("SLURM_STEP_ID", "0"),
        ];
        assert_eq!(id(&torchrun).as_deref(), Some("a.3"));
    }
}
