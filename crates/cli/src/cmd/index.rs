//! `episode-pool index`: what opening a remote dataset's files reads of them, in one file.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use episode_pool::EpisodePool;
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::Error;
use crate::table::count;

/// What to index, and where to.
#[derive(Debug, Args)]
#[command(after_help = "\
An epoch of a remote dataset begins by reading the header of each video file and the footer of each data file that it needs, each of which \
takes some requests. With an index it takes none. It is looked for in the cache's folder, where this command puts it, and then in the \
dataset itself, as meta/episode-pool.index: write it there with --output to publish it. What it says of a file that has changed since is \
not used.")]
pub(crate) struct IndexArgs {
    /// The dataset's URL: hf://datasets/OWNER/NAME[@REVISION], hf://buckets/OWNER/NAME, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX,
    /// https://HOST/PATH.
    url: String,

    /// The index's file. [default: in the cache's folder]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The cache's folder. [default: EPISODE_POOL_CACHE, else ~/.cache/episode-pool]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
}

pub(crate) fn run(args: &IndexArgs, out: &mut impl Write) -> Result<(), Error> {
    let mut builder = EpisodePool::builder(&args.url);
    if let Some(dir) = &args.cache_dir {
        builder = builder.cache_dir(dir);
    }
    let pool = builder.build()?;
    let bar = ProgressBar::no_length().with_style(
        ProgressStyle::with_template("{wide_bar} {pos}/{len} files, {eta}")
            .expect("the template is valid"),
    );
    let report = pool.write_index(args.output.as_deref(), &|done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let report = report?;
    let path = report.path.display();
    writeln!(
        out,
        "indexed {}: {:.1} MB in {path}",
        count(report.files as u64, "file"),
        report.bytes as f64 / 1e6,
    )
    .map_err(Error::Output)
}
