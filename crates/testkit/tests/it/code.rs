//! The burned-in code is the one of the fixtures, and survives a video.

use testkit::fixtures::{plain_frame, windowed_frame};
use testkit::video::{self, Encoder, VideoOptions};
use testkit::{Code, Truth, code, read_png};

fn every_bit() -> Vec<Code> {
    let one = |i: usize| match i {
        0..8 => Code {
            episode: 1 << i,
            frame: 0,
            camera: 0,
        },
        8..18 => Code {
            episode: 0,
            frame: 1 << (i - 8),
            camera: 0,
        },
        _ => Code {
            episode: 0,
            frame: 0,
            camera: 1 << (i - 18),
        },
    };
    let ends = [
        Code {
            episode: 0,
            frame: 0,
            camera: 0,
        },
        Code {
            episode: 255,
            frame: 1023,
            camera: 3,
        },
    ];
    (0..20).map(one).chain(ends).collect()
}

#[test]
fn what_is_painted_is_read() {
    for (height, width) in [
        (64, 96),
        (96, 64),
        (20, 16),
        (240, 320),
        (480, 640),
        (33, 47),
    ] {
        for code in every_bit() {
            assert_eq!(
                code::read(&code::paint(code, height, width), height, width),
                code,
                "{width}x{height}"
            );
        }
    }
}

#[test]
fn the_stored_pictures_of_the_fixtures_carry_it() {
    let cameras = [
        ("pusht_like", "observation.image", 0),
        ("aloha_like", "observation.images.left_wrist", 1),
        ("aloha_like", "observation.images.right_wrist", 2),
        ("hevc_small", "observation.images.front", 0),
        ("image_only", "observation.image", 0),
    ];
    for (name, key, camera) in cameras {
        let mut pictures = 0;
        for item in Truth::read(name).plain {
            let Some(path) = plain_frame(name, item.dataset_index, key) else {
                continue;
            };
            let picture = read_png(&path);
            let number = |key: &str| item.item[key].as_u64().map(|n| n as usize);
            let code = code::read(&picture.pixels, picture.height, picture.width);
            assert_eq!(
                (Some(code.episode), Some(code.frame)),
                (number("episode_index"), number("frame_index")),
                "{path:?}"
            );
            assert_eq!(code.camera, camera, "{path:?}");
            pictures += 1;
        }
        assert!(pictures > 0, "{name} has no stored picture of {key}");
    }
    assert!(windowed_frame("image_only", 0, "observation.image", 2).is_some());
    assert!(windowed_frame("image_only", 0, "observation.image", 3).is_none());
}

#[test]
#[should_panic(expected = "does not fit into 20 bits")]
fn a_number_that_does_not_fit_is_refused() {
    code::paint(
        Code {
            episode: 256,
            frame: 0,
            camera: 0,
        },
        64,
        96,
    );
}

#[test]
#[should_panic(expected = "has no room")]
fn a_picture_without_room_is_refused() {
    code::paint(Code::wrapping(0, 0, 0), 12, 16);
}

#[test]
fn it_survives_encoding() {
    let folder = tempfile::TempDir::new().expect("a temporary folder can be made");
    let encoders = [
        ("h264", Encoder::default()),
        (
            "h264-b",
            Encoder::new("libx264", 30, &["-crf", "12", "-bf", "3"]),
        ),
        (
            "hevc",
            Encoder::new(
                "libx265",
                20,
                &["-crf", "12", "-x265-params", "log-level=error"],
            ),
        ),
    ];
    for (name, encoder) in encoders {
        let path = folder.path().join(format!("{name}.mp4"));
        let options = VideoOptions {
            encoder,
            ..VideoOptions::new(64, 96, (30_000, 1001))
        };
        let codes = every_bit();
        video::encode(
            &path,
            &options,
            codes.iter().map(|&code| code::paint(code, 64, 96)),
        );
        let pictures = video::decode(&path, 64, 96);
        let read: Vec<Code> = pictures
            .iter()
            .map(|picture| code::read(&picture.pixels, 64, 96))
            .collect();
        assert_eq!(read, codes, "{name}");
    }
}

#[test]
#[should_panic(expected = "Unknown encoder 'none-such'")]
fn what_ffmpeg_says_is_shown() {
    let folder = tempfile::TempDir::new().expect("a temporary folder can be made");
    let options = VideoOptions {
        encoder: Encoder::new("none-such", 2, &[]),
        ..VideoOptions::new(64, 96, 30)
    };
    video::encode(
        &folder.path().join("x.mp4"),
        &options,
        [vec![0; 64 * 96 * 3]],
    );
}
