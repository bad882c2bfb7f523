//! `episode-pool plan`: an epoch's order, or how well it mixes.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use episode_pool::EpisodePool;
use episode_pool::pool_core::{Plan, Step};
use serde::Serialize;

use crate::args::{BatchArgs, LoaderArgs};
use crate::error::Error;
use crate::json::Lines;
use crate::mixing::{Mixing, PlannedFrame};
use crate::table::{Align, Table, count};

/// Whose order, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    loader: LoaderArgs,

    #[command(flatten)]
    batch: BatchArgs,

    /// Print the order itself, one frame a line: its position in the order, its episode, its position there, and its
    /// number in the dataset. [default: statistics of how well the order mixes]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Columns position,episode_index,frame_index,index below a heading.
    Csv,
    /// An array of objects with the same four members.
    Json,
}

/// A frame where it stands in the order.
#[derive(Debug, Serialize)]
struct Line {
    position: u64,
    episode_index: usize,
    frame_index: usize,
    index: u64,
}

pub(crate) fn run(args: &PlanArgs, out: &mut impl Write) -> Result<(), Error> {
    let pool = args.loader.builder()?.build()?;
    let plan = pool.plan(args.loader.epoch)?;
    let order = order(&pool, plan);
    match args.format {
        Some(Format::Csv) => write_csv(order, out).map_err(Error::Output),
        Some(Format::Json) => write_json(order, out).map_err(Error::Output),
        None => {
            let order: Vec<PlannedFrame> = order
                .map(|line| PlannedFrame {
                    episode_index: line.episode_index,
                    index: line.index,
                })
                .collect();
            let mixing = Mixing::of(&order, args.batch.size())
                .ok_or_else(|| Error::no_frames(pool.topology()))?;
            write_mixing(&pool, args.loader.epoch, &order, &mixing, out).map_err(Error::Output)
        }
    }
}

/// The emissions of a plan, numbered.
fn order(pool: &EpisodePool, plan: Plan) -> impl Iterator<Item = Line> {
    let emissions = plan.filter_map(|step| match step {
        Step::Emit(emission) => Some(emission),
        Step::Admit { .. } | Step::Evict { .. } => None,
    });
    (0..).zip(emissions).map(|(position, emission)| {
        let episode = pool
            .metadata()
            .episode(emission.episode_index)
            .expect("the plan was made from the metadata's episodes");
        Line {
            position,
            episode_index: emission.episode_index,
            frame_index: emission.frame_index,
            index: (episode.from_index() + emission.frame_index) as u64,
        }
    })
}

fn write_csv(order: impl Iterator<Item = Line>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "position,episode_index,frame_index,index")?;
    for Line {
        position,
        episode_index,
        frame_index,
        index,
    } in order
    {
        writeln!(out, "{position},{episode_index},{frame_index},{index}")?;
    }
    Ok(())
}

fn write_json(order: impl Iterator<Item = Line>, out: &mut impl Write) -> io::Result<()> {
    let mut lines = Lines::new(out);
    for line in order {
        lines.push(&line)?;
    }
    lines.finish()
}

fn write_mixing(
    pool: &EpisodePool,
    epoch: u64,
    order: &[PlannedFrame],
    mixing: &Mixing,
    out: &mut impl Write,
) -> io::Result<()> {
    let topology = pool.topology();
    let options = pool.options();
    writeln!(
        out,
        "epoch {epoch} of rank {} of {}, worker {} of {}: {}",
        topology.rank(),
        topology.world_size(),
        topology.worker(),
        topology.consumers_per_rank(),
        count(order.len() as u64, "frame"),
    )?;
    if options.shuffle {
        let pool_size = count(options.episode_pool_size as u64, "episode");
        writeln!(
            out,
            "drawn with seed {} from a pool of {pool_size}",
            options.seed
        )?;
    } else {
        writeln!(out, "in the dataset's order")?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "Distinct episodes in a batch of {}, and how closely the order follows the dataset's",
        mixing.batch_size
    )?;
    writeln!(out, "(rank correlation: 1 the same, 0 shuffled):")?;
    writeln!(out)?;
    let mut table = Table::new(&[
        ("part", Align::Left),
        ("batches", Align::Right),
        ("mean", Align::Right),
        ("fewest", Align::Right),
        ("correlation", Align::Right),
    ]);
    for part in &mixing.parts {
        table.push([
            part.name.to_owned(),
            part.batches.to_string(),
            format!("{:.2}", part.mean),
            part.min.to_string(),
            part.correlation.map_or_else(
                || "-".to_owned(),
                |correlation| format!("{correlation:+.3}"),
            ),
        ]);
    }
    table.push([
        "global shuffle".to_owned(),
        "-".to_owned(),
        format!("{:.2}", mixing.global_shuffle),
        "-".to_owned(),
        "0".to_owned(),
    ]);
    table.write(out)
}
