//! What went wrong for people with other loaders, each kind of fault shown to be absent here, or to be an error that names
//! its cause.
//!
//! Each test writes a small dataset with the fault in it. Pictures carry the code of their frame, and every element of
//! `observation.state` is its row's number in the dataset, so that a wrong frame or row shows itself.

mod clips;
mod depth;
mod files;
mod mixing;
mod open_files;
mod published;
mod resuming;
mod rows;
mod shapes;
mod sharding;
mod tasks;
mod videos;

use std::path::Path;

use episode_pool::{Array, EpisodePool, Error, Sample};
use testkit::{Camera, Code, code};

use crate::support::builder;

/// The camera of datasets that have one.
const CAMERA: &str = "observation.images.front";

/// The camera that most of these datasets have: 64x96 pixels, H.264.
fn camera() -> Camera {
    Camera::video(CAMERA)
}

fn field<'a>(sample: &'a Sample, key: &str) -> &'a Array {
    sample
        .fields
        .get(key)
        .unwrap_or_else(|| panic!("no field {key}"))
}

/// The codes painted into a sample's pictures of a camera: one, or one a delta.
fn codes(sample: &Sample, camera: &str) -> Vec<Code> {
    let array = field(sample, camera);
    let [height, width, 3] = array.shape()[array.shape().len() - 3..] else {
        panic!("{camera} is not [.., H, W, 3]")
    };
    let pictures = array.as_u8().unwrap().chunks_exact(height * width * 3);
    pictures
        .map(|picture| code::read(picture, height, width))
        .collect()
}

/// What the pictures of a frame of the only camera should say.
fn own_code(sample: &Sample) -> Code {
    Code::wrapping(sample.episode_index, sample.frame_index, 0)
}

/// An error and its causes, as a person reads them.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// The error that ends the pool's first epoch.
fn epoch_error(pool: &EpisodePool) -> Error {
    let error = pool.epoch(0).unwrap().find_map(Result::err);
    error.unwrap_or_else(|| panic!("the epoch ended without an error"))
}

/// How a dataset fails, at whatever step: the whole chain of messages.
fn failure(root: &Path) -> String {
    match builder(root).build() {
        Err(error) => chain(&error),
        Ok(pool) => chain(&epoch_error(&pool)),
    }
}

/// Checks that a message holds all of these parts.
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}
