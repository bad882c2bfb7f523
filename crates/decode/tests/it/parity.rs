//! The bundled datasets: frames as lerobot's own reader returned them, and the code burned into every frame.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use decode::{Layout, Pixels, Video, VideoOptions};
use serde::Deserialize;

use crate::clips;

/// What `fixture_videos.json` says of a dataset: its episode table, as far as it concerns videos.
#[derive(Deserialize)]
struct Dataset {
    fps: f64,
    cameras: Vec<String>,
    episodes: Vec<Episode>,
}

#[derive(Deserialize)]
struct Episode {
    length: usize,
    /// One per camera, in their order.
    videos: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file: String,
    from_timestamp_s: f64,
}

/// A frame to ask for.
#[derive(Clone, Copy)]
struct Item {
    dataset_index: usize,
    episode: usize,
    frame: usize,
    camera: usize,
}

impl Dataset {
    fn items(&self) -> Vec<Item> {
        let positions = self
            .episodes
            .iter()
            .enumerate()
            .flat_map(|(episode, e)| (0..e.length).map(move |frame| (episode, frame)));
        let cameras = 0..self.cameras.len();
        positions
            .enumerate()
            .flat_map(|(dataset_index, (episode, frame))| {
                cameras.clone().map(move |camera| Item {
                    dataset_index,
                    episode,
                    frame,
                    camera,
                })
            })
            .collect()
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn read_frame(
    open: &mut BTreeMap<String, Video>,
    root: &Path,
    dataset: &Dataset,
    item: Item,
) -> (usize, usize, Vec<u8>) {
    let Span {
        file,
        from_timestamp_s,
    } = &dataset.episodes[item.episode].videos[item.camera];
    let video = open.entry(file.clone()).or_insert_with(|| {
        let media = File::open(root.join("dataset").join(file)).unwrap();
        Video::open(
            Box::new(media),
            file,
            &dataset.cameras[item.camera],
            &VideoOptions::default(),
        )
        .unwrap()
    });
    let (height, width) = (video.info().height, video.info().width);
    let mut rgb = vec![0; height * width * 3];
    let time_s = from_timestamp_s + item.frame as f64 / dataset.fps;
    clips::decode(video, &[time_s], 1e-4, Layout::Hwc, Pixels::U8(&mut rgb)).unwrap();
    (height, width, rgb)
}

/// Episode, frame and camera, as burned in: see the fixtures' README.
fn burned_in(height: usize, width: usize, rgb: &[u8]) -> (usize, usize, usize) {
    let block = (height.min(width) / 16).max(4);
    let per_row = width / block;
    let code: usize = (0..20)
        .map(|i| {
            let (x, y) = (
                (i % per_row) * block + block / 2,
                (i / per_row) * block + block / 2,
            );
            usize::from(rgb[(y * width + x) * 3] > 127) << i
        })
        .sum();
    (code & 0xff, code >> 8 & 0x3ff, code >> 18)
}

/// Frames may differ by what two versions of swscale differ: by 4 at a pixel, and by 1 in the mean.
fn assert_frames_match(found: &[u8], expected: &[u8], name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let differences = || {
        found
            .iter()
            .zip(expected)
            .map(|(a, b)| u64::from(a.abs_diff(*b)))
    };
    let (max, sum) = (differences().max().unwrap(), differences().sum::<u64>());
    assert!(
        max <= 4 && sum <= found.len() as u64,
        "{name}: differs by up to {max}, by {} in the mean",
        sum as f64 / found.len() as f64
    );
}

fn check(name: &str) {
    let all: BTreeMap<String, Dataset> =
        serde_json::from_str(include_str!("fixture_videos.json")).unwrap();
    let (dataset, root) = (&all[name], fixtures().join(name));
    let items = dataset.items();
    let mut open = BTreeMap::new();
    let mut num_stored = 0;
    for position in clips::shuffled(items.len(), 7) {
        let item = items[position];
        let (height, width, rgb) = read_frame(&mut open, &root, dataset, item);
        assert_eq!(
            burned_in(height, width, &rgb),
            (item.episode, item.frame, item.camera),
            "{name}"
        );

        let stored = format!(
            "frames/plain_{}_{}.png",
            item.dataset_index, dataset.cameras[item.camera]
        );
        if let Ok(png) = std::fs::read(root.join(&stored)) {
            let mut expected = vec![0; rgb.len()];
            decode::image::decode_into(&png, Layout::Hwc, None, Pixels::U8(&mut expected)).unwrap();
            assert_frames_match(&rgb, &expected, &stored);
            num_stored += 1;
        }
    }
    let in_folder = std::fs::read_dir(root.join("frames")).unwrap();
    let expected = in_folder
        .filter(|file| {
            file.as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with("plain_")
        })
        .count();
    assert_eq!(
        (num_stored, num_stored > 0),
        (expected, true),
        "every stored frame is compared"
    );
}

#[test]
fn hevc_with_open_gops() {
    check("hevc_small");
}

#[test]
fn h264_with_b_frames() {
    check("h264_gop30");
}

#[test]
fn av1_of_short_episodes() {
    check("pusht_like");
}

#[test]
fn av1_in_files_that_roll_over() {
    check("aloha_like");
}
