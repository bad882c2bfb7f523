//! Videos that a simple reader gets wrong: late starts, edit lists, open GOPs, ten bits.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use episode_pool::decode::{Video, VideoInfo, VideoOptions as DecodeOptions};
use testkit::video::{self, Encoder, VideoOptions};
use testkit::{Camera, Code, Dataset, FromTimestamp, Spec, code};

use super::{CAMERA, assert_says, camera, chain, codes, epoch_error, field, own_code};
use crate::support::{builder, samples, windows};

/// Changes the dataset's only video by a run of `ffmpeg` with these arguments before and after `-i`.
fn remux(dataset: &Dataset, before: &[&str], after: &[&str]) {
    let path = dataset.video_file(CAMERA, 0);
    let original = path.with_extension("original");
    std::fs::rename(&path, &original).unwrap();
    let mut args: Vec<OsString> = before.iter().map(OsString::from).collect();
    args.extend([
        "-f".into(),
        "mp4".into(),
        "-i".into(),
        original.into_os_string(),
    ]);
    args.extend(after.iter().map(OsString::from));
    args.push(path.into_os_string());
    video::ffmpeg(args);
}

fn info(path: &Path) -> VideoInfo {
    let file = Box::new(File::open(path).unwrap());
    Video::open(file, "clip.mp4", CAMERA, &DecodeOptions::default())
        .unwrap()
        .info()
        .clone()
}

/// Compares every picture of a shuffled epoch, and of one with windows, with a plain decode from the start.
fn assert_random_access_equals_sequential(dataset: &Dataset) {
    let sequential = video::decode(&dataset.video_file(CAMERA, 0), 64, 96);
    let pool = builder(dataset.root())
        .episode_pool_size(2)
        .build()
        .unwrap();
    let emitted = samples(&pool, 0);
    assert_eq!(emitted.len(), sequential.len());
    for sample in &emitted {
        let index = field(sample, "index").as_i64().unwrap()[0] as usize;
        assert_eq!(
            field(sample, CAMERA).as_u8().unwrap(),
            sequential[index].pixels,
            "frame {index}"
        );
    }
    let pool = builder(dataset.root())
        .delta_timestamps(windows(&[
            (CAMERA, &[0.7, -0.3, 0.0]),
            ("index", &[0.7, -0.3, 0.0]),
        ]))
        .build()
        .unwrap();
    for sample in samples(&pool, 0) {
        let indices = field(&sample, "index").as_i64().unwrap();
        let pictures = field(&sample, CAMERA)
            .as_u8()
            .unwrap()
            .chunks_exact(64 * 96 * 3);
        for (&index, picture) in indices.iter().zip(pictures) {
            assert_eq!(picture, sequential[index as usize].pixels, "frame {index}");
        }
    }
}

/// A clip of two episodes that starts at 5 s, and what the episode table adds to the offsets.
fn late_clip(shift: fn(testkit::Segment) -> f64) -> Dataset {
    let camera = Camera {
        from_timestamp: FromTimestamp::Shifted(shift),
        ..camera()
    };
    let dataset = Spec {
        cameras: vec![camera],
        ..Spec::new(10, &[20, 20])
    }
    .write();
    remux(&dataset, &[], &["-c", "copy", "-output_ts_offset", "5"]);
    let info = info(&dataset.video_file(CAMERA, 0));
    assert_eq!(
        (info.start_s, info.num_frames),
        (5.0, 40),
        "the clip starts late, or this shows nothing"
    );
    dataset
}

/// The start of the file's clock was ignored when a time was turned into a frame's number.
#[test]
fn offsets_count_from_the_files_clock_even_where_that_starts_late() {
    for shift in [|_| 5.0, |_| 4.951_f64] as [fn(testkit::Segment) -> f64; 2] {
        let dataset = late_clip(shift);
        let emitted = samples(&builder(dataset.root()).build().unwrap(), 0);
        assert_eq!(emitted.len(), 40);
        for sample in &emitted {
            assert_eq!(codes(sample, CAMERA), [own_code(sample)]);
        }
    }
}

#[test]
fn an_offset_before_the_files_first_frame_is_an_error_with_both_times() {
    for (shift, wanted) in
        [(|_| 0.0, "0.0000 s"), (|_| 4.94, "4.9400 s")] as [(fn(testkit::Segment) -> f64, &str); 2]
    {
        let dataset = late_clip(shift);
        let pool = builder(dataset.root()).episodes([0]).build().unwrap();
        let message = chain(&epoch_error(&pool));
        assert_says(
            &message,
            &[CAMERA, "episode 0", "file-000.mp4", wanted, "5.0000 s"],
        );
    }
}

/// Packets that an edit list cuts away were not decoded, although the first frames shown need them.
#[test]
fn frames_cut_away_by_an_edit_list_are_decoded_and_not_shown() {
    let dataset = Spec {
        cameras: vec![camera()],
        ..Spec::new(10, &[34])
    }
    .write();
    let path = dataset.video_file(CAMERA, 0);
    let options = VideoOptions {
        encoder: Encoder::new("libx264", 20, &["-crf", "12", "-bf", "3"]),
        ..VideoOptions::new(64, 96, 10)
    };
    let pictures = (0..40).map(|frame| {
        code::paint(
            Code {
                episode: 0,
                frame,
                camera: 0,
            },
            64,
            96,
        )
    });
    video::encode(&path, &options, pictures);
    remux(&dataset, &["-ss", "0.55"], &["-c", "copy"]);
    let info = info(&path);
    assert_eq!((info.num_frames, info.start_s), (34, 0.0));

    let emitted = samples(&builder(dataset.root()).build().unwrap(), 0);
    assert_eq!(emitted.len(), 34);
    for sample in &emitted {
        assert_eq!(
            codes(sample, CAMERA),
            [Code {
                episode: 0,
                frame: sample.frame_index + 6,
                camera: 0
            }]
        );
    }
    assert_random_access_equals_sequential(&dataset);
}

/// After a seek to a keyframe of an open GOP nothing came until much later, or its leading pictures were lost.
fn assert_open_gops_are_right(encoder: Encoder) {
    let cameras = vec![Camera {
        encoder,
        ..camera()
    }];
    let dataset = Spec {
        cameras,
        ..Spec::new(10, &[13, 9, 18])
    }
    .write();
    assert!(info(&dataset.video_file(CAMERA, 0)).num_keyframes > 3);
    assert_random_access_equals_sequential(&dataset);
    for sample in samples(&builder(dataset.root()).build().unwrap(), 0) {
        assert_eq!(codes(&sample, CAMERA), [own_code(&sample)]);
    }
}

#[test]
fn every_frame_of_an_open_gop_of_hevc_equals_a_sequential_decode() {
    let params = "open-gop=1:keyint=10:min-keyint=10:bframes=3:scenecut=0:log-level=none";
    assert_open_gops_are_right(Encoder::new(
        "libx265",
        10,
        &["-crf", "12", "-x265-params", params],
    ));
}

/// Ten-bit pictures were converted as if they had eight, and came out as noise.
#[test]
fn ten_bit_video_gives_the_right_eight_bit_pictures() {
    let hevc = ["-crf", "12", "-x265-params", "log-level=none"];
    for encoder in [
        Encoder::new("libx264", 10, &["-crf", "12"]),
        Encoder::new("libx265", 10, &hevc),
    ] {
        let name = encoder.name.clone();
        let encoder = Encoder {
            pixel_format: "yuv420p10le".to_owned(),
            ..encoder
        };
        let dataset = Spec {
            cameras: vec![Camera {
                encoder,
                ..camera()
            }],
            ..Spec::new(10, &[12, 9])
        }
        .write();
        assert_eq!(
            info(&dataset.video_file(CAMERA, 0)).pixel_format,
            "yuv420p10le"
        );
        for sample in samples(&builder(dataset.root()).build().unwrap(), 0) {
            assert_eq!(codes(&sample, CAMERA), [own_code(&sample)], "{name}");
            let painted = code::paint(own_code(&sample), 64, 96);
            let found = field(&sample, CAMERA).as_u8().unwrap();
            let difference: u32 = found
                .iter()
                .zip(&painted)
                .map(|(a, b)| u32::from(a.abs_diff(*b)))
                .sum();
            let mean = f64::from(difference) / painted.len() as f64;
            assert!(mean < 2.0, "{name}: a mean difference of {mean}");
        }
    }
}

#[test]
fn every_frame_of_an_open_gop_of_h264_equals_a_sequential_decode() {
    let params = "open-gop=1:keyint=10:min-keyint=10:bframes=3:scenecut=0";
    assert_open_gops_are_right(Encoder::new(
        "libx264",
        10,
        &["-crf", "12", "-x264-params", params],
    ));
}
