//! A dataset's root, wherever it lies, and the files beneath it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
#[cfg(feature = "remote")]
use std::sync::Arc;

#[cfg(feature = "remote")]
use crate::cache::CachedReader;
use crate::local::Directory;
use crate::location::Location;
#[cfg(feature = "remote")]
use crate::remote::{Remote, RemoteReader};
use crate::{Error, FetchStats, SourceOptions};

/// The root of a dataset, from which files are listed and opened by key.
///
/// Cheap to clone; safe to use from several threads. Clones share what they have fetched so far of listings and sizes.
#[derive(Debug, Clone)]
pub struct Source {
    root: Root,
}

#[derive(Debug, Clone)]
enum Root {
    Local(Directory),
    #[cfg(feature = "remote")]
    Remote(Arc<Remote>),
}

impl Source {
    /// Parses a source's name, with default options for remote ones.
    ///
    /// # Errors
    ///
    /// As for [`open_with`](Self::with_options).
    pub fn parse(url: &str) -> Result<Self, Error> {
        Self::with_options(url, &SourceOptions::default())
    }

    /// Parses a source's name:
    ///
    /// | name | what it is |
    /// |---|---|
    /// | `DIR`, `file://DIR` | a directory of this machine |
    /// | `hf://datasets/OWNER/NAME[@REVISION][/FOLDER]` | a dataset of the Hugging Face Hub |
    /// | `hf://buckets/OWNER/NAME[/FOLDER]` | a storage bucket of the Hub |
    /// | `s3://BUCKET[/PREFIX]` | a bucket of S3, or of what speaks its protocol |
    /// | `gs://BUCKET[/PREFIX]` | a bucket of Google Cloud Storage |
    /// | `http://HOST/PATH`, `https://HOST/PATH` | a folder of a web server that answers range requests |
    ///
    /// Credentials come from where the services' own tools take them: `HF_TOKEN` or the token file of `huggingface_hub` (and `HF_ENDPOINT`
    /// for another Hub); the `AWS_*` variables and files (`AWS_ENDPOINT_URL` for another S3); Google's application default credentials;
    /// a user and a password in the URL itself. A branch or tag of a dataset of the Hub is looked up here, once: all is read from the commit that it names then.
    ///
    /// # Errors
    ///
    /// - [`Error::Url`] for a name that is none of these.
    /// - [`Error::NotBuiltIn`] for a kind of source that was left out of this build.
    /// - [`Error::Root`] when a directory does not exist or cannot be read.
    /// - [`Error::Remote`] when the Hub does not know the repository or the revision, does not let us in, or does not answer.
    pub fn with_options(url: &str, options: &SourceOptions) -> Result<Self, Error> {
        match Location::parse(url)? {
            Location::Local(path) => Self::local(&path),
            #[cfg(feature = "remote")]
            location => Ok(Self {
                root: Root::Remote(Arc::new(Remote::connect(location, options)?)),
            }),
            #[cfg(not(feature = "remote"))]
            location => {
                let _ = options;
                Err(Error::NotBuiltIn {
                    url: location.to_string(),
                    feature: "remote",
                })
            }
        }
    }

    /// The source for a local directory.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] when `root` does not exist, is not a directory, or cannot be read.
    pub fn local(root: &Path) -> Result<Self, Error> {
        Ok(Self {
            root: Root::Local(Directory::new(root)?),
        })
    }

    /// The source's name for people: a path, or a URL without anything secret.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.root {
            Root::Local(directory) => directory.name(),
            #[cfg(feature = "remote")]
            Root::Remote(remote) => remote.name(),
        }
    }

    /// The commit that everything is read from; none where there is no such thing.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        match &self.root {
            Root::Local(_) => None,
            #[cfg(feature = "remote")]
            Root::Remote(remote) => remote.revision(),
        }
    }

    /// Whether its bytes come from elsewhere, so that reading them takes requests.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match &self.root {
            Root::Local(_) => false,
            #[cfg(feature = "remote")]
            Root::Remote(_) => true,
        }
    }

    /// Reads what opening files takes from an index that was made before, where the files are still the same. Only the first index is used; a
    /// directory needs none.
    ///
    /// Whether the index is of this source, as far as that can be told at once: one of another commit is not used.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when it is damaged or cannot be read.
    pub fn use_index(&self, path: &Path) -> Result<bool, Error> {
        match &self.root {
            #[cfg(feature = "remote")]
            Root::Remote(remote) => remote.use_index(path),
            Root::Local(_) => {
                let _ = path;
                Ok(true)
            }
        }
    }

    /// The size in bytes of a file that a listing has told of; none where asking would take a request.
    #[must_use]
    pub fn listed_size(&self, key: &str) -> Option<u64> {
        match &self.root {
            #[cfg(feature = "remote")]
            Root::Remote(remote) => remote.listed_size(key),
            Root::Local(_) => {
                let _ = key;
                None
            }
        }
    }

    /// What was asked of a remote source so far; all 0 for a directory.
    #[must_use]
    pub fn fetch_stats(&self) -> FetchStats {
        match &self.root {
            Root::Local(_) => FetchStats::default(),
            #[cfg(feature = "remote")]
            Root::Remote(remote) => remote.stats(),
        }
    }

    #[cfg(feature = "remote")]
    pub(crate) fn remote(&self) -> Option<Arc<Remote>> {
        match &self.root {
            Root::Local(_) => None,
            Root::Remote(remote) => Some(Arc::clone(remote)),
        }
    }

    /// Opens the file that `key` names. From a remote source, bytes are fetched when they are read.
    ///
    /// # Errors
    ///
    /// - [`Error::Key`] for a key that is not inside the source.
    /// - [`Error::Io`] when a local file cannot be opened.
    /// - [`Error::Remote`] when a remote one is not there, or cannot be asked for.
    pub fn open(&self, key: &str) -> Result<Reader, Error> {
        crate::key::check(key)?;
        let from = match &self.root {
            Root::Local(directory) => From::File(directory.open(key)?),
            #[cfg(feature = "remote")]
            Root::Remote(remote) => From::Remote(RemoteReader::open(Arc::clone(remote), key)?),
        };
        Ok(Reader { from })
    }

    /// The keys of all files below the directory `dir`, at any depth, sorted; links are followed.
    ///
    /// A directory that does not exist has no files.
    ///
    /// # Errors
    ///
    /// - [`Error::Key`] for a key that is not inside the source.
    /// - [`Error::Io`] for a directory that cannot be read, [`Error::TooDeep`] beyond 16 levels.
    /// - [`Error::CannotList`] for a web server, which has no way to say what it holds.
    /// - [`Error::Remote`] when a remote source does not answer.
    pub fn list(&self, dir: &str) -> Result<Vec<String>, Error> {
        crate::key::check(dir)?;
        match &self.root {
            Root::Local(directory) => directory.list(dir),
            #[cfg(feature = "remote")]
            Root::Remote(remote) => remote.list(dir),
        }
    }
}

/// An open file of a source.
#[derive(Debug)]
pub struct Reader {
    from: From,
}

#[derive(Debug)]
enum From {
    File(File),
    #[cfg(feature = "remote")]
    Remote(RemoteReader),
    #[cfg(feature = "remote")]
    Cached(CachedReader),
}

#[cfg(feature = "remote")]
impl Reader {
    pub(crate) fn cached(reader: CachedReader) -> Self {
        Self {
            from: From::Cached(reader),
        }
    }
}

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.from {
            From::File(file) => file.read(buf),
            #[cfg(feature = "remote")]
            From::Remote(reader) => reader.read(buf),
            #[cfg(feature = "remote")]
            From::Cached(reader) => reader.read(buf),
        }
    }
}

impl Seek for Reader {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        match &mut self.from {
            From::File(file) => file.seek(pos),
            #[cfg(feature = "remote")]
            From::Remote(reader) => reader.seek(pos),
            #[cfg(feature = "remote")]
            From::Cached(reader) => reader.seek(pos),
        }
    }
}
