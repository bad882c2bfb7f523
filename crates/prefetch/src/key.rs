//! The rule that keeps a key inside its source.

use crate::Error;

/// Checks that `key` is one or more plain segments joined by `/`.
///
/// Keys come from files (templates in `info.json`), so they are untrusted.
pub(crate) fn check(key: &str) -> Result<(), Error> {
    let refuse = |reason| {
        Err(Error::Key {
            key: key.to_owned(),
            reason,
        })
    };
    if key.is_empty() {
        return refuse("it is empty");
    }
    if key.starts_with('/') {
        return refuse("it is absolute");
    }
    if key.contains(['\\', '\0']) {
        return refuse("it holds a backslash or a NUL byte");
    }
    for segment in key.split('/') {
        match segment {
            "" => return refuse("it has an empty segment"),
            "." | ".." => return refuse("it has a `.` or `..` segment"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_plain_relative_segments_pass() {
        for good in [
            "a",
            "meta/info.json",
            "videos/observation.images.top/chunk-000/file-000.mp4",
            "..a",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "a//b",
            "a/",
            "./a",
            "../a",
            "a/../../b",
            "a\\b",
            "a\0b",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
