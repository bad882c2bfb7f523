//! Open files and decoders: bounded, however many videos a dataset has.

use std::fs;
use std::path::Path;

use episode_pool::pool_core::Topology;
use episode_pool::{Loader, LoaderOptions};
use testkit::video::{self, VideoOptions};
use testkit::{Camera, Code, Dataset, Fps, FromTimestamp, Segment, Spec, Split, code};

use super::{CAMERA, camera};
use crate::support::builder;

/// What every video shows.
const PICTURE: Code = Code {
    episode: 77,
    frame: 5,
    camera: 0,
};

/// A dataset of as many one-frame episodes as videos: all of them are links to one that holds a single frame.
fn many_videos(num_videos: usize) -> Dataset {
    let at_the_start = |segment: Segment| -Fps::from(10).seconds(segment.first_frame);
    let dataset = Spec {
        cameras: vec![Camera {
            from_timestamp: FromTimestamp::Shifted(at_the_start),
            ..camera()
        }],
        // The number of an episode's video is that of its episode table.
        episode_files: Split::Every(1),
        episode_column: |name| match name {
            "videos/observation.images.front/file_index" => "unused".to_owned(),
            "meta/episodes/file_index" => "videos/observation.images.front/file_index".to_owned(),
            name => name.to_owned(),
        },
        data_files: Split::Every(5),
        chunks_size: num_videos,
        ..Spec::new(10, &vec![1; num_videos])
    }
    .write();
    let video = dataset.video_file(CAMERA, 0);
    let picture = code::paint(PICTURE, 64, 96);
    video::encode(&video, &VideoOptions::new(64, 96, 10), [picture]);
    for file in 1..num_videos {
        fs::hard_link(&video, dataset.video_file(CAMERA, file)).unwrap();
    }
    dataset
}

/// The files below `root` that this process has open.
fn num_open_files(root: &Path) -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    descriptors
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target.starts_with(root))
        .count()
}

/// One decoder stayed open for every video ever touched: 30 GB a worker, or too many open files.
#[test]
fn one_pass_over_hundreds_of_videos_keeps_few_of_them_open() {
    const NUM_VIDEOS: usize = 600;
    const NUM_WORKERS: usize = 2;
    const MAX_OPEN_DATA_FILES: usize = 16;
    let dataset = many_videos(NUM_VIDEOS);
    // By default (pool + 1) x cameras.
    for (cache_size, decoders) in [(None, 65), (Some(8), 8)] {
        let mut builder =
            builder(dataset.root()).topology(Topology::new(0, 1, 0, NUM_WORKERS).unwrap());
        if let Some(cache_size) = cache_size {
            builder = builder.video_decoder_cache_size(cache_size);
        }
        let pool = builder.build().unwrap();
        assert_eq!(pool.options().video_decoder_cache_size, decoders);
        let options = LoaderOptions {
            batch_size: 20,
            ..LoaderOptions::default()
        };
        let mut epoch = Loader::new(&pool, options).unwrap().epoch(0).unwrap();
        let (mut samples, mut most) = (0, 0);
        for batch in epoch.by_ref() {
            let batch = batch.unwrap();
            samples += batch.len();
            let pictures = batch.fields.get(CAMERA).unwrap().as_u8().unwrap();
            for picture in pictures.chunks_exact(64 * 96 * 3) {
                assert_eq!(code::read(picture, 64, 96), PICTURE);
            }
            most = most.max(num_open_files(dataset.root()));
        }
        assert_eq!(samples, NUM_VIDEOS);
        // A worker that is opening a video has one more open.
        let limit = NUM_WORKERS * (decoders + 1 + MAX_OPEN_DATA_FILES);
        assert!(
            (decoders..=limit).contains(&most) && limit < 256,
            "{most} files open; at most {limit} expected"
        );
        let opened: u64 = epoch
            .reports()
            .iter()
            .map(|report| report.video_decoder_cache.misses)
            .sum();
        // Once to see what is in it, ahead of time, and again to decode it if it was closed meanwhile.
        let (once, twice) = (NUM_VIDEOS as u64, 2 * NUM_VIDEOS as u64);
        assert!((once..=twice).contains(&opened), "{opened} opened");
        drop(epoch);
        assert_eq!(num_open_files(dataset.root()), 0);
    }
}
