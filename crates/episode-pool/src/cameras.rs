//! Camera frames: which video, at what time, into which part of an array.

use std::collections::BTreeMap;

use dataset::{Episode, Feature, Metadata};
use decode::{DecoderCache, Layout, Pixels, Video, VideoOptions};
use prefetch::Source;

use crate::Error;

/// Everything that reading a camera's frames needs beside the episode.
#[derive(Debug)]
pub(crate) struct Cameras<'a> {
    pub(crate) source: &'a Source,
    pub(crate) metadata: &'a Metadata,
    /// The episode whose interval in each video file is the last, by path.
    pub(crate) last_episodes: &'a BTreeMap<String, usize>,
    pub(crate) decoders: &'a DecoderCache,
    pub(crate) fps: f64,
    pub(crate) tolerance_s: f64,
    pub(crate) layout: Layout,
}

/// One camera's part of a sample.
#[derive(Debug)]
pub(crate) struct CameraRequest<'a> {
    pub(crate) camera: &'a Feature,
    pub(crate) episode: &'a Episode,
    /// The frame for which the sample is made; errors name it.
    pub(crate) frame_index: usize,
    /// The wanted frames, as seconds from the episode's start, `[T]`.
    pub(crate) times_s: &'a [f64],
}

impl Cameras<'_> {
    /// Decodes the wanted frames into `out`, and tells when the episode starts on the file's clock.
    ///
    /// `start_s` is that same time when it is known already.
    pub(crate) fn decode(
        &self,
        request: &CameraRequest<'_>,
        start_s: Option<f64>,
        out: Pixels<'_>,
    ) -> Result<f64, Error> {
        let camera = request.camera.key();
        let episode_index = request.episode.episode_index();
        let in_frame = |source| Error::Frame {
            camera: camera.to_owned(),
            episode_index,
            frame_index: request.frame_index,
            source,
        };
        let span = request
            .episode
            .video(camera)
            .ok_or_else(|| Error::NoVideo {
                camera: camera.to_owned(),
                episode_index,
            })?;
        let open = || {
            let media = self
                .source
                .open(span.path())
                .map_err(|source| Error::OpenVideo {
                    camera: camera.to_owned(),
                    episode_index,
                    frame_index: request.frame_index,
                    source,
                })?;
            let video = Video::open(
                Box::new(media),
                span.path(),
                camera,
                &VideoOptions::default(),
            )
            .map_err(in_frame)?;
            check_size(request.camera, span.path(), &video)?;
            self.find_start(request, request.episode, &video)?;
            // An episode table that is shifted against its video still has intervals that lie within it: they hold other
            // episodes' frames. The last interval of the file tells.
            let last = self.last_episodes.get(span.path());
            if let Some(last) = last.and_then(|&last| self.metadata.episode(last)) {
                self.find_start(request, last, &video)?;
            }
            Ok(video)
        };
        self.decoders.decode_with(span.path(), open, |video| {
            let start_s = match start_s {
                Some(start_s) => start_s,
                None => self.find_start(request, request.episode, video)?,
            };
            let times_s: Vec<f64> = request
                .times_s
                .iter()
                .map(|time_s| start_s + time_s)
                .collect();
            video
                .decode(&times_s, self.tolerance_s, self.layout, out)
                .map_err(in_frame)?;
            Ok(start_s)
        })
    }

    /// The time of an episode's first frame in the requested camera's video: the frame nearest to `from_timestamp`, at most
    /// half a frame away.
    ///
    /// `from_timestamp` is a running sum of durations, in some datasets of single precision: it drifts by far more than
    /// the tolerance, while the frames that it means are never in doubt.
    fn find_start(
        &self,
        request: &CameraRequest<'_>,
        episode: &Episode,
        video: &Video,
    ) -> Result<f64, Error> {
        let camera = request.camera.key();
        let episode_index = episode.episode_index();
        let span = episode.video(camera).ok_or_else(|| Error::NoVideo {
            camera: camera.to_owned(),
            episode_index,
        })?;
        let from_s = span.from_timestamp_s();
        // A rounding error more than half a frame is still half a frame.
        let slack_s = video.frame_interval_s() / 2.0 * (1.0 + 1e-6);
        let duration_s = (episode.length().saturating_sub(1)) as f64 / self.fps;
        let last_s = video.info().end_s - video.frame_interval_s();
        let (_, start_s) = video.nearest(from_s).map_err(|source| Error::Frame {
            camera: camera.to_owned(),
            episode_index,
            frame_index: request.frame_index,
            source,
        })?;
        let fits = (start_s - from_s).abs() <= slack_s && start_s + duration_s <= last_s + slack_s;
        if !fits {
            return Err(Error::VideoInterval {
                camera: camera.to_owned(),
                episode_index,
                file: span.path().to_owned(),
                wanted_from_s: from_s,
                wanted_to_s: from_s + duration_s,
                found_from_s: video.info().start_s,
                found_to_s: last_s,
            });
        }
        Ok(start_s)
    }
}

fn check_size(camera: &Feature, file: &str, video: &Video) -> Result<(), Error> {
    let info = video.info();
    check_picture_size(camera, file, info.height, info.width)
}

/// Checks a picture's size against the one that `info.json` declares.
pub(crate) fn check_picture_size(
    camera: &Feature,
    file: &str,
    height: usize,
    width: usize,
) -> Result<(), Error> {
    let expected = camera.picture_size().ok_or_else(|| Error::CameraShape {
        camera: camera.key().to_owned(),
        found: camera.shape().to_vec(),
    })?;
    if (height, width) == (expected.height, expected.width) {
        return Ok(());
    }
    Err(Error::PictureSize {
        camera: camera.key().to_owned(),
        file: file.to_owned(),
        found_height: height,
        found_width: width,
        expected_height: expected.height,
        expected_width: expected.width,
    })
}

/// The episode whose interval in each video file is the last, by the file's path.
pub(crate) fn last_episodes(metadata: &Metadata) -> BTreeMap<String, usize> {
    let mut last: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for episode in metadata.episodes() {
        for camera in metadata.info().camera_keys() {
            let Some(span) = episode.video(camera) else {
                continue;
            };
            let here = (span.from_timestamp_s(), episode.episode_index());
            last.entry(span.path().to_owned())
                .and_modify(|last| {
                    if here.0 > last.0 {
                        *last = here;
                    }
                })
                .or_insert(here);
        }
    }
    last.into_iter()
        .map(|(path, (_, episode_index))| (path, episode_index))
        .collect()
}
