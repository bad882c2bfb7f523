//! Where fetched bytes are kept, and how many.

use std::path::PathBuf;

/// Where bytes of a remote source are kept while they are wanted, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheOptions {
    /// The folder, on a disk of this machine; it is made where it does not exist. All is kept in one folder of its own inside, so that the
    /// folder may hold other things as well. Processes that name the same folder share what they fetch. Default: see [`default_dir`](Self::default_dir).
    pub dir: PathBuf,
    /// The most bytes that may lie in the folder, for all processes that share it. It is never exceeded: what there is no room for is read
    /// from the source when it is wanted, and kept nowhere. Default: 32 GiB.
    pub max_bytes: u64,
    /// Whether what nobody needs any more stays until the room is needed, the least recently used going first; otherwise it is deleted at once.
    /// Default: false.
    pub keep: bool,
}

impl CacheOptions {
    /// What is in force unless asked otherwise, in a folder.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            max_bytes: 32 << 30,
            keep: false,
        }
    }

    /// The folder unless one is chosen: `EPISODE_POOL_CACHE`, else `episode-pool` in `XDG_CACHE_HOME`, else in `~/.cache`, else in
    /// `/var/tmp`.
    #[must_use]
    pub fn default_dir() -> PathBuf {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(dir) = var("EPISODE_POOL_CACHE") {
            return dir.into();
        }
        let caches = var("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| var("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .unwrap_or_else(|| "/var/tmp".into());
        caches.join("episode-pool")
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self::new(Self::default_dir())
    }
}
