//! The cache of open videos: bounded, shared, counted.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use decode::{CacheStats, Error, Video, VideoCache, VideoOptions};

use crate::clips;

/// How many files are open, and how many have ever been.
#[derive(Default)]
struct Files {
    open: AtomicUsize,
    most: AtomicUsize,
    opened: AtomicUsize,
}

struct OpenFile {
    bytes: Cursor<Vec<u8>>,
    files: Arc<Files>,
}

impl Files {
    fn open(self: &Arc<Self>, key: &str) -> Result<Video, Error> {
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        self.opened.fetch_add(1, Ordering::SeqCst);
        let media = OpenFile {
            bytes: Cursor::new(clips::bytes("av1_g2")),
            files: Arc::clone(self),
        };
        Video::open(Box::new(media), key, "wrist", &VideoOptions::default())
    }

    fn num_open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.files.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl Seek for OpenFile {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(target)
    }
}

fn read(cache: &VideoCache, files: &Arc<Files>, key: usize) {
    let frame = key % 20;
    let video = cache
        .get_or_open(&key.to_string(), || files.open("a.mp4"))
        .unwrap();
    let rgb = clips::rgb(&video, &[frame as f64 / 10.0]).unwrap();
    assert_eq!(usize::from(clips::number(&rgb[0], 64)), frame);
}

fn counts(stats: CacheStats) -> (u64, u64, u64) {
    (stats.hits, stats.misses, stats.evictions)
}

#[test]
fn the_least_recently_used_is_closed_first() {
    let (cache, files) = (VideoCache::new(2), Arc::<Files>::default());
    for key in [1, 2, 1, 3, 1, 2] {
        read(&cache, &files, key);
    }
    // 1 stays; 3 pushes 2 out, and 2 pushes 3 out.
    assert_eq!(counts(cache.stats()), (2, 4, 2));
    assert_eq!(cache.stats().hit_rate(), 2.0 / 6.0);
    assert_eq!(files.num_open(), 2);
    drop(cache);
    assert_eq!(files.num_open(), 0);
}

#[test]
fn open_files_stay_within_the_capacity() {
    for capacity in [0, 1, 4] {
        let (cache, files) = (VideoCache::new(capacity), Arc::<Files>::default());
        for key in 0..100 {
            read(&cache, &files, key);
            assert!(files.num_open() <= capacity, "{} open", files.num_open());
        }
        // The one in use is opened before it is known to push another out, or after.
        assert!(files.most.load(Ordering::SeqCst) <= capacity + 1);
        assert_eq!(
            (cache.stats().misses, files.opened.load(Ordering::SeqCst)),
            (100, 100)
        );
    }
}

#[test]
fn open_files_stay_within_the_capacity_and_the_threads() {
    let (cache, files) = (VideoCache::new(4), Arc::<Files>::default());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, files) = (&cache, &files);
            scope.spawn(move || {
                let mut random = clips::Random(thread);
                for _ in 0..60 {
                    read(cache, files, random.below(25));
                }
            });
        }
    });
    assert!(
        files.most.load(Ordering::SeqCst) <= 4 + 4,
        "{} were open at once",
        files.most.load(Ordering::SeqCst)
    );
    assert!(files.num_open() <= 4);
    let stats = cache.stats();
    assert_eq!(stats.hits + stats.misses, 240);
    assert_eq!(stats.misses, files.opened.load(Ordering::SeqCst) as u64);
    drop(cache);
    assert_eq!(files.num_open(), 0);
}

#[test]
fn threads_that_want_one_video_open_it_once() {
    let (cache, files, barrier) = (VideoCache::new(4), Arc::<Files>::default(), Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                read(&cache, &files, 7);
            });
        }
    });
    assert_eq!(files.opened.load(Ordering::SeqCst), 1);
    assert_eq!(counts(cache.stats()), (3, 1, 0));
}

#[test]
fn a_video_in_use_is_not_closed_under_its_user() {
    let (cache, files) = (VideoCache::new(1), Arc::<Files>::default());
    let video = cache.get_or_open("a", || files.open("a.mp4")).unwrap();
    // Pushes "a" out while it is in use.
    read(&cache, &files, 1);
    assert_eq!((files.num_open(), cache.stats().evictions), (2, 1));
    let frames = clips::rgb(&video, &[0.3]).unwrap();
    assert_eq!(clips::number(&frames[0], 64), 3);
    drop(video);
    assert_eq!(files.num_open(), 1, "closed once its use ended");
}

#[test]
fn what_does_not_open_takes_no_place() {
    let (cache, files) = (VideoCache::new(1), Arc::<Files>::default());
    read(&cache, &files, 1);
    let failed = cache.get_or_open("b", || Err("it is locked"));
    assert_eq!(failed.err(), Some("it is locked"));
    // It opens the next time.
    let video = cache.get_or_open("b", || files.open("b.mp4")).unwrap();
    assert_eq!(video.info().num_frames, 20);
}

#[test]
fn a_panic_while_opening_leaves_the_next_to_open() {
    let (cache, files) = (VideoCache::new(2), Arc::<Files>::default());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cache.get_or_open("a", || -> Result<Video, Error> { panic!("mine") })
    }));
    assert_eq!(
        panicked.err().unwrap().downcast_ref::<&str>(),
        Some(&"mine")
    );
    cache.get_or_open("a", || files.open("a.mp4")).unwrap();
    assert_eq!(files.num_open(), 1);
}
