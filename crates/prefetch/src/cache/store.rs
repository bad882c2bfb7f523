//! The cache's folder, which processes share.
//!
//! ```text
//! DIR/episode-pool-cache-v1/
//!   lock             locked by whoever changes what lies here, for as long as that takes
//!   pieces/NAME      what is complete
//!   parts/NAME@USER  what a user is fetching; the room for it is taken from now on
//!   users/USER/      one folder for each user: a process, or one of several caches in a process
//!     alive          locked for as long as the user lives; says whether it keeps what it leaves
//!     NAME           a hard link to a piece that the user needs
//! ```
//!
//! A name ends with the piece's length, so that a listing tells how much room is taken: there is no count that a crash could leave wrong. A piece
//! is needed by as many users as it has links beyond its own. A user whose `alive` can be locked has died, and what it left is taken away.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::{CacheOptions, Error};

const FOLDER: &str = "episode-pool-cache-v1";
const ALIVE: &str = "alive";
const KEEPS: &str = "keep";

/// One user's view of the folder.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
    user: String,
    max_bytes: u64,
    keep: bool,
    /// Locked, until it is closed.
    _alive: File,
}

/// What became of a claim for a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is complete, and will stay.
    Here,
    /// It is not there, and this user is to fetch it; its room is taken.
    Mine,
    /// Another user is fetching it.
    Others,
}

impl Store {
    pub(super) fn open(options: &CacheOptions) -> Result<Self, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let root = options.dir.join(FOLDER);
        let failed = |action: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |source| Error::Cache {
                action,
                path,
                source,
            }
        };
        for folder in ["pieces", "parts", "users"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(failed("make", &folder))?;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // A process may have the number of one that died on another boot, or in another container.
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let user = format!("{}-{number}-{:x}", std::process::id(), now.as_nanos());
        let _lock = lock(&root).map_err(failed("lock", &root))?;
        let folder = root.join("users").join(&user);
        fs::create_dir(&folder).map_err(failed("make", &folder))?;
        let alive = Self::mark_alive(&folder, options.keep);
        let alive = alive.map_err(failed("lock and link files in", &folder))?;
        let store = Self {
            root,
            user,
            max_bytes: options.max_bytes,
            keep: options.keep,
            _alive: alive,
        };
        let buried = store.bury_the_dead();
        buried.map_err(failed("clean up", &store.root))?;
        Ok(store)
    }

    /// Also finds out whether the file system can do what is asked of it here.
    fn mark_alive(folder: &Path, keep: bool) -> io::Result<File> {
        let path = folder.join(ALIVE);
        let mut alive = File::create_new(&path)?;
        alive.try_lock()?;
        if keep {
            alive.write_all(KEEPS.as_bytes())?;
        }
        let link = folder.join("link");
        fs::hard_link(&path, &link)?;
        fs::remove_file(&link)?;
        Ok(alive)
    }

    /// The most bytes that may lie here.
    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Where a piece lies that was claimed and is complete.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.users().join(&self.user).join(name)
    }

    /// Claims pieces, all or none: none where there is no room for those that are not here.
    pub(super) fn claim(&self, names: &[&str]) -> io::Result<Option<Vec<Claim>>> {
        let _lock = lock(&self.root)?;
        self.bury_the_dead()?;
        let parts = self.parts()?;
        let mut pieces = list(&self.pieces())?;
        let used = total(parts.keys().chain(&pieces));
        let mut claims = Vec::with_capacity(names.len());
        let mut need = 0;
        for &name in names {
            claims.push(if self.is_whole(name) {
                Claim::Here
            } else if parts.contains_key(name) {
                Claim::Others
            } else {
                need += len_of(name);
                Claim::Mine
            });
        }
        let over = used.saturating_add(need).saturating_sub(self.max_bytes);
        pieces.retain(|piece| !names.contains(&piece.as_str()));
        if over > 0 && !self.make_room(over, pieces)? {
            return Ok(None);
        }
        for (&name, claim) in names.iter().zip(&claims) {
            match claim {
                Claim::Here => self.link(name)?,
                Claim::Mine => drop(File::create(self.part(name))?),
                Claim::Others => {}
            }
        }
        Ok(Some(claims))
    }

    /// Writes a piece that is this user's to fetch. Others see it from now on.
    pub(super) fn complete(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let part = self.part(name);
        let mut file = File::create(&part)?;
        file.write_all(bytes)?;
        if self.keep {
            // It may be found by a process that starts after a loss of power.
            file.sync_data()?;
        }
        fs::hard_link(&part, self.path(name))?;
        fs::rename(&part, self.pieces().join(name))
    }

    /// Gives back the room that was taken for a piece.
    pub(super) fn give_up(&self, name: &str) -> io::Result<()> {
        remove(&self.path(name))?;
        remove(&self.part(name))
    }

    /// Lets go of pieces; those that no other user needs are deleted, unless they are to be kept.
    pub(super) fn release<'a>(&self, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let _lock = lock(&self.root)?;
        for name in names {
            remove(&self.path(name))?;
            if !self.keep {
                self.remove_unneeded(name)?;
            }
        }
        Ok(())
    }

    /// The bytes that lie here or have their room taken.
    #[cfg(test)]
    pub(super) fn used(&self) -> io::Result<u64> {
        let (parts, pieces) = (self.parts()?, list(&self.pieces())?);
        Ok(total(parts.keys().chain(&pieces)))
    }

    fn pieces(&self) -> PathBuf {
        self.root.join("pieces")
    }

    fn users(&self) -> PathBuf {
        self.root.join("users")
    }

    fn part(&self, name: &str) -> PathBuf {
        self.root
            .join("parts")
            .join(format!("{name}@{}", self.user))
    }

    /// The user that fetches each piece which is being fetched.
    fn parts(&self) -> io::Result<BTreeMap<String, String>> {
        let parts = list(&self.root.join("parts"))?.into_iter();
        let parts = parts.filter_map(|part| {
            let (name, user) = part.split_once('@')?;
            Some((name.to_owned(), user.to_owned()))
        });
        Ok(parts.collect())
    }

    /// Whether a piece is here. One of another length than its name says is none, and is taken away.
    fn is_whole(&self, name: &str) -> bool {
        let path = self.pieces().join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            return false;
        };
        let whole = metadata.is_file() && metadata.len() == len_of(name);
        if !whole {
            let _ = fs::remove_file(&path);
        }
        whole
    }

    fn link(&self, name: &str) -> io::Result<()> {
        let piece = self.pieces().join(name);
        // The order in which pieces that nobody needs will go.
        File::open(&piece)?.set_modified(SystemTime::now())?;
        match fs::hard_link(&piece, self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }

    /// Deletes pieces that nobody needs, the least recently used first, until there is room for so many bytes more.
    fn make_room(&self, over: u64, pieces: Vec<String>) -> io::Result<bool> {
        let mut unneeded = Vec::new();
        for name in pieces {
            let metadata = fs::metadata(self.pieces().join(&name))?;
            if metadata.nlink() == 1 {
                unneeded.push((metadata.modified()?, name));
            }
        }
        unneeded.sort_unstable();
        let mut freed = 0;
        let going: Vec<&String> = unneeded
            .iter()
            .take_while(|(_, name)| {
                let goes = freed < over;
                freed = freed.saturating_add(len_of(name));
                goes
            })
            .map(|(_, name)| name)
            .collect();
        let available = total(going.iter().copied());
        if available < over {
            return Ok(false);
        }
        going
            .into_iter()
            .try_for_each(|name| remove(&self.pieces().join(name)))?;
        Ok(true)
    }

    fn remove_unneeded(&self, name: &str) -> io::Result<()> {
        let piece = self.pieces().join(name);
        match fs::metadata(&piece) {
            Ok(metadata) if metadata.nlink() == 1 => remove(&piece),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes away what users have left that are no more.
    fn bury_the_dead(&self) -> io::Result<()> {
        for user in list(&self.users())? {
            if user == self.user {
                continue;
            }
            let folder = self.users().join(&user);
            let keep = match File::open(folder.join(ALIVE)) {
                Ok(alive) => match alive.try_lock() {
                    Ok(()) => fs::read(folder.join(ALIVE))? == KEEPS.as_bytes(),
                    Err(TryLockError::WouldBlock) => continue,
                    Err(TryLockError::Error(error)) => return Err(error),
                },
                // It died while it was born.
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            };
            self.bury(&user, keep)?;
        }
        Ok(())
    }

    fn bury(&self, user: &str, keep: bool) -> io::Result<()> {
        for (name, of) in self.parts()? {
            if of == user {
                remove(&self.root.join("parts").join(format!("{name}@{of}")))?;
            }
        }
        let folder = self.users().join(user);
        for name in list(&folder)? {
            if name == ALIVE {
                continue;
            }
            remove(&folder.join(&name))?;
            if !keep {
                self.remove_unneeded(&name)?;
            }
        }
        // The mark goes last: whoever is interrupted here leaves the rest to the next.
        remove(&folder.join(ALIVE))?;
        fs::remove_dir(&folder)
    }
}

impl Drop for Store {
    /// Leaves as if it had never been, but for what it keeps.
    fn drop(&mut self) {
        let left = lock(&self.root).and_then(|_lock| self.bury(&self.user, self.keep));
        if let Err(error) = left {
            tracing::warn!(
                "cannot clean up the cache `{}`: {error}",
                self.root.display()
            );
        }
    }
}

/// Locks the folder until the file is closed.
fn lock(root: &Path) -> io::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(root.join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// The names of a folder's files, but for those that are no names of ours.
fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// The length that a piece's name says.
fn len_of(name: &str) -> u64 {
    let len = name.rsplit_once('-').and_then(|(_, len)| len.parse().ok());
    len.unwrap_or(0)
}

/// The lengths that names say, added up. (A name may be anything.)
fn total<'a>(names: impl Iterator<Item = &'a String>) -> u64 {
    names.fold(0, |sum, name| sum.saturating_add(len_of(name)))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(dir: &Path, max_bytes: u64, keep: bool) -> CacheOptions {
        CacheOptions {
            max_bytes,
            keep,
            ..CacheOptions::new(dir)
        }
    }

    fn files(dir: &Path) -> usize {
        let root = dir.join(FOLDER);
        ["pieces", "parts", "users"]
            .iter()
            .map(|folder| list(&root.join(folder)).unwrap().len())
            .sum()
    }

    #[test]
    fn a_piece_is_fetched_once_and_goes_with_its_last_user() {
        let dir = tempfile::tempdir().unwrap();
        let one = Store::open(&options(dir.path(), 100, false)).unwrap();
        let two = Store::open(&options(dir.path(), 100, false)).unwrap();
        assert_eq!(one.claim(&["a-3"]).unwrap().unwrap(), [Claim::Mine]);
        assert_eq!(two.claim(&["a-3"]).unwrap().unwrap(), [Claim::Others]);
        one.complete("a-3", b"abc").unwrap();
        assert_eq!(two.claim(&["a-3"]).unwrap().unwrap(), [Claim::Here]);
        one.release(["a-3"].into_iter()).unwrap();
        assert_eq!(fs::read(two.path("a-3")).unwrap(), b"abc");
        assert_eq!(two.used().unwrap(), 3);
        two.release(["a-3"].into_iter()).unwrap();
        assert_eq!(two.used().unwrap(), 0);
        drop((one, two));
        assert_eq!(files(dir.path()), 0);
    }

    #[test]
    fn room_is_taken_before_it_is_filled_and_never_exceeded() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&options(dir.path(), 10, false)).unwrap();
        let other = Store::open(&options(dir.path(), 10, false)).unwrap();
        assert!(store.claim(&["a-6", "b-4"]).unwrap().is_some());
        assert_eq!(other.claim(&["c-1"]).unwrap(), None);
        store.give_up("b-4").unwrap();
        assert!(other.claim(&["c-1"]).unwrap().is_some());
        // All or none: the room for `d` is there, that for `e` is not.
        assert_eq!(other.claim(&["d-1", "e-3"]).unwrap(), None);
        assert_eq!(other.used().unwrap(), 7);
    }

    #[test]
    fn what_is_kept_goes_when_the_room_is_needed_the_oldest_first() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&options(dir.path(), 9, true)).unwrap();
        for name in ["a-3", "b-3", "c-3"] {
            store.claim(&[name]).unwrap();
            store.complete(name, b"xyz").unwrap();
            store.release([name].into_iter()).unwrap();
        }
        assert_eq!(store.used().unwrap(), 9);
        // Used again, `a` is the youngest; `b` goes, and only `b`.
        assert_eq!(store.claim(&["a-3"]).unwrap().unwrap(), [Claim::Here]);
        assert_eq!(store.claim(&["d-2"]).unwrap().unwrap(), [Claim::Mine]);
        assert_eq!(store.claim(&["c-3"]).unwrap().unwrap(), [Claim::Here]);
        // What is needed stays.
        assert_eq!(store.claim(&["e-2"]).unwrap(), None);
        drop(store);
        let store = Store::open(&options(dir.path(), 9, true)).unwrap();
        assert_eq!(store.used().unwrap(), 6);
    }

    #[test]
    fn names_of_others_are_lived_with() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&options(dir.path(), 100, false)).unwrap();
        for name in ["a-18446744073709551615", "b-18446744073709551615", "-", "c"] {
            fs::write(store.pieces().join(name), b"").unwrap();
        }
        // Nobody needs them, so that they make room.
        assert_eq!(store.claim(&["d-100"]).unwrap().unwrap(), [Claim::Mine]);
    }

    #[test]
    fn a_piece_cut_short_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&options(dir.path(), 100, true)).unwrap();
        fs::write(store.pieces().join("a-3"), b"ab").unwrap();
        assert_eq!(store.claim(&["a-3"]).unwrap().unwrap(), [Claim::Mine]);
    }

    #[test]
    fn what_the_dead_leave_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let alive = Store::open(&options(dir.path(), 100, false)).unwrap();
        let mut dead = Store::open(&options(dir.path(), 100, false)).unwrap();
        dead.claim(&["a-3", "b-3"]).unwrap();
        dead.complete("a-3", b"abc").unwrap();
        alive.claim(&["a-3"]).unwrap();
        dead.claim(&["c-3"]).unwrap();
        dead.complete("c-3", b"abc").unwrap();
        // As a process that is killed: its locks go, and it does nothing more.
        dead._alive = File::open(dir.path().join(FOLDER).join("lock")).unwrap();
        std::mem::forget(dead);
        assert_eq!(alive.claim(&["b-3"]).unwrap().unwrap(), [Claim::Mine]);
        assert_eq!(alive.used().unwrap(), 6);
        drop(alive);
        assert_eq!(files(dir.path()), 0);
    }
}
