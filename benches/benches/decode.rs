//! Frames of video a second, one thread: opening a file, single random frames, windows, and all frames in order.
//!
//! Runs on bundled fixtures; `DECODE_BENCH_VIDEOS` names others, separated as in `PATH`.

use std::fs::File;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use decode::{Decoder, Layout, Pixels, Video, VideoOptions};

/// A video by its dataset's name, codec and keyframe distance.
struct Case {
    name: String,
    path: PathBuf,
}

fn cases() -> Vec<Case> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let bundled = [
        "aloha_like/dataset/videos/observation.images.top/chunk-000/file-006.mp4",
        "h264_gop30/dataset/videos/observation.images.front/chunk-000/file-000.mp4",
        "hevc_small/dataset/videos/observation.images.front/chunk-000/file-000.mp4",
    ]
    .map(|file| fixtures.join(file));
    let given = std::env::var_os("DECODE_BENCH_VIDEOS");
    let paths = match &given {
        Some(list) => std::env::split_paths(list).collect(),
        None => bundled.to_vec(),
    };
    paths
        .into_iter()
        .map(|path| {
            let video = open(&path);
            let info = video.info();
            let gop = info.num_frames / info.num_keyframes;
            let name = format!("{}_g{gop}_{}x{}", info.codec, info.width, info.height);
            Case { name, path }
        })
        .collect()
}

fn open(path: &Path) -> Video {
    let file = path.to_string_lossy();
    let media = File::open(path).expect("the video is there");
    Video::open(Box::new(media), &file, "bench", &VideoOptions::default()).expect("a sound video")
}

/// A video, its decoder, room for a number of its frames, and a source of random frame numbers.
struct Reader {
    video: Video,
    decoder: Decoder,
    out: Vec<u8>,
    random: u64,
}

impl Reader {
    fn new(case: &Case, num_frames: usize) -> Self {
        let video = open(&case.path);
        let info = video.info();
        let out = vec![0; num_frames * info.height * info.width * 3];
        Self {
            video,
            decoder: Decoder::new(),
            out,
            random: 1,
        }
    }

    /// Numbers that look random (an LCG's upper bits), the same in every run.
    fn random_below(&mut self, end: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as usize % end
    }

    fn time_s(&self, frame: usize) -> f64 {
        self.video.info().start_s + frame as f64 * self.video.frame_interval_s()
    }

    fn decode(&mut self, times_s: &[f64]) {
        let out = Pixels::U8(&mut self.out);
        self.decoder
            .decode(&self.video, times_s, 1e-3, Layout::Hwc, out)
            .expect("these frames exist");
        black_box(&mut self.out);
    }
}

fn decode(c: &mut Criterion) {
    for case in cases() {
        let mut group = c.benchmark_group("decode");
        group.sample_size(20);
        group.bench_function(format!("open/{}", case.name), |b| {
            b.iter(|| open(&case.path))
        });

        group.throughput(Throughput::Elements(1));
        let mut reader = Reader::new(&case, 1);
        let num_frames = reader.video.info().num_frames;
        group.bench_function(format!("random/{}", case.name), |b| {
            b.iter(|| {
                let frame = reader.random_below(num_frames);
                reader.decode(&[reader.time_s(frame)]);
            });
        });
        let mut frame = 0;
        group.bench_function(format!("in_order/{}", case.name), |b| {
            b.iter(|| {
                reader.decode(&[reader.time_s(frame)]);
                frame = (frame + 1) % num_frames;
            });
        });

        // Eight frames, a second apart.
        let stride = (1.0 / reader.video.frame_interval_s()).round() as usize;
        let Some(last_start) = num_frames.checked_sub(7 * stride + 1) else {
            continue;
        };
        let mut reader = Reader::new(&case, 8);
        group.throughput(Throughput::Elements(8));
        group.bench_function(format!("window_of_8/{}", case.name), |b| {
            b.iter(|| {
                let first = reader.random_below(last_start + 1);
                let times_s = std::array::from_fn::<_, 8, _>(|k| reader.time_s(first + k * stride));
                reader.decode(&times_s);
            });
        });
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
