//! Videos, by way of the `ffmpeg` program.

use std::ffi::OsStr;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::picture::RgbImage;
use crate::spec::Fps;

/// How pictures become a video.
#[derive(Debug, Clone)]
pub struct VideoOptions {
    /// The number of rows of a picture.
    pub height: usize,
    /// The number of pixels in a row.
    pub width: usize,
    /// Pictures per second; they follow each other without a gap, from time 0.
    pub fps: Fps,
    /// The layout of the pictures that go in, as FFmpeg names it; default `rgb24`, `[height, width, 3]` of bytes.
    pub raw_format: String,
    /// How they are encoded.
    pub encoder: Encoder,
}

impl VideoOptions {
    /// RGB pictures of `height` rows of `width` pixels, encoded by default.
    pub fn new(height: usize, width: usize, fps: impl Into<Fps>) -> Self {
        let (fps, encoder) = (fps.into(), Encoder::default());
        Self {
            height,
            width,
            fps,
            raw_format: "rgb24".to_owned(),
            encoder,
        }
    }
}

/// An encoder of FFmpeg's and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoder {
    /// The encoder, as FFmpeg names it; default `libx264`.
    pub name: String,
    /// The longest distance of keyframes, in frames; default 10.
    pub gop: usize,
    /// The layout that is encoded, as FFmpeg names it; default `yuv420p`.
    pub pixel_format: String,
    /// Further output arguments, which may override the ones above; default `-crf 12`, at which painted codes survive.
    pub args: Vec<String>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            name: "libx264".to_owned(),
            gop: 10,
            pixel_format: "yuv420p".to_owned(),
            args: ["-crf", "12"].map(str::to_owned).to_vec(),
        }
    }
}

impl Encoder {
    /// The encoder `name` with these output arguments, for example `&["-crf", "12", "-bf", "3"]`.
    pub fn new(name: &str, gop: usize, args: &[&str]) -> Self {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Self {
            name: name.to_owned(),
            gop,
            args,
            ..Self::default()
        }
    }

    /// The name of what it writes, as info.json has it.
    pub(crate) fn codec(&self) -> &str {
        match self.name.as_str() {
            "libx264" => "h264",
            "libx265" => "hevc",
            "libsvtav1" | "libaom-av1" | "librav1e" => "av1",
            other => other,
        }
    }
}

/// Encodes `frames`, each of the size and layout that `options` name, to the file `path`, whose folder must exist.
///
/// # Panics
///
/// If the program `ffmpeg` is missing (it says what to install) or refuses, or a frame has another size.
pub fn encode<F: AsRef<[u8]>>(
    path: &Path,
    options: &VideoOptions,
    frames: impl IntoIterator<Item = F>,
) {
    let VideoOptions {
        height,
        width,
        fps,
        raw_format,
        encoder,
    } = options;
    let mut command = program();
    command
        .args(["-f", "rawvideo", "-pixel_format", raw_format])
        .args([
            "-video_size",
            &format!("{width}x{height}"),
            "-framerate",
            &format!("{}/{}", fps.num, fps.den),
        ])
        .args([
            "-i",
            "pipe:0",
            "-c:v",
            &encoder.name,
            "-g",
            &encoder.gop.to_string(),
        ])
        .args(["-pix_fmt", &encoder.pixel_format])
        // One thread and no version strings: the same bytes on every machine with this FFmpeg.
        .args([
            "-threads",
            "1",
            "-fflags",
            "+bitexact",
            "-flags:v",
            "+bitexact",
        ])
        .args(&encoder.args)
        .arg(path)
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| cannot_start(&error));

    let mut stdin = BufWriter::new(child.stdin.take().expect("its stdin is a pipe"));
    let mut frame_bytes = None;
    for frame in frames {
        let frame = frame.as_ref();
        let expected = *frame_bytes.get_or_insert(frame.len());
        assert_eq!(
            frame.len(),
            expected,
            "the bytes of a frame of {width}x{height} {raw_format}"
        );
        if stdin.write_all(frame).is_err() {
            // It has given up; its message is below.
            break;
        }
    }
    let _ = stdin.flush();
    drop(stdin);
    let output = child.wait_with_output().expect("a child can be waited for");
    check(&command, &output);
}

/// Decodes all pictures of a video whose size is known, one after the other from its start.
///
/// This is what every exact decoder has to agree with. Conversion to RGB is by swscale's bilinear scaler.
///
/// # Panics
///
/// If the program `ffmpeg` is missing (it says what to install) or refuses, or the pictures have another size.
pub fn decode(path: &Path, height: usize, width: usize) -> Vec<RgbImage> {
    let mut command = program();
    command
        .arg("-i")
        .arg(path)
        .args([
            "-fps_mode",
            "passthrough",
            "-sws_flags",
            "bilinear",
            "-pix_fmt",
            "rgb24",
            "-f",
            "rawvideo",
            "pipe:1",
        ])
        .stdout(Stdio::piped());
    let output = command
        .output()
        .unwrap_or_else(|error| cannot_start(&error));
    check(&command, &output);
    let frames = output.stdout.chunks_exact(height * width * 3);
    assert!(
        frames.remainder().is_empty(),
        "the pictures of {} are not {width}x{height}",
        path.display()
    );
    frames
        .map(|pixels| RgbImage {
            width,
            height,
            pixels: pixels.to_vec(),
        })
        .collect()
}

/// Runs the program `ffmpeg` with these arguments; existing files are overwritten.
///
/// # Panics
///
/// If the program is missing (it says what to install) or refuses.
pub fn ffmpeg<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) {
    let mut command = program();
    let output = command
        .args(args)
        .output()
        .unwrap_or_else(|error| cannot_start(&error));
    check(&command, &output);
}

fn program() -> Command {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-y", "-nostdin", "-hide_banner", "-loglevel", "error"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn cannot_start(error: &std::io::Error) -> ! {
    if error.kind() == ErrorKind::NotFound {
        panic!(
            "these tests make videos with the program `ffmpeg`, which is not installed: `apt-get install ffmpeg`"
        );
    }
    panic!("start the program `ffmpeg`: {error}");
}

fn check(command: &Command, output: &Output) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?} failed with {}:\n{message}",
        output.status
    );
}
