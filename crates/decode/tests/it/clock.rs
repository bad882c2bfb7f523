//! Times: the file's own clock, the nearest frame, the tolerance.

use decode::{Error, Layout, Pixels, Video};

use crate::clips;

/// The counter in a frame of the long clips: three digits in base 16.
fn count(rgb: &[u8]) -> usize {
    // Luma 20 + 14 * digit, which limited range stretches by 255 / 219 from 16 on.
    let digit = |x: usize, y: usize| usize::from(rgb[(y * 32 + x) * 3]) * 219 / 255 / 14;
    digit(8, 8) + 16 * digit(24, 4) + 256 * digit(24, 12)
}

fn not_found(video: &Video, time_s: f64, tolerance_s: f64) -> Error {
    let mut out = vec![0; video.info().height * video.info().width * 3];
    let error = clips::decode(
        video,
        &[time_s],
        tolerance_s,
        Layout::Hwc,
        Pixels::U8(&mut out),
    )
    .unwrap_err();
    assert!(
        error.is_frame_not_found() && !error.is_damaged_file(),
        "{error}"
    );
    error
}

#[test]
fn a_clip_that_starts_at_5_s_is_asked_from_5_s_on() {
    let video = clips::open("offset");
    let frames = clips::rgb(&video, &[5.0, 8.9]).unwrap();
    assert_eq!(
        [clips::number(&frames[0], 64), clips::number(&frames[1], 64)],
        [0, 39]
    );
    let error = not_found(&video, 0.0, 1e-4);
    assert_eq!(
        error.to_string(),
        "offset.mp4: camera `wrist` has no frame within 0.0001 s of 0.000000 s; the nearest is at 5.000000 s, and the file's frames \
         span 5.0000 s to 9.0000 s"
    );
}

#[test]
fn a_time_past_the_end_tells_the_real_end() {
    // The case of merged datasets whose offsets were not reset.
    let error = not_found(&clips::open("b_frames"), 1058.0, 1e-4);
    let Error::FrameNotFound {
        file,
        camera,
        wanted_s,
        nearest_s,
        tolerance_s,
        start_s,
        end_s,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((file.as_str(), camera.as_str()), ("b_frames.mp4", "wrist"));
    assert_eq!(
        (wanted_s, nearest_s, tolerance_s, start_s, end_s),
        (1058.0, 3.9, 1e-4, 0.0, 4.0)
    );
}

#[test]
fn a_time_in_a_gap_is_not_the_neighbour() {
    let video = clips::open("uneven");
    not_found(&video, 0.3, 1e-4);
    assert_eq!(video.nearest(0.3).unwrap(), (2, 0.2));
    assert_eq!(video.nearest(0.41).unwrap(), (3, 0.5));
}

#[test]
fn the_tolerance_itself_is_within_the_tolerance() {
    for name in ["b_frames", "long_30", "long_30000_1001"] {
        let video = clips::open(name);
        let half_s = video.frame_interval_s() / 2.0;
        let mut out = vec![0; video.info().height * video.info().width * 3];
        for frame in 0..40 {
            let time_s = f64::from(frame) * video.frame_interval_s();
            for tolerance_s in [half_s, 1e-4] {
                let mut decode = |time_s| {
                    clips::decode(
                        &video,
                        &[time_s],
                        tolerance_s,
                        Layout::Hwc,
                        Pixels::U8(&mut out),
                    )
                };
                decode(time_s + tolerance_s).unwrap();
                decode(time_s - tolerance_s).unwrap();
            }
        }
        not_found(&video, -half_s - 1e-6, half_s);
        not_found(&video, 1e-4 + 1e-6, 1e-4);
    }
}

#[test]
fn times_that_are_no_numbers_are_refused() {
    let video = clips::open("b_frames");
    let mut out = vec![0; 64 * 48 * 3];
    for (time_s, tolerance_s) in [
        (f64::NAN, 0.1),
        (f64::INFINITY, 0.1),
        (0.0, f64::NAN),
        (0.0, -1e-9),
        (0.0, f64::INFINITY),
    ] {
        let error = clips::decode(
            &video,
            &[time_s],
            tolerance_s,
            Layout::Hwc,
            Pixels::U8(&mut out),
        )
        .unwrap_err();
        assert!(matches!(error, Error::InvalidTime { .. }), "{error}");
    }
    assert!(matches!(
        video.nearest(f64::NAN),
        Err(Error::InvalidTime { .. })
    ));
    let error = clips::decode(&video, &[0.0], -1.0, Layout::Hwc, Pixels::U8(&mut out)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "b_frames.mp4: camera `wrist`: tolerance_s must be finite and not negative, found -1"
    );
}

/// 200 episodes of 7 to 17 frames in one file, whose `from_timestamp` is a running sum in `f32`, and whose times are `frame / fps` in `f32`.
#[test]
fn late_episodes_with_rounded_offsets_are_right_at_both_ends() {
    for (name, fps) in [
        ("long_30", 30.0_f64),
        ("long_30000_1001", 30_000.0 / 1001.0),
    ] {
        let video = clips::open(name);
        let half_s = video.frame_interval_s() / 2.0;
        assert!((half_s - 0.5 / fps).abs() < 1e-6);
        let (mut first, mut from_s) = (0, 0.0_f32);
        for episode in 0..200 {
            let length = 7 + episode * 7 % 11;
            for frame in [0, length - 1] {
                let time_s = f64::from(from_s) + f64::from(frame as f32 / fps as f32);
                let mut rgb = vec![0; 32 * 16 * 3];
                clips::decode(&video, &[time_s], half_s, Layout::Hwc, Pixels::U8(&mut rgb))
                    .unwrap();
                assert_eq!(
                    count(&rgb),
                    first + frame,
                    "{name}, episode {episode}, frame {frame}"
                );
                assert_eq!(video.nearest(time_s).unwrap().0, first + frame);
                // With the usual tolerance a rounded time may be refused, but is never another frame's.
                match clips::rgb(&video, &[time_s]) {
                    Ok(frames) => assert_eq!(count(&frames[0]), first + frame),
                    Err(error) => assert!(error.is_frame_not_found(), "{error}"),
                }
                not_found(&video, time_s + 2e-3, 1e-4);
            }
            first += length;
            from_s += length as f32 / fps as f32;
        }
        assert!(first <= video.info().num_frames && video.info().num_frames == 2399);
    }
}
