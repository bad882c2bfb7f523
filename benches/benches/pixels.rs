//! From a decoded picture to pixels, one thread: by layout, element type and size.

use std::fs::File;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use decode::{
    Decoder, Encoded, Layout, Picture, PicturePainter, Pixels, Size, Video, VideoOptions,
};
use testkit::video::{self, VideoOptions as Encoding};

const LAYOUTS: [(&str, Layout); 2] = [("hwc", Layout::Hwc), ("chw", Layout::Chw)];

/// A picture of slopes with some detail on them, in yuv420p, to come out in the size `resize`.
fn picture(stored: Size, resize: Option<Size>) -> Picture {
    let folder = tempfile::TempDir::new().expect("a folder for a small file");
    let path = folder.path().join("one.mp4");
    let Size { height, width } = stored;
    let rgb: Vec<u8> = (0..height * width)
        .flat_map(|i| {
            let (x, y) = (i % width, i / width);
            [x * 255 / width, y * 255 / height, (x * y) % 251].map(|value| value as u8)
        })
        .collect();
    video::encode(&path, &Encoding::new(height, width, 30), [rgb]);

    let media = Box::new(File::open(&path).expect("the file just written"));
    let mut options = VideoOptions::default();
    options.resize = resize;
    let video = Video::open(media, "one.mp4", "bench", &options).expect("a sound video");
    let mut picture = None;
    Decoder::new()
        .pictures(
            &video,
            Encoded::default(),
            &[0],
            &AtomicBool::new(false),
            |_, decoded| {
                picture = Some(decoded);
            },
        )
        .expect("a sound video");
    picture.expect("a video has a first frame")
}

fn pixels(c: &mut Criterion) {
    let size = |height, width| Size { height, width };
    let cases = [
        ("as_stored/256x256", size(256, 256), None),
        ("as_stored/480x640", size(480, 640), None),
        ("to_224x224/480x640", size(480, 640), Some(size(224, 224))),
    ];
    let mut group = c.benchmark_group("pixels");
    group.throughput(Throughput::Elements(1));
    for (case, stored, resize) in cases {
        let picture = picture(stored, resize);
        let Size { height, width } = resize.unwrap_or(stored);
        let len = height * width * 3;
        let (mut bytes, mut floats) = (vec![0_u8; len], vec![0_f32; len]);
        for (name, layout) in LAYOUTS {
            let mut painter = PicturePainter::new(layout);
            group.bench_function(BenchmarkId::new(format!("u8_{name}"), case), |b| {
                b.iter(|| {
                    let out = Pixels::U8(black_box(&mut bytes));
                    painter.paint(&picture, out).expect("an output of its size");
                });
            });
            group.bench_function(BenchmarkId::new(format!("f32_{name}"), case), |b| {
                b.iter(|| {
                    let out = Pixels::F32(black_box(&mut floats));
                    painter.paint(&picture, out).expect("an output of its size");
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, pixels);
criterion_main!(benches);
