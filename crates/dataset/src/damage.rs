//! What a file that is not what it should be looks like instead.

use crate::{Damage, Error};

/// How the magic number of a Parquet file reads, at its start and at its end.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// What Git leaves in place of a large file that was not fetched.
const LFS_PREFIX: &[u8] = b"version https://git-lfs";

/// The most bytes of a file's start and end that a message shows.
const SHOWN_START: usize = 24;
const SHOWN_END: usize = 8;

/// Judges a file by its first bytes.
pub(crate) fn of(start: &[u8]) -> Damage {
    let text = start.trim_ascii_start();
    let begins_with = |tag: &[u8]| {
        text.get(..tag.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(tag))
    };
    if start.is_empty() {
        Damage::Empty
    } else if start.starts_with(LFS_PREFIX) {
        Damage::LfsPointer
    } else if begins_with(b"<!doctype") || begins_with(b"<html") || begins_with(b"<?xml") {
        Damage::Html
    } else if start.starts_with(PARQUET_MAGIC) {
        Damage::NotFinalised
    } else {
        Damage::Unknown
    }
}

/// The error for a file of `size` bytes that starts and ends with these.
pub(crate) fn error(path: &str, size_bytes: u64, start: &[u8], end: &[u8]) -> Error {
    Error::Damaged {
        path: path.to_owned(),
        size_bytes,
        start: start[..start.len().min(SHOWN_START)]
            .escape_ascii()
            .to_string(),
        end: end[end.len().saturating_sub(SHOWN_END)..]
            .escape_ascii()
            .to_string(),
        damage: of(start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_judged_by_its_first_bytes() {
        for (start, expected) in [
            (b"" as &[u8], Damage::Empty),
            (
                b"version https://git-lfs.github.com/spec/v1\noid",
                Damage::LfsPointer,
            ),
            (b"\n <!DOCTYPE html>", Damage::Html),
            (b"<HTML>", Damage::Html),
            (b"<?xml version='1.0'?><Error>", Damage::Html),
            (b"PAR1\x15\x04", Damage::NotFinalised),
            (b"<", Damage::Unknown),
            (b"\0\0\0\0", Damage::Unknown),
        ] {
            assert_eq!(of(start), expected, "{}", start.escape_ascii());
        }
    }
}
