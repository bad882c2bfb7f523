//! What is fetched ahead: at hand while it is needed, gone when it is not, and never more than there is room for.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use prefetch::{CacheOptions, Error, FetchThreads, Fetcher, Lease, Source};
use tempfile::TempDir;
use testkit::server::{Fault, Server};

use crate::support::{big, folder, quick};

const BIG: &str = "data/chunk-000/file-000.bin";
static NEVER: AtomicBool = AtomicBool::new(false);

struct Setting {
    _folder: TempDir,
    server: Server,
    cache: TempDir,
}

impl Setting {
    fn new() -> Self {
        let folder = folder();
        Self {
            server: Server::start(folder.path()),
            _folder: folder,
            cache: tempfile::tempdir().unwrap(),
        }
    }

    fn source(&self) -> Source {
        Source::with_options(&self.server.files_url(), &quick()).unwrap()
    }

    fn options(&self) -> CacheOptions {
        CacheOptions::new(self.cache.path())
    }

    fn start(&self) -> FetchThreads {
        FetchThreads::start(&self.source(), &self.options()).unwrap()
    }

    /// The ranges that were asked for.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let requests = self.server.requests();
        let mut ranges: Vec<_> = requests
            .iter()
            .filter_map(|request| request.range)
            .collect();
        ranges.sort_unstable();
        ranges
    }
}

fn lease(fetcher: &Fetcher, range: Range<u64>) -> Lease {
    fetcher.lease(&[(BIG, Vec::from_iter([range]))]).unwrap()
}

fn read(fetcher: &Fetcher, range: Range<u64>) -> Vec<u8> {
    let mut reader = fetcher.open(BIG).unwrap();
    reader.seek(SeekFrom::Start(range.start)).unwrap();
    let mut bytes = vec![0; (range.end - range.start) as usize];
    reader.read_exact(&mut bytes).unwrap();
    bytes
}

fn wait(lease: &Lease, range: Range<u64>) -> Result<bool, Arc<Error>> {
    lease.wait(BIG, &range, &NEVER)
}

/// The bytes of all files in the cache, and how many files and folders there are below its four.
fn held(dir: &Path) -> (u64, usize) {
    let root = dir.join("episode-pool-cache-v1");
    let bytes = std::fs::read_dir(root.join("pieces")).unwrap();
    let bytes = bytes
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    let entries = ["pieces", "parts", "users"]
        .map(|folder| std::fs::read_dir(root.join(folder)).unwrap().count());
    (bytes, entries.iter().sum())
}

#[test]
fn what_is_leased_is_fetched_once_and_read_from_the_disk() {
    let setting = Setting::new();
    let threads = setting.start();
    let fetcher = threads.fetcher();
    let one = lease(fetcher, 100_000..600_000);
    let two = lease(fetcher, 100_000..600_000);
    wait(&one, 0..u64::MAX).unwrap();
    assert_eq!(held(setting.cache.path()).0, 500_000);
    for _ in 0..2 {
        assert!(read(fetcher, 150_000..590_000) == big()[150_000..590_000]);
    }
    assert_eq!(setting.ranges(), [(100_000, 599_999)]);
    assert!((fetcher.stats().hit_rate() - 0.5).abs() < 1e-9);
    // Over the edges it goes on from the source.
    assert!(read(fetcher, 90_000..610_000) == big()[90_000..610_000]);
    assert_eq!(
        setting.ranges(),
        [(90_000, 99_999), (100_000, 599_999), (600_000, 609_999)]
    );
    drop(one);
    assert_eq!(held(setting.cache.path()).0, 500_000);
    drop(two);
    assert_eq!(held(setting.cache.path()).0, 0);
    drop(threads);
    assert_eq!(held(setting.cache.path()), (0, 0));
}

#[test]
fn two_users_of_a_folder_fetch_once() {
    let setting = Setting::new();
    let (one, two) = (setting.start(), setting.start());
    let ours = lease(one.fetcher(), 0..400_000);
    let theirs = lease(two.fetcher(), 0..400_000);
    wait(&ours, 0..400_000).unwrap();
    wait(&theirs, 0..400_000).unwrap();
    drop(ours);
    assert!(read(two.fetcher(), 0..400_000) == big()[..400_000]);
    assert_eq!(setting.ranges(), [(0, 399_999)]);
    drop(theirs);
    assert_eq!(held(setting.cache.path()).0, 0);
}

#[test]
fn there_is_never_more_than_there_is_room_for() {
    let setting = Setting::new();
    let mut options = setting.options();
    options.max_bytes = 500_000;
    let threads = FetchThreads::start(&setting.source(), &options).unwrap();
    let fetcher = threads.fetcher();
    let first = lease(fetcher, 0..400_000);
    let second = lease(fetcher, 500_000..800_000);
    wait(&first, 0..400_000).unwrap();
    // There is no room for the second: it is read from the source, and not kept.
    assert!(!wait(&second, 500_000..800_000).unwrap());
    assert!(read(fetcher, 500_000..800_000) == big()[500_000..800_000]);
    assert_eq!(held(setting.cache.path()).0, 400_000);
    assert_eq!(fetcher.stats().bytes_not_kept, 300_000);
    // Once there is, it is fetched.
    drop(first);
    wait(&second, 500_000..800_000).unwrap();
    assert_eq!(held(setting.cache.path()).0, 300_000);
    // What no emptying would make room for is an error.
    let too_much = 0..500_001;
    let error = fetcher.lease(&[(BIG, vec![too_much])]).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("500001") && message.contains("500000"),
        "{message}"
    );
    drop(lease(fetcher, 0..500_000));
}

#[test]
fn what_is_kept_is_found_again() {
    let setting = Setting::new();
    let mut options = setting.options();
    options.keep = true;
    for _ in 0..2 {
        let threads = FetchThreads::start(&setting.source(), &options).unwrap();
        let lease = lease(threads.fetcher(), 0..300_000);
        wait(&lease, 0..300_000).unwrap();
        assert!(read(threads.fetcher(), 0..300_000) == big()[..300_000]);
    }
    assert_eq!(setting.ranges(), [(0, 299_999)]);
    assert_eq!(held(setting.cache.path()).0, 300_000);
}

#[test]
fn what_cannot_be_fetched_is_told_and_leaves_nothing() {
    let setting = Setting::new();
    let threads = setting.start();
    let fetcher = threads.fetcher();
    // The size is asked for before the network goes.
    fetcher.size(BIG).unwrap();
    setting
        .server
        .set_faults(|_| Fault::Status(503, Vec::new()));
    let lost = lease(fetcher, 0..100_000);
    let message = wait(&lost, 0..100_000).unwrap_err().to_string();
    assert!(
        message.contains(BIG) && message.contains("503") && message.contains("6 times"),
        "{message}"
    );
    let mut reader = fetcher.open(BIG).unwrap();
    let error = reader.read_exact(&mut [0; 10]).unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
    assert_eq!(held(setting.cache.path()).0, 0);
    // The network comes back, and so does the piece, for whoever asks anew.
    setting.server.set_faults(|_| Fault::None);
    assert!(read(fetcher, 0..10) == big()[..10]);
    drop((lost, reader));
    let again = lease(fetcher, 0..100_000);
    wait(&again, 0..100_000).unwrap();
    drop((again, threads));
    assert_eq!(held(setting.cache.path()), (0, 0));
}

#[test]
fn an_early_end_leaves_nothing_and_waits_for_nobody() {
    let setting = Setting::new();
    let threads = setting.start();
    let fetcher = threads.fetcher().clone();
    fetcher.size(BIG).unwrap();
    let (sender, asked) = mpsc::sync_channel(99);
    setting.server.set_faults(move |_| {
        sender.send(()).unwrap();
        Fault::Silence
    });
    let leases: Vec<_> = (0..20)
        .map(|k| lease(&fetcher, k * 40_000..k * 40_000 + 1_000))
        .collect();
    asked.recv().unwrap();
    drop(threads);
    drop(leases);
    drop(fetcher);
    assert_eq!(held(setting.cache.path()), (0, 0));
}

/// A job that reads on the way out comes to its end, with an error.
#[test]
fn an_early_end_breaks_off_what_jobs_read() {
    let setting = Setting::new();
    let threads = setting.start();
    let fetcher = threads.fetcher().clone();
    fetcher.size(BIG).unwrap();
    let (sender, asked) = mpsc::sync_channel(99);
    setting.server.set_faults(move |_| {
        sender.send(()).unwrap();
        Fault::Silence
    });
    let (sender, read) = mpsc::sync_channel(1);
    threads.fetcher().run(move || {
        let mut reader = fetcher.open(BIG).unwrap();
        sender
            .send(
                reader
                    .read_exact(&mut [0; 10])
                    .map_err(|error| error.to_string()),
            )
            .unwrap();
    });
    asked.recv().unwrap();
    drop(threads);
    let error = read.recv().unwrap().unwrap_err();
    assert!(error.contains("given up"), "{error}");
}

#[test]
fn jobs_are_done_before_what_nobody_waits_for() {
    let setting = Setting::new();
    let threads = setting.start();
    let (sender, done) = mpsc::sync_channel(1);
    let fetcher = threads.fetcher().clone();
    let job = {
        let fetcher = fetcher.clone();
        move || sender.send(read(&fetcher, 5..10)).unwrap()
    };
    fetcher.run(|| panic!("a job that panics ends nothing"));
    fetcher.run(job);
    assert_eq!(done.recv().unwrap(), big()[5..10]);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_told() {
    let setting = Setting::new();
    let threads = setting.start();
    let fetcher = threads.fetcher();
    fetcher.size(BIG).unwrap();
    setting
        .server
        .set_faults(|_| Fault::Status(412, Vec::new()));
    let lease = lease(fetcher, 0..10_000);
    let message = wait(&lease, 0..10_000).unwrap_err().to_string();
    assert!(message.contains("changed"), "{message}");
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_at_once() {
    let setting = Setting::new();
    let file = setting.cache.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let error = FetchThreads::start(&setting.source(), &CacheOptions::new(&file)).unwrap_err();
    assert!(matches!(error, Error::Cache { .. }), "{error}");
    assert!(
        error.to_string().contains("file/episode-pool-cache-v1"),
        "{error}"
    );
    let local = Source::local(setting.cache.path()).unwrap();
    let error = FetchThreads::start(&local, &setting.options()).unwrap_err();
    assert!(matches!(error, Error::NothingToFetch { .. }), "{error}");
}
