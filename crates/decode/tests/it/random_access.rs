//! Any frame, in any order, is the frame of a plain sequential decode, and the right one.

use decode::{Layout, Pixels};
use proptest::prelude::*;

use crate::clips::{self, Clip};

/// Frames of all numbered clips, asked for in the orders that `orders` gives, one request each.
fn check(orders: impl Fn(&Clip) -> Vec<Vec<usize>>) {
    for clip in clips::numbered() {
        let video = clips::open(clip.name);
        let width = video.info().width;
        let sequential = clips::rgb(&clips::open(clip.name), &clip.times_s()).unwrap();
        for order in orders(&clip) {
            let times_s: Vec<f64> = order.iter().map(|&frame| clip.time_s(frame)).collect();
            let frames = clips::rgb(&video, &times_s)
                .unwrap_or_else(|error| panic!("{}, {order:?}: {error}", clip.name));
            for (&frame, rgb) in order.iter().zip(&frames) {
                assert_eq!(
                    clips::number(rgb, width),
                    clip.numbers[frame],
                    "{}, {order:?}",
                    clip.name
                );
                assert!(
                    *rgb == sequential[frame],
                    "{}, frame {frame} of {order:?} differs from the sequential decode",
                    clip.name
                );
            }
        }
    }
}

fn one_by_one(order: Vec<usize>) -> Vec<Vec<usize>> {
    order.into_iter().map(|frame| vec![frame]).collect()
}

#[test]
fn forward() {
    check(|clip| one_by_one((0..clip.numbers.len()).collect()));
}

#[test]
fn backward() {
    check(|clip| one_by_one((0..clip.numbers.len()).rev().collect()));
}

#[test]
fn shuffled() {
    for seed in 0..5 {
        check(|clip| one_by_one(clips::shuffled(clip.numbers.len(), seed)));
    }
}

#[test]
fn the_same_again_and_again() {
    check(|clip| {
        one_by_one(
            (0..clip.numbers.len())
                .flat_map(|frame| [frame, frame, frame])
                .collect(),
        )
    });
}

#[test]
fn with_a_stride_within_and_across_gops() {
    for stride in [2, 3, 7, 11] {
        check(|clip| one_by_one((0..clip.numbers.len()).step_by(stride).collect()));
    }
}

#[test]
fn the_first_request_of_a_fresh_video() {
    for clip in clips::numbered() {
        for frame in 0..clip.numbers.len() {
            let video = clips::open(clip.name);
            let rgb = clips::rgb(&video, &[clip.time_s(frame)])
                .unwrap_or_else(|error| panic!("{} {frame}: {error}", clip.name));
            assert_eq!(
                clips::number(&rgb[0], video.info().width),
                clip.numbers[frame],
                "{}",
                clip.name
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Requests of several frames, unsorted and with repetitions.
    #[test]
    fn requests_of_any_frames(seed: u64) {
        check(|clip| {
            let mut random = clips::Random(seed);
            (0..8).map(|_| (0..=random.below(6)).map(|_| random.below(clip.numbers.len())).collect()).collect()
        });
    }
}

#[test]
fn no_time_is_no_frame() {
    clips::decode(
        &clips::open("b_frames"),
        &[],
        1e-4,
        Layout::Hwc,
        Pixels::U8(&mut []),
    )
    .unwrap();
}

#[test]
fn info_counts_what_is_shown() {
    for clip in clips::numbered() {
        let video = clips::open(clip.name);
        let info = video.info();
        assert_eq!(info.num_frames, clip.numbers.len(), "{}", clip.name);
        assert!(
            (info.start_s - clip.time_s(0)).abs() < 1e-9,
            "{}",
            clip.name
        );
        // Uneven frames have no one interval, nor does the file say how long the last one is shown.
        if clip.name != "uneven" {
            let end_s = clip.time_s(clip.numbers.len() - 1) + 0.1;
            assert!(
                (info.end_s - end_s).abs() < 1e-9,
                "{}: {}",
                clip.name,
                info.end_s
            );
            assert!(
                (info.avg_fps - 10.0).abs() < 1e-9,
                "{}: {}",
                clip.name,
                info.avg_fps
            );
            assert!(
                (video.frame_interval_s() - 0.1).abs() < 1e-9,
                "{}",
                clip.name
            );
        }
    }
    let info = clips::open("open_gop").info().clone();
    assert_eq!(
        (
            info.codec.as_str(),
            info.decoder.as_str(),
            info.pixel_format.as_str()
        ),
        ("h264", "h264", "yuv420p")
    );
    assert_eq!((info.width, info.height, info.num_keyframes), (64, 48, 4));
    assert_eq!(clips::open("av1_g2").info().decoder, "libdav1d");
}
