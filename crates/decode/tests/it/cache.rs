//! The decoder cache: bounded, shared, counted.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use decode::{CacheStats, DecoderCache, Error, Video, VideoOptions};

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

fn read(cache: &DecoderCache, files: &Arc<Files>, key: usize) {
    let frame = key % 20;
    let rgb = cache
        .decode_with(
            &key.to_string(),
            || files.open("a.mp4"),
            |video| clips::rgb(video, &[frame as f64 / 10.0]),
        )
        .unwrap();
    assert_eq!(usize::from(clips::number(&rgb[0], 64)), frame);
}

fn counts(stats: CacheStats) -> (u64, u64, u64) {
    (stats.hits, stats.misses, stats.evictions)
}

#[test]
fn the_least_recently_used_is_closed_first() {
    let (cache, files) = (DecoderCache::new(2), Arc::<Files>::default());
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
        let (cache, files) = (DecoderCache::new(capacity), Arc::<Files>::default());
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
    let (cache, files) = (DecoderCache::new(4), Arc::<Files>::default());
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
    let (cache, files, barrier) = (
        DecoderCache::new(4),
        Arc::<Files>::default(),
        Barrier::new(4),
    );
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
    let (cache, files) = (DecoderCache::new(1), Arc::<Files>::default());
    let number = cache.decode_with(
        "a",
        || files.open("a.mp4"),
        |video| {
            // Pushes "a" out while it is in use.
            read(&cache, &files, 1);
            assert_eq!((files.num_open(), cache.stats().evictions), (2, 1));
            clips::rgb(video, &[0.3]).map(|frames| clips::number(&frames[0], 64))
        },
    );
    assert_eq!(number.unwrap(), 3);
    assert_eq!(files.num_open(), 1, "closed once its use ended");
}

#[test]
fn what_does_not_open_takes_no_place() {
    let (cache, files) = (DecoderCache::new(1), Arc::<Files>::default());
    read(&cache, &files, 1);
    let failed = cache.decode_with("b", || Err("it is locked"), |_| Ok(()));
    assert_eq!(failed, Err("it is locked"));
    // It opens the next time.
    assert_eq!(
        cache
            .decode_with(
                "b",
                || files.open("b.mp4"),
                |video| Ok(video.info().num_frames)
            )
            .unwrap(),
        20
    );
}

#[test]
fn an_error_in_use_keeps_the_video_and_a_panic_does_not() {
    let (cache, files) = (DecoderCache::new(2), Arc::<Files>::default());
    let failed = cache.decode_with(
        "a",
        || files.open("a.mp4"),
        |video| clips::rgb(video, &[99.0]),
    );
    assert!(failed.unwrap_err().is_frame_not_found());
    cache
        .decode_with(
            "a",
            || files.open("a.mp4"),
            |video| clips::rgb(video, &[0.0]),
        )
        .unwrap();
    assert_eq!(
        (files.opened.load(Ordering::SeqCst), cache.stats().hits),
        (1, 1)
    );

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cache.decode_with(
            "a",
            || files.open("a.mp4"),
            |_| -> Result<(), Error> { panic!("mine") },
        )
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"mine"));
    cache
        .decode_with(
            "a",
            || files.open("a.mp4"),
            |video| clips::rgb(video, &[0.0]),
        )
        .unwrap();
    assert_eq!(
        (files.opened.load(Ordering::SeqCst), files.num_open()),
        (2, 1)
    );
}
