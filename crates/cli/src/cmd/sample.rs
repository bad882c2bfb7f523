//! `episode-pool sample`: chosen frames as JSON and PNG.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use episode_pool::{EpisodePool, Sample};
use serde::Serialize;

use crate::args::WindowArgs;
use crate::error::Error;
use crate::json::{Item, Lines};
use crate::pictures;

/// Which frames, and where their pictures go.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints a JSON array of {\"dataset_index\": .., \"item\": {..}}: every feature but the cameras, \
    <key>_is_pad for each windowed feature, and the task. NaN and infinity are null."
)]
pub(crate) struct SampleArgs {
    /// The dataset: its root directory, or a URL (hf://, s3://, gs://, https://).
    path: String,

    /// A frame by its number in the whole dataset (its `index`), from 0. Repeat it for more frames.
    #[arg(long = "index", value_name = "INDEX", required = true)]
    indices: Vec<usize>,

    #[command(flatten)]
    windows: WindowArgs,

    /// Write the cameras' frames to this directory, as plain_INDEX_CAMERA.png, or with a window of the camera as
    /// windowed_INDEX_CAMERA_K.png, K counting its deltas from 0. It is made if it does not exist.
    #[arg(long, value_name = "DIR")]
    frames: Option<PathBuf>,
}

#[derive(Serialize)]
struct Entry<'a> {
    dataset_index: usize,
    item: Item<'a>,
}

pub(crate) fn run(args: &SampleArgs, out: &mut impl Write) -> Result<(), Error> {
    let pool = args
        .windows
        .apply(EpisodePool::builder(&args.path))?
        .build()?;
    if let Some(folder) = &args.frames {
        fs::create_dir_all(folder).map_err(|source| Error::MakeDirectory {
            path: folder.clone(),
            source,
        })?;
    }
    // Nothing is printed before all has been read: a reader gets every frame or none.
    let mut text = Vec::new();
    let mut lines = Lines::new(&mut text);
    for &dataset_index in &args.indices {
        let sample = pool.sample(dataset_index)?;
        let item = Item {
            fields: pool.fields(),
            sample: &sample,
        };
        lines
            .push(&Entry {
                dataset_index,
                item,
            })
            .map_err(Error::Output)?;
        if let Some(folder) = &args.frames {
            write_frames(&pool, &sample, dataset_index, folder)?;
        }
    }
    lines.finish().map_err(Error::Output)?;
    out.write_all(&text).map_err(Error::Output)
}

fn write_frames(
    pool: &EpisodePool,
    sample: &Sample,
    dataset_index: usize,
    folder: &Path,
) -> Result<(), Error> {
    for (field, (key, array)) in pool.fields().iter().zip(sample.fields.iter()) {
        if !field.is_camera() {
            continue;
        }
        let camera = file_name_part(key);
        for (k, picture) in pictures::from_array(array).iter().enumerate() {
            let name = match field.window_len() {
                Some(_) => format!("windowed_{dataset_index}_{camera}_{k}.png"),
                None => format!("plain_{dataset_index}_{camera}.png"),
            };
            pictures::write_png(picture, &folder.join(name))?;
        }
    }
    Ok(())
}

/// A camera's name as part of a file's name: a name from a dataset must not lead out of the folder.
fn file_name_part(camera: &str) -> String {
    let is_harmless = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    camera
        .chars()
        .map(|c| if is_harmless(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn camera_names_do_not_lead_out_of_the_folder() {
        assert_eq!(
            file_name_part("observation.images.top-2_left"),
            "observation.images.top-2_left"
        );
        assert_eq!(file_name_part("../../etc/x\\y:z\0"), ".._.._etc_x_y_z_");
    }
}
