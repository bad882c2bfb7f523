//! Why a command failed, and how that is told.

use std::io;
use std::path::PathBuf;

use episode_pool::pool_core::{self, CoverageReport, Topology};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The loader's own error, as it is.
    #[error(transparent)]
    Loader(#[from] episode_pool::Error),

    /// Rank and worker, as given or as found in the environment, are no place in a fleet.
    #[error("cannot tell which consumer this is")]
    Topology(#[source] pool_core::Error),

    /// A file that an option names cannot be read.
    #[error("cannot read `{}`", path.display())]
    ReadFile { path: PathBuf, source: io::Error },

    /// A file that an option names cannot be written.
    #[error("cannot write `{}`", path.display())]
    WriteFile { path: PathBuf, source: io::Error },

    /// A file does not hold a state to go on from.
    #[error("cannot go on from `{}`", path.display())]
    StateFile {
        path: PathBuf,
        source: episode_pool::Error,
    },

    /// A state is past the last epoch.
    #[error(
        "the run is over: the state is at the start of epoch {epoch} (counted from 0), and the run ends before \
         epoch {epochs}; a larger --epochs goes on"
    )]
    RunIsOver { epoch: u64, epochs: u64 },

    /// The file of delta_timestamps does not hold what it should.
    #[error(
        "`{}` holds no delta_timestamps: expected a JSON object such as {{\"action\": [0.0, 0.1]}}, a feature's key to \
         its seconds",
        path.display()
    )]
    Deltas {
        path: PathBuf,
        source: serde_json::Error,
    },

    /// A directory for pictures cannot be made.
    #[error("cannot make the directory `{}`", path.display())]
    MakeDirectory { path: PathBuf, source: io::Error },

    /// A picture cannot be written.
    #[error("cannot write the picture `{}`", path.display())]
    WritePicture {
        path: PathBuf,
        source: image::ImageError,
    },

    /// Standard output does not take the results.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),

    /// There are no pictures to show.
    #[error(
        "`{dataset}` has no camera, so there is nothing to look at; `episode-pool sample` shows the values of its frames"
    )]
    NoCamera { dataset: String },

    /// A decode device that this build does not have.
    #[error("this build cannot decode on a GPU; use --decode cpu")]
    NoCuda,

    /// There is no camera to decode.
    #[error(
        "`{dataset}` has no camera, so there is nothing to measure; `episode-pool stream` runs through its values"
    )]
    NothingToDecode { dataset: String },

    /// A benchmark was started once for each of several ranks.
    #[error(
        "this is rank {rank} of {world_size}, and bench measures one process alone; start it once, or use `episode-pool stream \
         --distributed`"
    )]
    BenchOfRanks { rank: usize, world_size: usize },

    /// Ranks do not know which reports are of this run.
    #[error(
        "nothing here gives the run a name that all its ranks share; give --run-id LABEL, another one for every start of the run"
    )]
    NoRunId,

    /// A file is not one that a rank has written.
    #[error("`{}` was not written by a rank of `stream --distributed`", path.display())]
    NotDistributed {
        path: PathBuf,
        source: serde_json::Error,
    },

    /// A rank's file holds no digest where there should be one.
    #[error("`{}` is damaged", path.display())]
    Digest {
        path: PathBuf,
        source: pool_core::ParseCoverageError,
    },

    /// The state is another rank's, or one of another number of ranks.
    #[error(
        "`{}` is the state of rank {rank} of {world_size}, and this run has {found} rank(s); to go on with other ranks, give another \
         --state-dir, and this file to --resume", path.display()
    )]
    OtherRanks {
        path: PathBuf,
        rank: usize,
        world_size: usize,
        found: usize,
    },

    /// Some ranks did not end in time.
    #[error(
        "no report of rank(s) {ranks} within {seconds} s after rank 0 ended (run {run_id}); look at their logs, or give a longer \
         --report-timeout"
    )]
    MissingRanks {
        ranks: String,
        seconds: u64,
        run_id: String,
    },

    /// Two ranks do not run the same.
    #[error(
        "rank {rank} runs with other options than rank 0: it is of {found}, rank 0 of {expected}"
    )]
    RanksDiffer {
        rank: usize,
        found: String,
        expected: String,
    },

    /// Not even one frame came, of any rank.
    #[error(
        "none of {ranks} rank(s) yielded a batch; lower --batch-size, or leave out --drop-last"
    )]
    NothingByAnyRank { ranks: usize },

    /// An epoch of all ranks did not emit every frame once.
    #[error(
        "epoch {epoch} of {ranks} rank(s) is not what was selected: {emitted} frames came of {selected}, and not each once"
    )]
    FleetCoverage {
        epoch: u64,
        emitted: u64,
        selected: u64,
        ranks: usize,
    },

    /// Options of a dataset were given with a file.
    #[error(
        "`{path}` is no dataset's directory; --camera and --episode choose one of a dataset's videos"
    )]
    NotADataset { path: String },

    /// There is no such episode.
    #[error(
        "`{dataset}` has no episode {episode}; it has {episodes} (their numbers: `episode-pool info`)"
    )]
    NoEpisode {
        episode: usize,
        dataset: String,
        episodes: usize,
    },

    /// There is no such video.
    #[error(
        "`{dataset}` has no such video; its cameras with videos: {}",
        if cameras.is_empty() { "none" } else { cameras }
    )]
    NoVideo { dataset: String, cameras: String },

    /// A video is not as it should be; what is wrong has been told.
    #[error("`{file}` failed at the step `{step}`")]
    Diagnosis { file: String, step: &'static str },

    /// A contact sheet would be too large.
    #[error(
        "the contact sheet would be {width} x {height} pixels, more than {} million; lower --batch-size, or look at \
         fewer deltas",
        max_pixels / 1_000_000
    )]
    SheetTooLarge {
        width: u64,
        height: u64,
        max_pixels: u64,
    },

    /// The consumer has nothing to do.
    #[error(
        "rank {rank} of {world_size}, worker {worker} of {num_workers} owns no frame; use fewer consumers, or \
         --shard-unit episode"
    )]
    NoFrames {
        rank: usize,
        world_size: usize,
        worker: usize,
        num_workers: usize,
    },

    /// A run yielded nothing.
    #[error(
        "the run yielded no batch: {frames} frames were left to emit, in batches of {batch_size}; lower --batch-size, or \
         leave out --drop-last"
    )]
    NothingStreamed { frames: u64, batch_size: usize },

    /// A whole epoch did not emit every frame once.
    #[error("the epoch is not what was selected: {coverage}")]
    Coverage { coverage: CoverageReport },
}

impl Error {
    /// That the consumer at this place has nothing to do.
    pub(crate) fn no_frames(topology: Topology) -> Self {
        Self::NoFrames {
            rank: topology.rank(),
            world_size: topology.world_size(),
            worker: topology.worker(),
            num_workers: topology.num_workers(),
        }
    }

    /// Whether the reader of standard output went away.
    pub(crate) fn is_closed_output(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The error and its causes, a line each.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut text = format!("error: {message}");
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some libraries repeat their cause in their own message.
        if !message.contains(&next) {
            text.push_str("\n  because: ");
            text.push_str(&next);
        }
        message = next;
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Option<Box<Layer>> {
        let (text, rest) = texts.split_first()?;
        Some(Box::new(Layer {
            text,
            source: layers(rest),
        }))
    }

    #[test]
    fn causes_are_told_once_each() {
        for (texts, expected) in [
            (&["a"][..], "error: a"),
            (&["a", "b", "c"], "error: a\n  because: b\n  because: c"),
            (&["a: b", "b", "c"], "error: a: b\n  because: c"),
        ] {
            let error = layers(texts).unwrap();
            assert_eq!(chain(&*error), expected);
        }
    }
}
