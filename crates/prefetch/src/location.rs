//! The URL grammar: what a source's name says of where it lies.

use std::fmt;
use std::path::PathBuf;

use crate::Error;

/// Where a dataset lies. Shown without anything that could be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// A directory of this machine.
    Local(PathBuf),
    /// A repository or a bucket of the Hugging Face Hub.
    Hub {
        kind: HubKind,
        /// `OWNER/NAME`.
        id: String,
        /// A branch, a tag or a commit; none for buckets, which have no history, and for the default branch.
        revision: Option<String>,
        /// The folder in it; empty for its root.
        folder: String,
    },
    /// A bucket of S3, or of what speaks its protocol.
    S3 { bucket: String, folder: String },
    /// A bucket of Google Cloud Storage.
    Gcs { bucket: String, folder: String },
    /// A folder of a web server.
    Http {
        /// `https://example.org:8443`.
        endpoint: String,
        folder: String,
        /// User and password, where the URL has them; never shown.
        login: Option<Login>,
    },
}

/// What the Hub keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HubKind {
    Dataset,
    Bucket,
}

impl HubKind {
    /// As it stands in URLs.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Dataset => "datasets",
            Self::Bucket => "buckets",
        }
    }
}

/// User and password of a URL.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

const EXPECTED: &str = "a directory, file://DIR, hf://datasets/OWNER/NAME[@REVISION], hf://buckets/OWNER/NAME, s3://BUCKET/PREFIX, \
                        gs://BUCKET/PREFIX or https://HOST/PATH";

impl Location {
    /// Reads a path or a URL. Nothing is looked up.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Ok(Self::Local(PathBuf::from(url)));
        };
        let refuse = |reason: &str| {
            Err(Error::Url {
                url: shown(url),
                reason: reason.to_owned(),
                expected: EXPECTED,
            })
        };
        if scheme == "file" {
            return Ok(Self::Local(PathBuf::from(rest)));
        }
        if rest.contains(['?', '#']) {
            return refuse(
                "it has a query or a fragment, and names of files are to be added to its end",
            );
        }
        if rest
            .chars()
            .any(|char| char.is_control() || char == ' ' || char == '\\')
        {
            return refuse("it holds a space, a backslash or a control character");
        }
        match scheme {
            "hf" => Self::hub(rest).map_or_else(refuse, Ok),
            "s3" | "gs" => {
                let (bucket, folder) = split(rest);
                if bucket.is_empty() {
                    return refuse("it names no bucket");
                }
                let Some(folder) = folder_of(folder) else {
                    return refuse("its path has an empty, a `.` or a `..` segment");
                };
                let bucket = bucket.to_owned();
                Ok(if scheme == "s3" {
                    Self::S3 { bucket, folder }
                } else {
                    Self::Gcs { bucket, folder }
                })
            }
            "http" | "https" => {
                let (authority, folder) = split(rest);
                let (login, host) = match authority.rsplit_once('@') {
                    Some((login, host)) => {
                        let (user, password) = login.split_once(':').unwrap_or((login, ""));
                        let (user, password) = (user.to_owned(), password.to_owned());
                        (Some(Login { user, password }), host)
                    }
                    None => (None, authority),
                };
                if host.is_empty() || host.starts_with(':') {
                    return refuse("it names no host");
                }
                let Some(folder) = folder_of(folder) else {
                    return refuse("its path has an empty, a `.` or a `..` segment");
                };
                Ok(Self::Http {
                    endpoint: format!("{scheme}://{host}"),
                    folder,
                    login,
                })
            }
            _ => refuse(&format!("there are no sources of the kind `{scheme}`")),
        }
    }

    fn hub(rest: &str) -> Result<Self, &'static str> {
        let (kind, rest) = split(rest);
        let kind = match kind {
            "datasets" => HubKind::Dataset,
            "buckets" => HubKind::Bucket,
            _ => return Err("of the Hub, only `datasets` and `buckets` hold datasets"),
        };
        let (owner, rest) = split(rest);
        let (name, rest) = match rest.split_once(['/', '@']) {
            Some((name, _)) => (name, &rest[name.len()..]),
            None => (rest, ""),
        };
        if !is_plain(owner) || !is_plain(name) {
            return Err("a repository's name is OWNER/NAME, of letters, digits, `-`, `_` and `.`");
        }
        let (revision, folder) = match rest.strip_prefix('@') {
            None => (None, rest.trim_start_matches('/')),
            Some(_) if kind == HubKind::Bucket => return Err("a bucket has no revisions"),
            Some(rest) => {
                let segments = if rest.starts_with("refs/") { 3 } else { 1 };
                let end = rest.match_indices('/').nth(segments - 1);
                let (revision, folder) = end.map_or((rest, ""), |(end, _)| rest.split_at(end));
                if revision.is_empty() {
                    return Err("its revision is empty");
                }
                (
                    Some(revision.replace("%2F", "/").replace("%2f", "/")),
                    folder.trim_start_matches('/'),
                )
            }
        };
        if revision
            .as_deref()
            .is_some_and(|revision| folder_of(revision).is_none())
        {
            return Err("its revision has an empty, a `.` or a `..` segment");
        }
        let folder = folder_of(folder).ok_or("its path has an empty, a `.` or a `..` segment")?;
        Ok(Self::Hub {
            kind,
            id: format!("{owner}/{name}"),
            revision,
            folder,
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = match self {
            Self::Local(path) => return write!(f, "{}", path.display()),
            Self::Hub {
                kind,
                id,
                revision,
                folder,
            } => {
                write!(f, "hf://{}/{id}", kind.plural())?;
                if let Some(revision) = revision {
                    write!(f, "@{revision}")?;
                }
                folder
            }
            Self::S3 { bucket, folder } => {
                write!(f, "s3://{bucket}")?;
                folder
            }
            Self::Gcs { bucket, folder } => {
                write!(f, "gs://{bucket}")?;
                folder
            }
            Self::Http {
                endpoint, folder, ..
            } => {
                write!(f, "{endpoint}")?;
                folder
            }
        };
        if folder.is_empty() {
            return Ok(());
        }
        write!(f, "/{folder}")
    }
}

/// A URL as it may stand in a message: without user, password, query and fragment.
pub(crate) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = match rest.find('/') {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    // An `@` of the Hub's stands in the path.
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// What stands before the first `/`, and what after it.
fn split(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or((text, ""))
}

/// A folder without slashes around it; none if it could lead elsewhere.
fn folder_of(path: &str) -> Option<String> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(String::new());
    }
    let good = path
        .split('/')
        .all(|segment| !matches!(segment, "" | "." | ".."));
    good.then(|| path.to_owned())
}

fn is_plain(name: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_source_has_a_name() {
        for (url, shown) in [
            ("data/pusht", "data/pusht"),
            ("file:///data/pusht", "/data/pusht"),
            ("hf://datasets/lerobot/pusht", "hf://datasets/lerobot/pusht"),
            (
                "hf://datasets/lerobot/pusht@v3.0",
                "hf://datasets/lerobot/pusht@v3.0",
            ),
            (
                "hf://datasets/lerobot/pusht@refs/pr/1/sub",
                "hf://datasets/lerobot/pusht@refs/pr/1/sub",
            ),
            (
                "hf://buckets/lerobot/pusht/a/b/",
                "hf://buckets/lerobot/pusht/a/b",
            ),
            ("s3://robots/pusht/v3/", "s3://robots/pusht/v3"),
            ("s3://robots", "s3://robots"),
            ("gs://robots/pusht", "gs://robots/pusht"),
            (
                "https://me:secret@example.org:8443/a/pusht",
                "https://example.org:8443/a/pusht",
            ),
        ] {
            let location = Location::parse(url).unwrap();
            assert_eq!(location.to_string(), shown, "{url}");
            assert!(!format!("{location:?}").contains("secret"));
        }
        let Location::Hub {
            revision, folder, ..
        } = Location::parse("hf://datasets/a/b@refs/convert/parquet/x/y").unwrap()
        else {
            panic!("a repository");
        };
        assert_eq!(revision.as_deref(), Some("refs/convert/parquet"));
        assert_eq!(folder, "x/y");
    }

    #[test]
    fn what_is_no_source_is_refused_without_its_secrets() {
        for url in [
            "ftp://example.org/a",
            "hf://lerobot/pusht",
            "hf://models/lerobot/pusht",
            "hf://datasets/pusht",
            "hf://datasets/lerobot/pusht@",
            "hf://datasets/lerobot/../x",
            "hf://datasets/lerobot/pusht@a/../b",
            "hf://buckets/lerobot/pusht@main",
            "s3://",
            "s3:///pusht",
            "s3://robots/a//b",
            "gs://robots/../a",
            "https://",
            "https://:80/a",
            "https://me:secret@example.org/a?token=secret",
            "https://example.org/a b",
            "https://example.org/a#secret",
        ] {
            let error = Location::parse(url).unwrap_err().to_string();
            assert!(error.contains("hf://datasets/OWNER/NAME"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
