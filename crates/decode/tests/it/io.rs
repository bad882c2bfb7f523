//! The media: its failures, its panics, its life.

use std::error::Error as _;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use decode::{Decoder, Error, Layout, Picture, Pixels, Video, VideoCache, VideoOptions};

use crate::clips;

/// What a media does at a read.
type Behaviour = Box<dyn FnMut(usize) -> Step + Send>;

enum Step {
    /// Read at most so many bytes.
    Read(usize),
    Fail(io::ErrorKind),
    Panic,
}

/// Bytes behind a behaviour, which is told the number of the read.
struct Media {
    bytes: Cursor<Vec<u8>>,
    reads: usize,
    behaviour: Behaviour,
    alive: Arc<AtomicUsize>,
}

impl Media {
    fn new(
        name: &str,
        alive: &Arc<AtomicUsize>,
        behaviour: impl FnMut(usize) -> Step + Send + 'static,
    ) -> Box<Self> {
        alive.fetch_add(1, Ordering::SeqCst);
        Box::new(Self {
            bytes: Cursor::new(clips::bytes(name)),
            reads: 0,
            behaviour: Box::new(behaviour),
            alive: Arc::clone(alive),
        })
    }
}

impl Drop for Media {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Read for Media {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        match (self.behaviour)(self.reads - 1) {
            Step::Read(most) => {
                let len = buffer.len().min(most);
                self.bytes.read(&mut buffer[..len])
            }
            Step::Fail(kind) => Err(io::Error::new(kind, "the cable is out")),
            Step::Panic => panic!("the media panics"),
        }
    }
}

impl Seek for Media {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(target)
    }
}

fn open(media: Box<Media>) -> Result<Video, Error> {
    Video::open(media, "a.mp4", "wrist", &VideoOptions::default())
}

#[test]
fn short_and_interrupted_reads_are_no_failures() {
    let alive = Arc::default();
    let media = Media::new("b_frames", &alive, |read| {
        if read % 3 == 1 {
            Step::Fail(io::ErrorKind::Interrupted)
        } else {
            Step::Read(7)
        }
    });
    let video = open(media).unwrap();
    let frames = clips::rgb(&video, &[0.1, 3.9]).unwrap();
    assert_eq!(
        [clips::number(&frames[0], 64), clips::number(&frames[1], 64)],
        [1, 39]
    );
}

#[test]
fn a_failing_media_is_an_error_with_its_cause_whenever_it_fails() {
    let alive = Arc::default();
    let (mut at_open, mut at_decode) = (0, 0);
    for failing in 0.. {
        let media = Media::new("open_gop", &alive, move |read| {
            if read == failing {
                Step::Fail(io::ErrorKind::ConnectionReset)
            } else {
                Step::Read(100)
            }
        });
        let error = match open(media) {
            Err(error) => {
                at_open += 1;
                error
            }
            Ok(video) => match clips::rgb(&video, &[3.9]) {
                Err(error) => {
                    at_decode += 1;
                    // The next request does not suffer from it.
                    assert_eq!(
                        clips::number(&clips::rgb(&video, &[3.9]).unwrap()[0], 64),
                        39
                    );
                    error
                }
                Ok(_) => break,
            },
        };
        assert!(
            matches!(error, Error::Io { .. }) && !error.is_damaged_file(),
            "read {failing}: {error:?}"
        );
        assert!(
            error
                .to_string()
                .starts_with("a.mp4: camera `wrist`: could not read "),
            "{error}"
        );
        assert_eq!(error.source().unwrap().to_string(), "the cable is out");
    }
    assert!(at_open > 3 && at_decode > 3, "{at_open}, {at_decode}");
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panicking_media_panics_through_and_leaves_nothing_behind() {
    let alive = Arc::default();
    for failing in [0, 1, 5] {
        let media = Media::new("b_frames", &alive, move |read| {
            if read == failing {
                Step::Panic
            } else {
                Step::Read(500)
            }
        });
        let payload = catch_unwind(AssertUnwindSafe(|| open(media))).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"the media panics"));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_media_lives_as_long_as_its_video() {
    let alive = Arc::default();
    let video = open(Media::new("hevc_cra", &alive, |_| Step::Read(usize::MAX))).unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    drop(video);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn frames_asked_for_in_order_are_decoded_once() {
    for (name, num_frames) in [
        ("b_frames", 40),
        ("open_gop_pyramid", 40),
        ("hevc_cra", 40),
        ("av1_g2", 20),
    ] {
        let (alive, reads) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&reads);
        let video = open(Media::new(name, &alive, move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Step::Read(usize::MAX)
        }))
        .unwrap();
        reads.store(0, Ordering::SeqCst);
        for frame in 0..num_frames {
            clips::rgb(&video, &[f64::from(frame) / 10.0]).unwrap();
        }
        // Packets are read in one go, each at most once. The first GOP may be begun twice, before the order is known.
        let (reads, most) = (reads.load(Ordering::SeqCst), num_frames as usize + 8);
        assert!(
            reads <= most,
            "{name}: {reads} packets read for {num_frames} frames"
        );
    }
}

#[test]
fn larger_pictures_than_allowed_are_refused() {
    let mut options = VideoOptions::default();
    options.max_pixels = 64 * 48 - 1;
    let alive = Arc::default();
    let error = Video::open(
        Media::new("b_frames", &alive, |_| Step::Read(usize::MAX)),
        "a.mp4",
        "wrist",
        &options,
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            Error::OverLimit {
                found: 3072,
                limit: 3071,
                ..
            }
        ),
        "{error}"
    );
    options.max_pixels += 1;
    Video::open(
        Media::new("b_frames", &alive, |_| Step::Read(usize::MAX)),
        "a.mp4",
        "wrist",
        &options,
    )
    .unwrap();
}

#[test]
fn handles_go_where_threads_go() {
    fn send<T: Send>() {}
    fn send_sync<T: Send + Sync>() {}
    send::<Decoder>();
    send_sync::<Video>();
    send_sync::<Picture>();
    send_sync::<VideoCache>();
    send_sync::<Error>();
}

/// Bytes of which only some may be read, once they are limited.
struct Fenced {
    bytes: Cursor<Vec<u8>>,
    allowed: Arc<Mutex<Option<Vec<Range<u64>>>>>,
}

impl Read for Fenced {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (start, len) = (self.bytes.position(), buffer.len() as u64);
        if let Some(allowed) = &*self.allowed.lock().unwrap() {
            let is_allowed = |range: &Range<u64>| range.start <= start && start + len <= range.end;
            if !allowed.iter().any(is_allowed) {
                return Err(io::Error::other(format!(
                    "{len} bytes at {start}: {allowed:?}"
                )));
            }
        }
        self.bytes.read(buffer)
    }
}

impl Seek for Fenced {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(target)
    }
}

#[test]
fn the_byte_ranges_of_frames_are_all_that_their_decoding_reads() {
    for clip in clips::numbered() {
        let allowed = Arc::<Mutex<Option<Vec<Range<u64>>>>>::default();
        let media = Box::new(Fenced {
            bytes: Cursor::new(clips::bytes(clip.name)),
            allowed: Arc::clone(&allowed),
        });
        let video = Video::open(media, clip.name, "wrist", &VideoOptions::default()).unwrap();
        let num_frames = clip.numbers.len();
        let len = |ranges: &[Range<u64>]| ranges.iter().map(|r| r.end - r.start).sum::<u64>();
        let all = len(&video.byte_ranges(0..num_frames));
        // Where decoding can start is found out once.
        clips::rgb(&video, &clip.times_s()).unwrap();
        for first in 0..num_frames {
            let last = (first + 3).min(num_frames - 1);
            let ranges = video.byte_ranges(first..last + 1);
            assert!(len(&ranges) <= all, "{}: {ranges:?}", clip.name);
            *allowed.lock().unwrap() = Some(ranges);
            for frame in first..=last {
                let mut out = vec![0; video.info().height * video.info().width * 3];
                // A decoder that has just read what comes before may look beyond the frame's last packet.
                Decoder::new()
                    .decode(
                        &video,
                        &[clip.time_s(frame)],
                        1e-4,
                        Layout::Hwc,
                        Pixels::U8(&mut out),
                    )
                    .unwrap_or_else(|error| panic!("{} {frame}: {error:?}", clip.name));
            }
        }
        if video.info().num_keyframes > 2 {
            assert!(len(&video.byte_ranges(0..1)) < all, "{}", clip.name);
        }
        assert_eq!(video.byte_ranges(num_frames..num_frames + 9), []);
    }
}
