//! Depth maps: their own 12-bit codes, not colours.

use episode_pool::{ElementType, FrameType};
use serde_json::json;
use testkit::video::Encoder;
use testkit::{Camera, Dataset, Spec};

use super::{CAMERA, assert_says, camera, chain, codes, epoch_error, field, own_code};
use crate::support::{builder, samples, windows};

const DEPTH: &str = "observation.images.depth";

/// The code of every pixel of a frame; the codes have bits above the eighth.
const CODES: [u16; 4] = [64, 1024, 2048, 4032];

/// A depth camera of four frames an episode, and a colour camera beside it.
fn spec() -> Spec {
    let depth = Camera {
        raw_format: "gray12le".to_owned(),
        paint: |code, height, width| CODES[code.frame].to_le_bytes().repeat(height * width),
        encoder: Encoder {
            pixel_format: "gray12le".to_owned(),
            ..Encoder::new(
                "libx265",
                10,
                &["-x265-params", "lossless=1:log-level=none"],
            )
        },
        ..Camera::video(DEPTH)
    };
    // In the order of their names, which `edit_info` makes that of info.json.
    Spec {
        cameras: vec![depth, camera()],
        ..Spec::new(10, &[4, 3])
    }
}

fn declare(dataset: &Dataset, spelling: &str, is_depth_map: bool) {
    dataset.edit_info(|info| {
        let camera = &mut info["features"][DEPTH];
        camera["shape"] = json!([64, 96, if is_depth_map { 1 } else { 3 }]);
        let details = camera["info"].as_object_mut().unwrap();
        details.remove("is_depth_map");
        details.insert(spelling.to_owned(), is_depth_map.into());
        details.insert("video.depth_unit".to_owned(), "mm".into());
        details.insert("video.depth_min".to_owned(), 10.into());
        details.insert("video.depth_max".to_owned(), 5000.0.into());
    });
}

/// 12-bit codes were cut to 8, and their unit was lost.
#[test]
fn depth_keeps_its_codes_and_unit_under_both_spellings() {
    let dataset = spec().write();
    for spelling in ["is_depth_map", "video.is_depth_map"] {
        declare(&dataset, spelling, true);
        for frame_type in [FrameType::U8, FrameType::F32] {
            let pool = builder(dataset.root())
                .frame_type(frame_type)
                .delta_timestamps(windows(&[(DEPTH, &[0.0, 0.1])]))
                .build()
                .unwrap();
            let depth = pool
                .fields()
                .iter()
                .find(|field| field.key() == DEPTH)
                .unwrap();
            assert_eq!(
                (depth.element_type(), depth.shape()),
                (ElementType::U16, &[2, 64, 96, 1][..])
            );
            let feature = pool.metadata().info().feature(DEPTH).unwrap();
            assert_eq!(feature.info_text("depth_unit"), Some("mm"));
            assert_eq!(feature.info_number("depth_min"), Some(10.0));
            assert_eq!(feature.info_number("depth_max"), Some(5000.0));
            let emitted = samples(&pool, 0);
            assert_eq!(emitted.len(), 7);
            for sample in &emitted {
                let last = [3, 2][sample.episode_index];
                let frames = [sample.frame_index, (sample.frame_index + 1).min(last)];
                let pictures = field(sample, DEPTH).as_u16().unwrap().chunks_exact(64 * 96);
                for (frame, picture) in frames.into_iter().zip(pictures) {
                    assert!(
                        picture.iter().all(|&code| code == CODES[frame]),
                        "{spelling}, frame {frame}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_colour_camera_beside_a_depth_camera_is_read_as_ever() {
    let dataset = spec().write();
    declare(&dataset, "is_depth_map", true);
    for sample in samples(&builder(dataset.root()).build().unwrap(), 0) {
        let code = testkit::Code {
            camera: 1,
            ..own_code(&sample)
        };
        assert_eq!(codes(&sample, CAMERA), [code]);
    }
}

#[test]
fn depth_declared_as_colour_and_colour_declared_as_depth_are_refused_by_name() {
    let dataset = spec().write();
    declare(&dataset, "is_depth_map", false);
    let message = chain(&epoch_error(&builder(dataset.root()).build().unwrap()));
    assert_says(&message, &[DEPTH, "depth stream", "gray12le"]);

    declare(&dataset, "is_depth_map", true);
    dataset.edit_info(|info| {
        info["features"][CAMERA]["info"]["is_depth_map"] = true.into();
    });
    let message = chain(&epoch_error(&builder(dataset.root()).build().unwrap()));
    assert_says(&message, &[CAMERA, "colour stream", "yuv420p"]);
}
