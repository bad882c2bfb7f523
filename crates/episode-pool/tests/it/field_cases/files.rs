//! Files that are missing, cut short, or something else.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use episode_pool::pool_core::Topology;
use episode_pool::{Error, Loader, LoaderOptions};
use testkit::video::Encoder;
use testkit::{Camera, Dataset, Spec, Split};

use super::{CAMERA, assert_says, camera, chain, codes, epoch_error, failure, own_code};
use crate::support::{builder, samples};

const LFS_POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
     oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

const WEB_PAGE: &str =
    "<!DOCTYPE html>\n<html><head><title>404</title></head><body>not found</body></html>\n";

/// Takes away the right to read a file. Where that does not hinder its owner (root), the file becomes a link to itself.
fn make_unreadable(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
    if File::open(path).is_ok() {
        fs::remove_file(path).unwrap();
        symlink(path, path).unwrap();
    }
}

/// Four episodes with a video each: the first is sound, the others' are cut to 1 kB, unreadable, and renamed.
fn damaged_videos() -> Dataset {
    let cameras = vec![Camera {
        files: Split::Every(1),
        ..camera()
    }];
    let dataset = Spec {
        cameras,
        ..Spec::new(10, &[5, 300, 6, 3])
    }
    .write();
    let video = |file| dataset.video_file(CAMERA, file);
    let bytes = fs::read(video(1)).unwrap();
    assert!(bytes.len() > 1024);
    fs::write(video(1), &bytes[..1024]).unwrap();
    make_unreadable(&video(2));
    fs::rename(video(3), video(3).with_extension("mp4.bak")).unwrap();
    dataset
}

fn video_key(file: usize) -> String {
    format!("videos/{CAMERA}/chunk-000/file-00{file}.mp4")
}

/// Any exception was taken for the end of a shard: no samples, no error, exit code 0.
#[test]
fn a_video_that_cannot_be_read_ends_the_epoch_with_an_error() {
    let dataset = damaged_videos();
    for episode in [1, 2] {
        let pool = builder(dataset.root()).episodes([episode]).build().unwrap();
        let mut epoch = pool.epoch(0).unwrap();
        let first = epoch.next().expect("an error is not the end");
        assert_says(&chain(&first.unwrap_err()), &[&video_key(episode)]);
        assert!(epoch.next().is_none());
        assert!(!epoch.report().coverage.exactly_once);
    }
    let pool = builder(dataset.root()).episodes([0]).build().unwrap();
    for sample in samples(&pool, 0) {
        assert_eq!(codes(&sample, CAMERA), [own_code(&sample)]);
    }
}

#[test]
fn a_video_that_is_not_there_is_told_before_anything_is_emitted() {
    let dataset = damaged_videos();
    let message = chain(&builder(dataset.root()).build().unwrap_err());
    assert_says(&message, &[&video_key(3), "missing", "episode 3", CAMERA]);
}

#[test]
fn a_damaged_video_is_named_with_episode_camera_frame_and_cause() {
    let dataset = damaged_videos();
    let pool = builder(dataset.root())
        .episodes([1])
        .shuffle(false)
        .build()
        .unwrap();
    let message = chain(&epoch_error(&pool));
    let place = format!("camera `{CAMERA}` of episode 1, frame 0");
    assert_says(&message, &[&video_key(1), &place, "cut short", "1024"]);
}

#[test]
fn a_loader_never_ends_short_without_an_error() {
    let dataset = damaged_videos();
    for num_workers in [0, 2, 4] {
        let topology = Topology::new(0, 1, 0, num_workers).unwrap();
        let pool = builder(dataset.root())
            .exclude_episodes([3])
            .topology(topology)
            .build()
            .unwrap();
        let mut epoch = Loader::new(&pool, LoaderOptions::default())
            .unwrap()
            .epoch(0)
            .unwrap();
        let mut delivered = 0;
        let mut errors = Vec::new();
        for batch in epoch.by_ref() {
            match batch {
                Ok(batch) => delivered += batch.len(),
                Err(error) => errors.push(error),
            }
        }
        assert!(
            delivered < 311 && errors.len() == 1,
            "{delivered} samples, {errors:?}"
        );
        assert!(!epoch.coverage().exactly_once);
    }
}

/// What can stand in the place of a parquet file, and what is said of it.
fn replacements(whole: &[u8]) -> [(Vec<u8>, &'static [&'static str]); 5] {
    [
        (
            whole[..whole.len() - 8].to_vec(),
            &["from `PAR1", "not finalised"],
        ),
        (
            whole[..whole.len() / 2].to_vec(),
            &["from `PAR1", "not finalised"],
        ),
        (Vec::new(), &["from `` to ``", "not finalised"]),
        (
            LFS_POINTER.into(),
            &[
                "from `version https://git-lfs",
                "Git LFS pointer",
                "git lfs pull",
            ],
        ),
        (
            WEB_PAGE.into(),
            &["from `<!DOCTYPE html>", "</html>", "web page"],
        ),
    ]
}

/// A recording was broken off, Git LFS had not fetched the file, or a server had answered with a page.
#[test]
fn a_table_that_is_no_parquet_file_is_told_by_what_it_is() {
    for path in [
        "data/chunk-000/file-000.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
        "meta/tasks.parquet",
    ] {
        let dataset = Spec::new(10, &[5, 3]).write();
        let whole = fs::read(dataset.root().join(path)).unwrap();
        for (bytes, parts) in replacements(&whole) {
            fs::write(dataset.root().join(path), &bytes).unwrap();
            let message = failure(dataset.root());
            assert_says(&message, &[path, &format!("({} bytes", bytes.len())]);
            assert_says(&message, parts);
            assert!(!message.contains("download"), "a local file: {message}");
        }
        fs::write(dataset.root().join(path), &whole).unwrap();
        assert!(
            builder(dataset.root())
                .build()
                .unwrap()
                .epoch(0)
                .unwrap()
                .all(|sample| sample.is_ok())
        );
    }
}

#[test]
fn info_json_that_is_no_json_is_told_by_what_it_is() {
    let dataset = Spec::new(10, &[5, 3]).write();
    let path = dataset.root().join("meta/info.json");
    let whole = fs::read_to_string(&path).unwrap();
    for (text, part) in [
        (LFS_POINTER, "git lfs pull"),
        (WEB_PAGE, "web page"),
        ("", "empty"),
        (&whole[..whole.len() / 2], "line"),
    ] {
        fs::write(&path, text).unwrap();
        assert_says(&failure(dataset.root()), &["meta/info.json", part]);
    }
}

#[test]
fn a_video_that_is_no_video_is_told_by_what_it_is() {
    let dataset = Spec {
        cameras: vec![camera()],
        ..Spec::new(10, &[5, 3])
    }
    .write();
    let path = dataset.video_file(CAMERA, 0);
    let whole = fs::read(&path).unwrap();
    for (bytes, part) in [
        (LFS_POINTER.as_bytes(), "git lfs pull"),
        (WEB_PAGE.as_bytes(), "HTML"),
        (b"", "empty"),
        (&whole[..whole.len() / 2], "cut short"),
    ] {
        fs::write(&path, bytes).unwrap();
        let message = failure(dataset.root());
        assert_says(&message, &[CAMERA, "file-000.mp4", part]);
    }
}

/// A cut in any place, before or after the file's index. (Its very last bytes may be of no use to anyone.)
#[test]
fn a_video_cut_anywhere_is_an_error_and_never_a_short_epoch() {
    for movflags in ["+faststart", "-faststart"] {
        let encoder = Encoder::new("libx264", 10, &["-crf", "12", "-movflags", movflags]);
        let cameras = vec![Camera {
            encoder,
            ..camera()
        }];
        let dataset = Spec {
            cameras,
            ..Spec::new(10, &[5, 3])
        }
        .write();
        let path = dataset.video_file(CAMERA, 0);
        let whole = fs::read(&path).unwrap();
        let pool = builder(dataset.root()).build().unwrap();
        let mut refused = 0;
        for len in (0..40).map(|part| whole.len() * part / 40) {
            fs::write(&path, &whole[..len]).unwrap();
            match pool.epoch(0).unwrap().collect::<Result<Vec<_>, _>>() {
                Ok(emitted) => {
                    assert_eq!(emitted.len(), 8);
                    for sample in &emitted {
                        assert_eq!(codes(sample, CAMERA), [own_code(sample)]);
                    }
                }
                Err(error) => {
                    assert_says(&chain(&error), &[&video_key(0), CAMERA, "episode "]);
                    refused += 1;
                }
            }
        }
        assert!(refused >= 38, "{movflags}: {refused} of 40");
    }
}

#[test]
fn a_missing_table_is_named_with_what_needs_it() {
    for path in [
        "meta/info.json",
        "meta/tasks.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
        "data/chunk-000/file-000.parquet",
    ] {
        let dataset = Spec::new(10, &[5, 3]).write();
        fs::remove_file(dataset.root().join(path)).unwrap();
        assert_says(&failure(dataset.root()), &[path, "missing"]);
    }
    let dataset = Spec::new(10, &[5, 3]).write();
    fs::remove_dir_all(dataset.root()).unwrap();
    let error = builder(dataset.root()).build().unwrap_err();
    assert!(matches!(error, Error::Source(_)), "{error:?}");
}

#[test]
fn a_video_that_cannot_be_read_is_named_with_episode_camera_frame_and_cause() {
    let dataset = damaged_videos();
    for (episode, causes) in [
        (1, &["cut short", "1024"][..]),
        (
            2,
            &["Permission denied", "Too many levels of symbolic links"],
        ),
    ] {
        let pool = builder(dataset.root())
            .episodes([episode])
            .shuffle(false)
            .build()
            .unwrap();
        let message = chain(&epoch_error(&pool));
        let place = format!("camera `{CAMERA}` of episode {episode}, frame 0");
        assert_says(&message, &[&video_key(episode), &place]);
        assert!(
            causes.iter().any(|cause| message.contains(cause)),
            "{message}"
        );
    }
}
