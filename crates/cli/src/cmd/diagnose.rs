//! `episode-pool diagnose`: one video, step by step.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use clap::Args;
use episode_pool::EpisodePool;
use episode_pool::decode::{
    self, Anatomy, Decoder, Kind, Layout, Pixels, Video, VideoInfo, VideoOptions,
};
use episode_pool::prefetch::Source;
use serde::Serialize;

use crate::error::{self, Error};
use crate::json;
use crate::table::{count, thousands};

/// The codecs that robot datasets come in, as FFmpeg spells them.
const CODECS: [&str; 4] = ["av1", "h264", "hevc", "vp9"];

/// A mean length of GOPs, in frames, above which access to single frames is slow enough to say so.
const LONG_GOP: f64 = 16.0;

/// Where an NVIDIA driver tells its version, on Linux.
const NVIDIA_DRIVER: &str = "/proc/driver/nvidia/version";

/// Which video, and how to tell of it.
#[derive(Debug, Args)]
#[command(after_help = "\
The steps: the file's bytes, the container, the stream in it, the distance between keyframes, what FFmpeg can decode here, frames \
decoded, and on which device. A step that fails says why, and what to do; those that rest on it are left out. Fails if one does.")]
pub(crate) struct DiagnoseArgs {
    /// A video file, or a dataset: its root directory, or a URL (hf://, s3://, gs://, https://).
    path: String,

    /// Which of a dataset's cameras. [default: the first that has videos]
    #[arg(long, value_name = "KEY")]
    camera: Option<String>,

    /// The video of which of a dataset's episodes. [default: the first]
    #[arg(long, value_name = "EPISODE")]
    episode: Option<usize>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Diagnosis {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    camera: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    episode: Option<usize>,
    healthy: bool,
    steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    name: &'static str,
    status: Status,
    /// What was found, or, for a failure, what went wrong.
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    /// Nothing is wrong, but something could be better.
    Note,
    Failed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Failed => "FAILED",
        })
    }
}

impl Step {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn note(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Note,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn failed(name: &'static str, found: impl Into<String>, remedy: Option<String>) -> Self {
        Self {
            name,
            status: Status::Failed,
            found: found.into(),
            remedy,
        }
    }
}

pub(crate) fn run(args: &DiagnoseArgs, out: &mut impl Write) -> Result<(), Error> {
    let subject = Subject::find(args)?;
    let steps = subject.examine();
    let diagnosis = Diagnosis {
        healthy: steps.iter().all(|step| step.status != Status::Failed),
        file: subject.file,
        camera: subject.span.as_ref().map(|span| span.camera.clone()),
        episode: subject.span.as_ref().map(|span| span.episode),
        steps,
    };
    if args.json {
        json::write_pretty(out, &diagnosis)?;
    } else {
        diagnosis.write_text(out).map_err(Error::Output)?;
    }
    match diagnosis
        .steps
        .iter()
        .find(|step| step.status == Status::Failed)
    {
        None => Ok(()),
        Some(step) => Err(Error::Diagnosis {
            file: diagnosis.file.clone(),
            step: step.name,
        }),
    }
}

/// A video to look into.
struct Subject {
    source: Source,
    /// The file within the source.
    key: String,
    /// How it is told.
    file: String,
    span: Option<Span>,
}

/// The part of a file that holds an episode.
struct Span {
    camera: String,
    episode: usize,
    /// The times of its first, middle and last frame, on the file's clock.
    times_s: [f64; 3],
    tolerance_s: f64,
}

impl Subject {
    fn find(args: &DiagnoseArgs) -> Result<Self, Error> {
        let path = Path::new(args.path.strip_prefix("file://").unwrap_or(&args.path));
        if !path.is_dir() && !args.path.trim_end_matches('/').contains("://") || path.is_file() {
            return Self::of_file(path, args);
        }
        Self::of_dataset(args)
    }

    fn of_file(path: &Path, args: &DiagnoseArgs) -> Result<Self, Error> {
        if args.camera.is_some() || args.episode.is_some() {
            return Err(Error::NotADataset {
                path: args.path.clone(),
            });
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let name = path.file_name().and_then(|name| name.to_str());
        Ok(Self {
            source: Source::local(folder.unwrap_or(Path::new(".")))
                .map_err(episode_pool::Error::from)?,
            key: name.unwrap_or_default().to_owned(),
            file: args.path.clone(),
            span: None,
        })
    }

    fn of_dataset(args: &DiagnoseArgs) -> Result<Self, Error> {
        let pool = EpisodePool::builder(&args.path).build()?;
        let metadata = pool.metadata();
        let episode = match args.episode {
            Some(number) => metadata.episode(number).ok_or_else(|| Error::NoEpisode {
                episode: number,
                dataset: args.path.clone(),
                episodes: metadata.episodes().len(),
            })?,
            None => metadata.episodes().first().ok_or_else(|| Error::NoVideo {
                dataset: args.path.clone(),
                cameras: String::new(),
            })?,
        };
        let mut videos = episode.videos();
        let video = match &args.camera {
            Some(camera) => videos.find(|(key, _)| key == camera),
            None => videos.next(),
        };
        let (camera, span) = video.ok_or_else(|| Error::NoVideo {
            dataset: args.path.clone(),
            cameras: episode
                .videos()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        let last = episode.length().saturating_sub(1);
        let time_s = |frame: usize| span.from_timestamp_s() + frame as f64 / metadata.info().fps();
        Ok(Self {
            source: Source::parse(&args.path).map_err(episode_pool::Error::from)?,
            key: span.path().to_owned(),
            file: span.path().to_owned(),
            span: Some(Span {
                camera: camera.to_owned(),
                episode: episode.episode_index(),
                times_s: [0, last / 2, last].map(time_s),
                tolerance_s: pool.options().tolerance_s,
            }),
        })
    }

    fn camera(&self) -> &str {
        self.span.as_ref().map_or("video", |span| &span.camera)
    }

    /// Step after step, as far as one leads to the next.
    fn examine(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        // The first that fails ends it.
        let _: Result<(), ()> = self.examine_into(&mut steps);
        steps
    }

    fn examine_into(&self, steps: &mut Vec<Step>) -> Result<(), ()> {
        let mut take = |step: Step| {
            let result = if step.status == Status::Failed {
                Err(())
            } else {
                Ok(())
            };
            steps.push(step);
            result
        };
        let (anatomy, step) = self.bytes();
        take(step)?;
        take(container(&anatomy.ok_or(())?))?;
        let mut decoder = Decoder::new();
        let video = match self.open(&mut decoder) {
            Ok(video) => video,
            Err(error) => return take(open_failed(&error)),
        };
        take(stream(video.info()))?;
        take(gops(&video))?;
        take(decoders(video.info()))?;
        take(self.frames(&video, &mut decoder))?;
        take(device(
            video.info(),
            std::fs::read_to_string(NVIDIA_DRIVER).ok().as_deref(),
        ))
    }

    /// What the file is by its bytes.
    fn bytes(&self) -> (Option<Anatomy>, Step) {
        const NAME: &str = "bytes";
        let mut reader = match self.source.open(&self.key) {
            Ok(reader) => reader,
            Err(error) => return (None, Step::failed(NAME, causes(&error), None)),
        };
        let anatomy = match Anatomy::read(&mut reader) {
            Ok(anatomy) => anatomy,
            Err(error) => {
                let remedy =
                    "look at the disk, or at what it is mounted from: the bytes cannot be read";
                return (
                    None,
                    Step::failed(NAME, error.to_string(), Some(remedy.to_owned())),
                );
            }
        };
        let appearance = anatomy.appearance();
        let shown = anatomy.start[..anatomy.start.len().min(24)].escape_ascii();
        let found = format!(
            "{} of {}; begins with \"{shown}\"",
            appearance,
            count(anatomy.num_bytes, "byte")
        );
        let step = match appearance.remedy() {
            None => Step::ok(NAME, found),
            Some(remedy) => Step::failed(NAME, found, Some(remedy.to_owned())),
        };
        (Some(anatomy), step)
    }

    fn open(&self, decoder: &mut Decoder) -> Result<Video, decode::Error> {
        let reader = self
            .source
            .open(&self.key)
            .map_err(|error| decode::Error::Io {
                file: self.file.clone(),
                camera: self.camera().to_owned(),
                action: "open the file".to_owned(),
                source: io::Error::other(error),
            })?;
        let options = VideoOptions::default();
        Video::open_with(
            decoder,
            Box::new(reader),
            &self.file,
            self.camera(),
            &options,
        )
    }

    /// Decodes three frames: those of the episode, or else of the file.
    fn frames(&self, video: &Video, decoder: &mut Decoder) -> Step {
        const NAME: &str = "frames";
        let info = video.info();
        let (times_s, tolerance_s, of) = match &self.span {
            Some(span) => (
                span.times_s,
                span.tolerance_s,
                format!("of episode {}", span.episode),
            ),
            None => {
                let last_s = (info.end_s - video.frame_interval_s()).max(info.start_s);
                let middle_s = f64::midpoint(info.start_s, last_s);
                let tolerance_s = video.frame_interval_s();
                (
                    [info.start_s, middle_s, last_s],
                    tolerance_s,
                    "of the file".to_owned(),
                )
            }
        };
        let mut frames = Vec::new();
        for (name, time_s) in ["first", "middle", "last"].into_iter().zip(times_s) {
            let started = Instant::now();
            match decode_frame(video, decoder, time_s, tolerance_s) {
                Ok(mean) => frames.push(format!(
                    "{name} at {time_s:.3} s: mean value {mean:.1}, {:.1} ms",
                    started.elapsed().as_secs_f64() * 1e3
                )),
                Err(error) => {
                    let remedy = if error.is_frame_not_found() {
                        "the episode table's timestamps do not lead to this file's frames: look at `from_timestamp` and at the dataset's fps, \
                         or write the dataset anew"
                    } else {
                        "the file is damaged there: copy it again, or leave out its episodes with --exclude-episodes"
                    };
                    return Step::failed(
                        NAME,
                        format!("{name} frame {of}: {}", causes(&error)),
                        Some(remedy.to_owned()),
                    );
                }
            }
        }
        Step::ok(NAME, format!("{of}: {}", frames.join("; ")))
    }
}

/// A frame's mean value.
fn decode_frame(
    video: &Video,
    decoder: &mut Decoder,
    time_s: f64,
    tolerance_s: f64,
) -> Result<f64, decode::Error> {
    let info = video.info();
    let len = info.width * info.height * info.kind.channels();
    let mut decode =
        |pixels: Pixels<'_>| decoder.decode(video, &[time_s], tolerance_s, Layout::Hwc, pixels);
    let sum: u64 = match info.kind {
        Kind::Depth => {
            let mut codes = vec![0_u16; len];
            decode(Pixels::U16(&mut codes))?;
            codes.iter().map(|&code| u64::from(code)).sum()
        }
        _ => {
            let mut values = vec![0_u8; len];
            decode(Pixels::U8(&mut values))?;
            values.iter().map(|&value| u64::from(value)).sum()
        }
    };
    Ok(sum as f64 / len as f64)
}

/// How the file is laid out.
fn container(anatomy: &Anatomy) -> Step {
    const NAME: &str = "container";
    const UNFINISHED: &str = "the copy or the recording was not finished: copy it again; a recording that was cut off can sometimes be \
                              mended with a tool such as untrunc";
    let shown = anatomy.boxes.iter().take(8).map(|found| {
        let (kind, bytes) = (found.kind.escape_ascii(), thousands(found.num_bytes));
        format!("{kind} {bytes}")
    });
    let mut boxes = shown.collect::<Vec<_>>().join(", ");
    if anatomy.boxes.len() > 8 {
        boxes += &format!(" and {} more", thousands(anatomy.boxes.len() as u64 - 8));
    }
    let failed = |what: String| {
        Step::failed(
            NAME,
            format!("{what} (boxes and their bytes: {boxes})"),
            Some(UNFINISHED.to_owned()),
        )
    };
    if !anatomy.has(b"moov") {
        return failed("there is no header (moov)".to_owned());
    }
    if anatomy.is_cut_short() {
        let last = anatomy
            .boxes
            .last()
            .expect("a file that is cut short has a box");
        return failed(format!(
            "the file ends at byte {}, within the box {} that goes on to byte {}",
            thousands(anatomy.num_bytes),
            last.kind.escape_ascii(),
            thousands(last.start_byte.saturating_add(last.num_bytes))
        ));
    }
    if let Some(at) = anatomy.stray_byte {
        let what = format!(
            "what follows at byte {} is no box (boxes and their bytes: {boxes})",
            thousands(at)
        );
        return Step::note(
            NAME,
            what,
            "something was appended to the file, or its end is damaged; what comes before can be read",
        );
    }
    if anatomy.is_fragmented() {
        let what = format!("MP4 in fragments (boxes and their bytes: {boxes})");
        let remedy = "the whole file is read once to find its frames; `ffmpeg -i IN -c copy OUT.mp4` gives it one header without encoding anew";
        return Step::note(NAME, what, remedy);
    }
    let place = if anatomy.is_header_first() {
        "before"
    } else {
        "behind"
    };
    Step::ok(
        NAME,
        format!("MP4, its header {place} the pictures (boxes and their bytes: {boxes})"),
    )
}

/// Which step it is that a video cannot be opened for.
fn open_failed(error: &decode::Error) -> Step {
    let found = causes(error);
    match error {
        decode::Error::NoDecoder { remedy, .. } => {
            Step::failed("decoders", found, Some((*remedy).to_owned()))
        }
        decode::Error::Decode { .. } => {
            let remedy =
                "the file's first frame is damaged: copy the file again, or encode it anew";
            Step::failed("frames", found, Some(remedy.to_owned()))
        }
        // The others name their remedy, where there is one.
        _ => Step::failed("stream", found, None),
    }
}

fn stream(info: &VideoInfo) -> Step {
    let found = format!(
        "{} {}x{} {}, {} fps, {}, {:.3} s to {:.3} s",
        info.codec,
        info.width,
        info.height,
        info.pixel_format,
        (info.avg_fps * 1e3).round() / 1e3,
        count(info.num_frames as u64, "frame"),
        info.start_s,
        info.end_s,
    );
    Step::ok("stream", found)
}

/// How far a single frame is from where its decoding starts.
fn gops(video: &Video) -> Step {
    const NAME: &str = "gops";
    let (mut longest, mut length, mut gop) = (0, 0, None);
    let mut gops = 0_u64;
    for frame in 0..video.info().num_frames {
        let of = video.gop_of(frame);
        if frame == 0 || of != gop {
            (gop, length) = (of, 0);
            gops += 1;
        }
        length += 1;
        longest = longest.max(length);
    }
    let mean = video.info().num_frames as f64 / gops.max(1) as f64;
    let found = format!(
        "{} of {mean:.1} frames on average, {longest} at most",
        count(gops, "GOP")
    );
    if mean > LONG_GOP {
        let remedy = "a single frame costs the decoding of all before it in its GOP; where datasets are encoded anew, a keyframe every second \
                      frame (`-g 2`) makes random access several times faster, for larger files";
        return Step::note(NAME, found, remedy);
    }
    Step::ok(NAME, found)
}

/// What FFmpeg can decode here.
fn decoders(info: &VideoInfo) -> Step {
    let name = |codec: &str| {
        format!(
            "{codec} by {}",
            decode::decoder_for(codec).unwrap_or("none")
        )
    };
    let found = format!(
        "FFmpeg {} decodes this with {}; it has {}",
        decode::ffmpeg_version(),
        info.decoder,
        CODECS.map(name).join(", ")
    );
    Step::ok("decoders", found)
}

/// What decodes, and what could.
fn device(info: &VideoInfo, nvidia_driver: Option<&str>) -> Step {
    const NAME: &str = "device";
    let cpu = format!("decoded on the CPU, by {}", info.decoder);
    match nvidia_driver.and_then(|text| text.lines().next()) {
        None => Step::ok(NAME, format!("{cpu}; no NVIDIA driver is loaded here")),
        Some(driver) => {
            let found = format!("{cpu}; an NVIDIA driver is loaded ({})", driver.trim());
            let remedy = if info.codec == "av1" {
                "this build does not decode on GPUs; of NVIDIA's chips, those of the A10, A40, L4, L40, the RTX 30 series and later decode AV1, \
                 and those of the A100, H100 and H200 do not"
            } else {
                "this build does not decode on GPUs"
            };
            Step::note(NAME, found, remedy)
        }
    }
}

/// An error and its causes, on one line.
fn causes(error: &dyn std::error::Error) -> String {
    let text = error::chain(error);
    text.trim_start_matches("error: ")
        .replace("\n  because: ", ": ")
}

impl Diagnosis {
    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{}", self.file)?;
        if let (Some(camera), Some(episode)) = (&self.camera, self.episode) {
            write!(out, ", camera {camera}, episode {episode}")?;
        }
        writeln!(out)?;
        for step in &self.steps {
            let found = step.found.replace(char::is_control, " ");
            writeln!(out, "  {:<6}  {:<9}  {found}", step.status, step.name)?;
            if let Some(remedy) = &step.remedy {
                writeln!(out, "  {:<6}  {:<9}  -> {remedy}", "", "")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_without_a_decoder_are_told_with_a_remedy() {
        let error = decode::Error::NoDecoder {
            file: "a.mp4".to_owned(),
            camera: "top".to_owned(),
            codec: "av1".to_owned(),
            remedy: "install another FFmpeg",
        };
        let step = open_failed(&error);
        assert_eq!((step.name, step.status), ("decoders", Status::Failed));
        assert_eq!(step.remedy.as_deref(), Some("install another FFmpeg"));
    }
}
