//! `episode-pool look`: the first frames of an epoch, with their windows, as one picture.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use episode_pool::{EpisodePool, Field, Sample};

use crate::args::LoaderArgs;
use crate::error::Error;
use crate::pictures;
use crate::sheet::{Camera, Row, Sheet, Tile};
use crate::table::count;

/// Which frames, and where the picture goes.
#[derive(Debug, Args)]
#[command(
    after_help = "One row a sample; each camera's window side by side, above each picture its time relative to the \
    sample. Pictures outside the episode, which <key>_is_pad marks, are hatched. Depth is shown from black, the nearest code \
    of the window, to white."
)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    loader: LoaderArgs,

    /// The number of samples to show.
    #[arg(long, value_name = "SAMPLES", default_value = "8")]
    batch_size: std::num::NonZeroUsize,

    /// The picture to write, as PNG.
    #[arg(long, value_name = "FILE.png")]
    out: PathBuf,
}

pub(crate) fn run(args: &LookArgs, out: &mut impl Write) -> Result<(), Error> {
    let pool = args.loader.builder()?.build()?;
    if !pool.fields().iter().any(Field::is_camera) {
        return Err(Error::NoCamera {
            dataset: args.loader.path.clone(),
        });
    }
    let samples: Vec<Sample> = pool
        .epoch(args.loader.epoch)?
        .take(args.batch_size.get())
        .collect::<Result<_, _>>()?;

    let sheet = Sheet {
        title: title(&pool, args, samples.len()),
        cameras: cameras(&pool),
        rows: samples.iter().map(|sample| row(&pool, sample)).collect(),
    };
    let picture = sheet.draw()?;
    let (width, height) = picture.dimensions();
    pictures::write_png(&picture.into(), &args.out)?;
    writeln!(
        out,
        "wrote {}: {} of {}, {width} x {height} pixels",
        args.out.display(),
        count(samples.len() as u64, "sample"),
        count(sheet.cameras.len() as u64, "camera"),
    )
    .map_err(Error::Output)
}

fn title(pool: &EpisodePool, args: &LookArgs, samples: usize) -> String {
    let options = pool.options();
    let order = if options.shuffle {
        format!(
            "drawn with seed {} from a pool of {}",
            options.seed,
            count(options.episode_pool_size as u64, "episode")
        )
    } else {
        "in the dataset's order".to_owned()
    };
    format!(
        "{}: {samples} of {}, epoch {}, {order}",
        name(&args.loader.path),
        count(pool.num_frames(), "frame"),
        args.loader.epoch,
    )
}

/// The last two parts of a path: the last alone is often just `dataset`.
fn name(path: &str) -> String {
    let parts: Vec<_> = Path::new(path)
        .iter()
        .map(|part| part.to_string_lossy())
        .collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

fn cameras(pool: &EpisodePool) -> Vec<Camera> {
    let cameras = pool.fields().iter().filter(|field| field.is_camera());
    cameras
        .map(|field| Camera {
            name: field.key().to_owned(),
            deltas_s: pool
                .options()
                .delta_timestamps
                .get(field.key())
                .cloned()
                // Without a window, a camera shows the frame itself.
                .unwrap_or_else(|| vec![0.0]),
        })
        .collect()
}

fn row(pool: &EpisodePool, sample: &Sample) -> Row {
    let task = sample
        .fields
        .get("task")
        .and_then(|task| task.as_str()?.first());
    let mut tiles = Vec::new();
    for (field, (key, array)) in pool.fields().iter().zip(sample.fields.iter()) {
        if !field.is_camera() {
            continue;
        }
        let mask = sample
            .fields
            .get(&format!("{key}_is_pad"))
            .and_then(|mask| mask.as_bool());
        let pictures = pictures::for_eyes(pictures::from_array(array));
        tiles.extend(pictures.into_iter().enumerate().map(|(k, picture)| Tile {
            picture,
            is_pad: mask.is_some_and(|mask| mask[k]),
        }));
    }
    Row {
        heading: format!(
            "episode {}, frame {}",
            sample.episode_index, sample.frame_index
        ),
        caption: task.cloned().unwrap_or_default(),
        tiles,
    }
}
