//! Files that are not what they should be: each says what it is, and what to do.

use std::error::Error as _;

use dataset::{Damage, Error, Metadata};

use crate::memory::Memory;
use crate::small::{DATA, EPISODES, Small, TASKS, read_rows};

const LFS_POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
    oid sha256:4cac19622fc3ada9c0fdeadb33f88f367b541f38b89102a3f1261ac81fd5bcb5\nsize 33999\n";

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>";

/// The error for reading the dataset with the file `path` changed.
fn error(path: &str, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Error {
    let mut storage = Small::new(&[20, 30]).storage();
    let changed = change(storage.get(path));
    storage.insert(path, changed);
    read_rows(&storage, 0).unwrap_err()
}

#[test]
fn a_parquet_file_without_its_end_was_not_finalised() {
    for path in [DATA, EPISODES, TASKS] {
        for (cut, expected) in [
            (8, Damage::NotFinalised),
            (usize::MAX / 2, Damage::NotFinalised),
            (usize::MAX, Damage::Empty),
        ] {
            let mut size = 0;
            let error = error(path, |bytes| {
                size = match cut {
                    8 => bytes.len() - 8,
                    usize::MAX => 0,
                    _ => bytes.len() / 2,
                };
                bytes[..size].to_vec()
            });
            let Error::Damaged {
                path: found,
                size_bytes,
                damage,
                ..
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!(
                (found.as_str(), *size_bytes, *damage),
                (path, size as u64, expected)
            );
            let message = error.to_string();
            assert!(message.contains("not finalised"), "{message}");
            assert!(message.contains(&size.to_string()), "{message}");
            assert!(!message.contains("download"), "{message}");
        }
    }
}

#[test]
fn a_pointer_or_a_web_page_in_place_of_a_file_is_recognised() {
    for path in [DATA, EPISODES, TASKS] {
        for (text, expected, remedy) in [
            (LFS_POINTER, Damage::LfsPointer, "git lfs pull"),
            (HTML, Damage::Html, "web page"),
        ] {
            let error = error(path, |_| text.as_bytes().to_vec());
            let Error::Damaged {
                path: found,
                size_bytes,
                start,
                damage,
                ..
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!(
                (found.as_str(), *size_bytes, *damage),
                (path, text.len() as u64, expected)
            );
            assert!(text.starts_with(&start.replace("\\n", "\n")), "{start}");
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }
}

#[test]
fn other_bytes_are_shown() {
    for (bytes, shown) in [
        (
            &b"\x00\x01hello there, this is no table"[..],
            "\\x00\\x01hello",
        ),
        (b"PAR", "PAR"),
    ] {
        let error = error(DATA, |_| bytes.to_vec());
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(shown), "{error}");
    }
}

#[test]
fn a_footer_that_lies_is_damage_inside_the_file() {
    for (change, expected) in [
        // The length of the footer: longer than the file.
        (
            Box::new(|bytes: &mut Vec<u8>| {
                let at = bytes.len() - 8;
                bytes[at..at + 4].copy_from_slice(&0x00ff_ffff_u32.to_le_bytes());
            }) as Box<dyn Fn(&mut Vec<u8>)>,
            "footer",
        ),
        (
            Box::new(|bytes| {
                let at = bytes.len() - 4;
                bytes[at..].copy_from_slice(b"PARE");
            }),
            "encrypted",
        ),
        (
            Box::new(|bytes| {
                let len = bytes.len();
                bytes[len - 200..len - 8].fill(0xff);
            }),
            "damaged",
        ),
    ] {
        let error = error(DATA, |bytes| {
            let mut bytes = bytes.to_vec();
            change(&mut bytes);
            bytes
        });
        assert!(
            matches!(&error, Error::Corrupt { path, .. } if path == DATA),
            "{error}"
        );
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_footer_of_gigabytes_is_refused_unread() {
    let error = error(DATA, |bytes| {
        let mut bytes = bytes.to_vec();
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        bytes
    });
    assert!(
        matches!(&error, Error::TooLarge { found, .. } if *found == u64::from(u32::MAX)),
        "{error}"
    );
}

#[test]
fn a_missing_file_says_what_needs_it() {
    let mut storage = Small::default().storage();
    storage.remove(DATA);
    let error = read_rows(&storage, 1).unwrap_err();
    assert!(
        matches!(&error, Error::Missing { path, .. } if path == DATA),
        "{error}"
    );
    assert!(error.to_string().contains("`data/file_index`"), "{error}");
    assert!(error.source().is_some());

    let error = Metadata::read(&Memory::default()).unwrap_err();
    assert!(
        matches!(&error, Error::Missing { path, .. } if path == "meta/info.json"),
        "{error}"
    );
}

#[test]
fn a_file_that_may_not_be_read_is_an_error_of_its_own() {
    for path in [DATA, EPISODES, TASKS, "meta/info.json"] {
        let mut storage = Small::default().storage();
        storage.lock(path);
        let error = read_rows(&storage, 0).unwrap_err();
        assert!(
            matches!(&error, Error::Io { action: "open", path: found, .. } if found == path),
            "{error}"
        );
        assert!(
            error
                .source()
                .unwrap()
                .to_string()
                .contains("permission denied"),
            "{error}"
        );
    }
}

#[test]
fn a_page_that_its_checksum_disowns_is_refused() {
    // The rows of the small dataset, written by pyarrow with a checksum for each page.
    let bytes = include_bytes!("../data/checksums.parquet");
    let mut storage = Small::default().storage();
    let plain = read_rows(&storage, 2).unwrap();
    storage.insert(DATA, *bytes);
    assert_eq!(read_rows(&storage, 2).unwrap(), plain);

    // The second half of the `state` of row 9.
    let needle = 4.5_f32.to_le_bytes();
    let at = bytes
        .windows(4)
        .position(|window| window == needle)
        .unwrap();
    let mut changed = bytes.to_vec();
    changed[at] ^= 1;
    storage.insert(DATA, changed);
    let error = read_rows(&storage, 2).unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { path, .. } if path == DATA),
        "{error}"
    );
    assert!(error.to_string().contains("checksum"), "{error}");
}
