//! Damaged files: an error, and never a panic, a hang, or an allocation that a header has asked for.
//!
//! Video codecs carry no checksums: a few wrong bits within a packet may decode to a wrong picture, and no reader can tell. Bytes that
//! are lost can be told, and are: holes, ends cut off, packets of noise.

use std::error::Error as _;
use std::ops::Range;

use decode::{Error, Layout, Pixels, Video};

use crate::clips::{self, Clip, Random};

/// Clips whose packets lie one after the other in `mdat`, with a sample table that says how long each is.
fn with_sample_table() -> impl Iterator<Item = Clip> {
    clips::numbered()
        .into_iter()
        .filter(|clip| clip.name != "fragmented")
}

fn after(bytes: &[u8], name: &[u8; 4]) -> usize {
    bytes.windows(4).position(|window| window == name).unwrap() + 4
}

fn packets(bytes: &[u8]) -> Vec<Range<usize>> {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    // stsz: version and flags, a common size (0: none), a count, and the sizes.
    let (stsz, mut start) = (after(bytes, b"stsz"), after(bytes, b"mdat"));
    let mut next = |len: usize| {
        start += len;
        start - len..start
    };
    (0..word(stsz + 8))
        .map(|i| next(word(stsz + 12 + 4 * i)))
        .collect()
}

/// Decodes all frames, one by one, and tells which are unlike the truth: (errors, wrong frames).
fn faults(video: &Video, clip: &Clip, truth: &[Vec<u8>]) -> (usize, usize) {
    let (mut errors, mut wrong) = (0, 0);
    for (frame, expected) in truth.iter().enumerate() {
        match clips::rgb(video, &[clip.time_s(frame)]) {
            Ok(found) if found[0] == *expected => {}
            Ok(_) => wrong += 1,
            Err(error) => {
                assert!(
                    matches!(error, Error::Decode { .. }) && error.is_damaged_file(),
                    "{}: {error:?}",
                    clip.name
                );
                errors += 1;
            }
        }
    }
    (errors, wrong)
}

#[test]
fn a_packet_that_is_a_hole_is_an_error_and_no_wrong_frame() {
    for clip in with_sample_table() {
        let bytes = clips::bytes(clip.name);
        let truth = clips::rgb(&clips::open(clip.name), &clip.times_s()).unwrap();
        for range in packets(&bytes) {
            let mut damaged = bytes.clone();
            damaged[range].fill(0);
            match clips::open_bytes(damaged, clip.name) {
                // The first frame cannot be decoded.
                Err(error) => assert!(
                    matches!(error, Error::Decode { .. }),
                    "{}: {error:?}",
                    clip.name
                ),
                Ok(video) => {
                    let (errors, wrong) = faults(&video, &clip, &truth);
                    assert!(
                        errors > 0 && wrong == 0,
                        "{}: {errors} errors, {wrong} wrong frames",
                        clip.name
                    );
                }
            }
        }
    }
}

/// Not all damage within a packet can be noticed, but nearly all of this kind is, with FFmpeg's strict error recognition. With its default
/// most of these frames come out wrong.
#[test]
fn packets_that_end_in_zeros_are_noticed() {
    for clip in with_sample_table().filter(|clip| ["b_frames", "open_gop"].contains(&clip.name)) {
        let bytes = clips::bytes(clip.name);
        let truth = clips::rgb(&clips::open(clip.name), &clip.times_s()).unwrap();
        let (mut errors, mut wrong) = (0, 0);
        for range in packets(&bytes).into_iter().skip(1) {
            let mut damaged = bytes.clone();
            damaged[range.start + range.len() / 2..range.end].fill(0);
            let found = faults(
                &clips::open_bytes(damaged, clip.name).unwrap(),
                &clip,
                &truth,
            );
            errors += found.0;
            wrong += found.1;
        }
        assert!(
            wrong * 20 < errors,
            "{}: {errors} errors, {wrong} wrong frames",
            clip.name
        );
    }
}

#[test]
fn a_hole_harms_the_same_frames_in_any_order() {
    for clip in
        with_sample_table().filter(|clip| ["b_frames", "open_gop", "hevc_cra"].contains(&clip.name))
    {
        let bytes = clips::bytes(clip.name);
        for hole in [3, 8, 15, 21, 30, 38] {
            let mut damaged = bytes.clone();
            damaged[packets(&bytes)[hole].clone()].fill(0);
            let open = || clips::open_bytes(damaged.clone(), clip.name).unwrap();
            let is_sound =
                |video: &Video, frame: usize| clips::rgb(video, &[clip.time_s(frame)]).is_ok();
            let alone: Vec<bool> = (0..40).map(|frame| is_sound(&mut open(), frame)).collect();
            for order in [
                (0..40).collect(),
                (0..40).rev().collect(),
                clips::shuffled(40, hole as u64),
            ] {
                let video = open();
                for frame in order {
                    assert_eq!(
                        is_sound(&video, frame),
                        alone[frame],
                        "{}, hole {hole}, frame {frame}",
                        clip.name
                    );
                }
            }
        }
    }
}

#[test]
fn an_error_names_the_frame_and_the_packet() {
    let mut bytes = clips::bytes("b_frames");
    let range = packets(&bytes)[25].clone();
    bytes[range].fill(0);
    let video = clips::open_bytes(bytes, "b_frames").unwrap();
    let error = clips::rgb(&video, &[3.9]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "b_frames.mp4: camera `wrist`: the frame at 3.9000 s cannot be decoded: at packet 25"
    );
    assert_eq!(
        error.source().unwrap().to_string(),
        "FFmpeg: Invalid data found when processing input"
    );
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for name in ["faststart", "b_frames", "fragmented", "av1_g2"] {
        let bytes = clips::bytes(name);
        let end = match name {
            // Fragments that are whole are a whole file: only the cut within one can be told.
            "fragmented" => after(&bytes, b"moof") - 8,
            "faststart" => bytes.len(),
            // The last box holds tags, which nobody reads.
            _ => after(&bytes, b"udta") - 8,
        };
        for len in (0..end).step_by(13) {
            let error = clips::open_bytes(bytes[..len].to_vec(), name)
                .expect_err("a part is not the whole");
            assert!(error.is_damaged_file(), "{name} cut at {len}: {error:?}");
        }
    }
}

#[test]
fn a_packet_past_the_end_is_named() {
    let bytes = clips::bytes("faststart");
    let packets = packets(&bytes);
    for (number, cut) in [
        (39, packets[39].end - 1),
        (20, packets[20].start + 1),
        (20, packets[20].start),
        (0, packets[0].start + 5),
    ] {
        let error = clips::open_bytes(bytes[..cut].to_vec(), "faststart").unwrap_err();
        let expected = format!(
            "faststart.mp4: camera `wrist`: the file is cut short: packet {number} starts at byte {} and is not complete when the file \
             ends, at byte {cut}; the copy or the recording was not finished",
            packets[number].start
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_is_no_video_is_named() {
    let check = |bytes: &[u8], expected: &str| {
        let error = clips::open_bytes(bytes.to_vec(), "a").unwrap_err();
        assert!(
            matches!(error, Error::Malformed { .. }) && error.to_string().contains(expected),
            "{error}"
        );
        assert!(error.source().is_some());
    };
    check(
        b"",
        "this is an empty file of 0 bytes, not a video; the copy or the recording was not finished",
    );
    check(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "this is a Git LFS pointer of 63 bytes, not a video; run `git lfs pull` in the dataset's repository",
    );
    check(
        b"\n<!DOCTYPE html><html></html>",
        "this is an HTML or XML page of 29 bytes, not a video",
    );
    check(
        b"PAR1 and more bytes",
        "this file of 19 bytes is no MP4 file: it begins with \"PAR1 and more by\"",
    );
    // C14: cut to 1 kB, so that the header at the end is gone.
    check(
        &clips::bytes("b_frames")[..1000],
        "this MP4 file of 1000 bytes has no sound header (moov)",
    );
}

#[test]
fn flipped_bits_panic_nowhere() {
    for clip in clips::numbered() {
        let bytes = clips::bytes(clip.name);
        for seed in 0..60 {
            let mut random = Random(seed);
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(8) {
                damaged[random.below(bytes.len())] ^= 1 << random.below(8);
            }
            decode_a_few(damaged, &clip, &mut random);
        }
    }
}

#[test]
fn flipped_bits_in_headers_panic_nowhere() {
    for clip in clips::numbered() {
        let bytes = clips::bytes(clip.name);
        let moov = after(&bytes, b"moov");
        let len = if clip.name == "fragmented" {
            bytes.len() - moov
        } else {
            (bytes.len() - moov).min(1200)
        };
        for seed in 0..150 {
            let mut random = Random(seed);
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(3) {
                damaged[moov + random.below(len)] =
                    [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6)];
            }
            decode_a_few(damaged, &clip, &mut random);
        }
    }
}

#[test]
fn noise_in_a_packet_panics_nowhere() {
    for clip in with_sample_table() {
        let bytes = clips::bytes(clip.name);
        for range in packets(&bytes) {
            let mut random = Random(range.start as u64);
            let mut damaged = bytes.clone();
            let from = if random.below(2) == 0 {
                range.start
            } else {
                range.start + range.len() / 2
            };
            damaged[from..range.end].fill_with(|| random.next() as u8);
            decode_a_few(damaged, &clip, &mut random);
        }
    }
}

/// Opens and decodes what it can: anything but a panic is right.
fn decode_a_few(bytes: Vec<u8>, clip: &Clip, random: &mut Random) {
    if let Ok(video) = clips::open_bytes(bytes, clip.name) {
        let info = video.info().clone();
        let mut out = vec![0; info.height * info.width * 3];
        for _ in 0..8 {
            let time_s = clip.time_s(random.below(clip.numbers.len()));
            let _ = clips::decode(&video, &[time_s], 0.1, Layout::Hwc, Pixels::U8(&mut out));
        }
    }
}
