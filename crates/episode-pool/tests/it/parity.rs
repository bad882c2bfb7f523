//! Every value, mask and frame equals what lerobot's own reader returned for the fixtures.

use std::collections::BTreeMap;

use episode_pool::{EpisodePool, Sample};
use testkit::{Truth, TruthItem, code, fixtures, read_png};

use crate::support::{fixture, json, samples};

/// Samples of a whole shuffled epoch, by their global index.
fn epoch_by_index(pool: &EpisodePool) -> BTreeMap<usize, Sample> {
    samples(pool, 3)
        .into_iter()
        .map(|sample| {
            let index = sample.fields.get("index").unwrap().as_i64().unwrap()[0];
            (usize::try_from(index).unwrap(), sample)
        })
        .collect()
}

/// Tabular values and masks are equal exactly: `truth.json` holds them in full precision.
fn assert_values_match(name: &str, item: &TruthItem, sample: &Sample) {
    for (key, expected) in &item.item {
        let array = sample
            .fields
            .get(key)
            .unwrap_or_else(|| panic!("{name}: no field {key}"));
        assert_eq!(
            &json(array),
            expected,
            "{name}, frame {}, {key}",
            item.dataset_index
        );
    }
}

/// One owner of the tolerance: a mean difference of 1 and a largest of 4, since conversions to RGB differ a little.
fn assert_frames_match(what: &str, found: &[u8], expected: &[u8]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let differences = found.iter().zip(expected).map(|(a, b)| a.abs_diff(*b));
    let largest = differences.clone().max().unwrap_or(0);
    let mean = differences.map(f64::from).sum::<f64>() / found.len() as f64;
    assert!(
        mean <= 1.0 && largest <= 4,
        "{what}: mean {mean}, largest {largest}"
    );
}

/// Compares a sample with every stored picture of its frame, and returns how many there were.
fn assert_pictures_match(
    name: &str,
    index: usize,
    sample: &Sample,
    cameras: &[String],
    windowed: bool,
) -> usize {
    let mut compared = 0;
    for camera in cameras {
        let array = sample.fields.get(camera).unwrap();
        let pixels = array.as_u8().unwrap();
        let len: usize = array.shape().iter().rev().take(3).product();
        for (k, found) in pixels.chunks_exact(len).enumerate() {
            let path = if windowed {
                fixtures::windowed_frame(name, index, camera, k)
            } else {
                fixtures::plain_frame(name, index, camera)
            };
            let Some(path) = path else { continue };
            assert_frames_match(&path.display().to_string(), found, &read_png(&path).pixels);
            compared += 1;
        }
    }
    compared
}

fn cameras(pool: &EpisodePool) -> Vec<String> {
    pool.metadata()
        .info()
        .camera_keys()
        .map(str::to_owned)
        .collect()
}

fn check(name: &str, windowed: bool) {
    let truth = Truth::read(name);
    let mut builder = fixture(name).episode_pool_size(3).seed(11);
    if windowed {
        builder = builder.delta_timestamps(truth.delta_timestamps.clone());
    }
    let pool = builder.build().unwrap();
    let cameras = cameras(&pool);
    let emitted = epoch_by_index(&pool);
    assert_eq!(emitted.len(), pool.metadata().total_frames(), "{name}");

    let items = if windowed {
        &truth.windowed
    } else {
        &truth.plain
    };
    assert!(!items.is_empty(), "{name}");
    let mut pictures = 0;
    for item in items {
        let sample = &emitted[&item.dataset_index];
        assert_values_match(name, item, sample);
        pictures += assert_pictures_match(name, item.dataset_index, sample, &cameras, windowed);
    }
    assert!(
        cameras.is_empty() || pictures > 0,
        "{name}: no stored picture was compared"
    );

    let looked_up = pool.sample(items[0].dataset_index).unwrap();
    assert_eq!(
        looked_up.fields, emitted[&items[0].dataset_index].fields,
        "{name}"
    );

    assert_codes(name, &pool, &cameras, emitted.values());
}

/// Every camera frame of every sample carries the code of the frame that it should be.
fn assert_codes<'a>(
    name: &str,
    pool: &EpisodePool,
    cameras: &[String],
    emitted: impl Iterator<Item = &'a Sample>,
) {
    for sample in emitted {
        let length = pool
            .metadata()
            .episode(sample.episode_index)
            .unwrap()
            .length();
        for (position, camera) in cameras.iter().enumerate() {
            let field = pool
                .fields()
                .iter()
                .find(|field| field.key() == camera)
                .unwrap();
            let offsets: Vec<i64> = pool.options().delta_timestamps.get(camera).map_or_else(
                || vec![0],
                |deltas| {
                    let fps = pool.metadata().info().fps();
                    deltas
                        .iter()
                        .map(|delta| (delta * fps).round() as i64)
                        .collect()
                },
            );
            let [height, width, 3] = field.shape()[field.shape().len() - 3..] else {
                panic!("{name}: {camera} is not [.., H, W, 3]")
            };
            let pixels = sample.fields.get(camera).unwrap().as_u8().unwrap();
            for (offset, picture) in offsets.iter().zip(pixels.chunks_exact(height * width * 3)) {
                let frame = (sample.frame_index as i64 + offset).clamp(0, length as i64 - 1);
                let found = code::read(picture, height, width);
                let found = (found.episode, found.frame, found.camera);
                let expected = (sample.episode_index, frame as usize, position);
                assert_eq!(found, expected, "{name}: {camera}, offset {offset}");
            }
        }
    }
}

macro_rules! every_fixture {
    ($($name:ident)*) => {
        $(
            mod $name {
                #[test]
                fn plain_items_equal_the_map_style_reader() {
                    super::check(stringify!($name), false);
                }

                #[test]
                fn windowed_items_equal_the_map_style_reader() {
                    super::check(stringify!($name), true);
                }
            }
        )*

        #[test]
        fn no_fixture_is_left_out() {
            assert_eq!([$(stringify!($name)),*].len(), testkit::FIXTURES.len());
            $(assert!(testkit::FIXTURES.contains(&stringify!($name)));)*
        }
    };
}

every_fixture! { aloha_like h264_gop30 hevc_small image_only no_camera pusht_like }
