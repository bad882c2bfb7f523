//! Camera frames: which video, at what time, into which part of an array.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dataset::{Episode, Feature, Metadata};
use decode::{CacheStats, Decoder, PicturePainter, Pixels, Video, VideoCache, VideoOptions};

use crate::ahead::Pictures;
use crate::array::{Array, ArrayData};
use crate::fetch::FetchMeans;
use crate::pool::Dataset;
use crate::schema::FieldKind;
use crate::{Error, Field};

/// The fewest frames that are worth a thread: writing one takes some 50 microseconds, and so does starting a thread.
const MIN_FRAMES_PER_THREAD: usize = 8;

/// The videos of a dataset, as one consumer and the threads that decode for it use them.
#[derive(Debug)]
pub(crate) struct Cameras {
    dataset: Arc<Dataset>,
    videos: VideoCache,
    source: VideoSource,
}

/// Where video files are opened.
#[derive(Debug)]
pub(crate) enum VideoSource {
    /// At the dataset's own source.
    Direct,
    /// Through the cache of what is fetched from there.
    #[cfg(feature = "remote")]
    Fetched(prefetch::Fetcher),
}

impl VideoSource {
    #[cfg(feature = "remote")]
    pub(crate) fn of(means: Option<&FetchMeans>) -> Self {
        means.map_or(Self::Direct, |means| Self::Fetched(means.fetcher().clone()))
    }

    #[cfg(not(feature = "remote"))]
    pub(crate) fn of(_: Option<&FetchMeans>) -> Self {
        Self::Direct
    }

    fn open(&self, dataset: &Dataset, path: &str) -> Result<prefetch::Reader, prefetch::Error> {
        match self {
            Self::Direct => dataset.bulk.open(path),
            #[cfg(feature = "remote")]
            Self::Fetched(fetcher) => fetcher.open(path),
        }
    }
}

/// A camera in an episode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CameraEpisode<'a> {
    pub(crate) camera: &'a Feature,
    pub(crate) episode: &'a Episode,
    /// The frame for which a sample is made; errors name it.
    pub(crate) frame_index: usize,
}

impl<'a> CameraEpisode<'a> {
    fn key(&self) -> &'a str {
        self.camera.key()
    }

    /// The file that the episode's frames lie in.
    pub(crate) fn path(&self) -> Option<&'a str> {
        self.episode.video(self.key()).map(|span| span.path())
    }

    fn no_video(&self) -> Error {
        Error::NoVideo {
            camera: self.key().to_owned(),
            episode_index: self.episode.episode_index(),
        }
    }

    fn failed(&self, source: decode::Error) -> Error {
        Error::Frame {
            camera: self.key().to_owned(),
            episode_index: self.episode.episode_index(),
            frame_index: self.frame_index,
            source,
        }
    }
}

impl Cameras {
    pub(crate) fn new(dataset: Arc<Dataset>, max_open_videos: usize, source: VideoSource) -> Self {
        Self {
            dataset,
            videos: VideoCache::new(max_open_videos),
            source,
        }
    }

    pub(crate) fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// What the cache of open videos has done so far.
    pub(crate) fn cache_stats(&self) -> CacheStats {
        self.videos.stats()
    }

    pub(crate) fn tolerance_s(&self) -> f64 {
        self.dataset.options.tolerance_s
    }

    /// When the frame at position `row` of an episode shows, on the file's clock.
    pub(crate) fn time_s(&self, start_s: f64, row: usize) -> f64 {
        start_s + row as f64 / self.dataset.metadata.info().fps()
    }

    /// A camera in an episode of the dataset.
    pub(crate) fn camera(
        &self,
        key: &str,
        episode_index: usize,
        frame_index: usize,
    ) -> CameraEpisode<'_> {
        let metadata = &self.dataset.metadata;
        CameraEpisode {
            camera: metadata
                .info()
                .feature(key)
                .expect("a field is a feature of the dataset"),
            episode: metadata
                .episode(episode_index)
                .expect("the plan was made from the metadata's episodes"),
            frame_index,
        }
    }

    /// The video that the episode's frames lie in, opened and checked where it is not open yet.
    pub(crate) fn open(
        &self,
        camera: CameraEpisode<'_>,
        decoder: &mut Decoder,
    ) -> Result<Arc<Video>, Error> {
        let path = camera.path().ok_or_else(|| camera.no_video())?;
        self.videos.get_or_open(path, || {
            let media =
                self.source
                    .open(&self.dataset, path)
                    .map_err(|source| Error::OpenVideo {
                        camera: camera.key().to_owned(),
                        episode_index: camera.episode.episode_index(),
                        frame_index: camera.frame_index,
                        source,
                    })?;
            let media = Box::new(media);
            let mut options = VideoOptions::default();
            options.resize = self.dataset.options.resize;
            let video = Video::open_with(decoder, media, path, camera.key(), &options)
                .map_err(|source| camera.failed(source))?;
            let info = video.info();
            check_picture_size(camera.camera, path, info.height, info.width)?;
            self.find_start(camera, &video)?;
            // An episode table that is shifted against its video still has intervals that lie within it: they hold other
            // episodes' frames. The last interval of the file tells.
            let metadata = &self.dataset.metadata;
            let last = self.dataset.last_episodes.get(path);
            if let Some(episode) = last.and_then(|&last| metadata.episode(last)) {
                self.find_start(CameraEpisode { episode, ..camera }, &video)?;
            }
            Ok(video)
        })
    }

    /// The frames of a video that are nearest to where some rows of an episode should be.
    #[cfg(feature = "remote")]
    pub(crate) fn frames_near<const N: usize>(
        &self,
        camera: CameraEpisode<'_>,
        video: &Video,
        rows: [usize; N],
    ) -> Result<[usize; N], Error> {
        let start_s = self.find_start(camera, video)?;
        let mut frames = [0; N];
        for (frame, row) in frames.iter_mut().zip(rows) {
            let nearest = video.nearest(self.time_s(start_s, row));
            (*frame, _) = nearest.map_err(|source| camera.failed(source))?;
        }
        Ok(frames)
    }

    /// The time of an episode's first frame in its video: the frame nearest to `from_timestamp`, at most half a frame away.
    ///
    /// `from_timestamp` is a running sum of durations, in some datasets of single precision: it drifts by far more than
    /// the tolerance, while the frames that it means are never in doubt.
    pub(crate) fn find_start(
        &self,
        camera: CameraEpisode<'_>,
        video: &Video,
    ) -> Result<f64, Error> {
        let span = camera
            .episode
            .video(camera.key())
            .ok_or_else(|| camera.no_video())?;
        let from_s = span.from_timestamp_s();
        // A rounding error more than half a frame is still half a frame.
        let slack_s = video.frame_interval_s() / 2.0 * (1.0 + 1e-6);
        let last_row = camera.episode.length().saturating_sub(1);
        let last_s = video.info().end_s - video.frame_interval_s();
        let (_, start_s) = video
            .nearest(from_s)
            .map_err(|source| camera.failed(source))?;
        let fits = (start_s - from_s).abs() <= slack_s
            && self.time_s(start_s, last_row) <= last_s + slack_s;
        if !fits {
            return Err(Error::VideoInterval {
                camera: camera.key().to_owned(),
                episode_index: camera.episode.episode_index(),
                file: span.path().to_owned(),
                wanted_from_s: from_s,
                wanted_to_s: self.time_s(from_s, last_row),
                found_from_s: video.info().start_s,
                found_to_s: last_s,
            });
        }
        Ok(start_s)
    }
}

/// Writes a consumer's camera frames: pictures that were decoded ahead, or else decoded here and now.
///
/// Frames are asked for sample by sample, and written when several are together, by several threads.
#[derive(Debug)]
pub(crate) struct CameraWriter {
    cameras: Arc<Cameras>,
    decoder: Decoder,
    /// One for each thread.
    painters: Vec<PicturePainter>,
    /// What was asked for and is not written yet, in order.
    wanted: Vec<WantedFrames>,
    frames_used: u64,
}

/// A camera's frames of one sample.
#[derive(Debug)]
pub(crate) struct WantedFrames {
    /// The camera's position among the dataset's fields.
    pub(crate) field: usize,
    /// The row of the batch that they belong in.
    pub(crate) row: usize,
    pub(crate) episode_index: usize,
    /// The frame for which the sample is made.
    pub(crate) frame_index: usize,
    /// The frames' positions in the episode, `[T]`.
    pub(crate) positions: Vec<usize>,
    /// The frames, if they are decoded ahead.
    pub(crate) pictures: Option<Pictures>,
}

impl CameraWriter {
    pub(crate) fn new(cameras: Arc<Cameras>, num_threads: usize) -> Self {
        let layout = cameras.dataset.options.frame_layout;
        let painter = |_| PicturePainter::new(layout);
        Self {
            cameras,
            decoder: Decoder::new(),
            painters: (0..num_threads.max(1)).map(painter).collect(),
            wanted: Vec::new(),
            frames_used: 0,
        }
    }

    pub(crate) fn cameras(&self) -> &Cameras {
        &self.cameras
    }

    pub(crate) fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    /// The camera frames asked for so far, repetitions within a window left out.
    pub(crate) fn frames_used(&self) -> u64 {
        self.frames_used
    }

    /// Asks for frames, to be written by the next [`flush`](Self::flush).
    pub(crate) fn want(&mut self, wanted: WantedFrames) {
        let mut distinct = wanted.positions.clone();
        distinct.sort_unstable();
        distinct.dedup();
        self.frames_used += distinct.len() as u64;
        self.wanted.push(wanted);
    }

    /// Writes all frames that were asked for. Fails for the first that cannot be had, and forgets the others. Leaves out what there is still
    /// to decode once `interrupted` is set.
    pub(crate) fn flush(
        &mut self,
        arrays: &mut [Array],
        interrupted: &AtomicBool,
    ) -> Result<(), Error> {
        let wanted = std::mem::take(&mut self.wanted);
        let outputs = outputs(&self.cameras.dataset.fields, arrays, &wanted);
        let mut tasks: Vec<(&WantedFrames, Pixels<'_>, bool)> = wanted
            .iter()
            .zip(outputs)
            .map(|(wanted, out)| (wanted, out, false))
            .collect();

        let num_frames: usize = wanted.iter().map(|wanted| wanted.positions.len()).sum();
        let num_threads = self
            .painters
            .len()
            .min(num_frames / MIN_FRAMES_PER_THREAD)
            .max(1);
        let per_thread = tasks.len().div_ceil(num_threads).max(1);
        let paint_all = |painter: &mut PicturePainter,
                         tasks: &mut [(&WantedFrames, Pixels<'_>, bool)]| {
            for (wanted, out, done) in tasks {
                *done = paint(painter, wanted, out);
            }
        };
        thread::scope(|scope| {
            let mut parts = self.painters.iter_mut().zip(tasks.chunks_mut(per_thread));
            let own = parts.next();
            for (painter, part) in parts {
                scope.spawn(move || paint_all(painter, part));
            }
            if let Some((painter, part)) = own {
                paint_all(painter, part);
            }
        });

        tasks
            .into_iter()
            .filter(|(_, _, done)| !done && !interrupted.load(Ordering::Relaxed))
            .try_for_each(|(wanted, out, _)| self.decode(wanted, out))
    }

    /// Decodes and writes frames that were not decoded ahead.
    fn decode(&mut self, wanted: &WantedFrames, out: Pixels<'_>) -> Result<(), Error> {
        let cameras = Arc::clone(&self.cameras);
        let key = cameras.dataset.fields[wanted.field].key();
        let camera = cameras.camera(key, wanted.episode_index, wanted.frame_index);
        let video = cameras.open(camera, &mut self.decoder)?;
        let start_s = cameras.find_start(camera, &video)?;
        let times_s: Vec<f64> = wanted
            .positions
            .iter()
            .map(|&position| cameras.time_s(start_s, position))
            .collect();
        let layout = cameras.dataset.options.frame_layout;
        self.decoder
            .decode(&video, &times_s, cameras.tolerance_s(), layout, out)
            .map_err(|source| camera.failed(source))
    }
}

/// Writes pictures that were decoded ahead; false if one of them was not.
fn paint(painter: &mut PicturePainter, wanted: &WantedFrames, out: &mut Pixels<'_>) -> bool {
    let num_frames = wanted.positions.len();
    let Some(pictures) = &wanted.pictures else {
        return false;
    };
    if pictures.len() != num_frames {
        return false;
    }
    let frame_len = out.len() / num_frames.max(1);
    for frame in 0..num_frames {
        let first = pictures.first_like(frame);
        if first < frame {
            out.copy_frame(frame_len, first, frame);
            continue;
        }
        let painted = pictures
            .wait(frame)
            .is_some_and(|picture| painter.paint(picture, out.frame(frame_len, frame)).is_ok());
        if !painted {
            return false;
        }
    }
    true
}

/// The part of the arrays that each of the wanted frames is to be written to.
fn outputs<'a>(
    fields: &[Field],
    arrays: &'a mut [Array],
    wanted: &[WantedFrames],
) -> Vec<Pixels<'a>> {
    // By field, and then by row, each taken once.
    let mut rows: Vec<Vec<Option<Pixels<'a>>>> = fields
        .iter()
        .zip(arrays)
        .map(|(field, array)| match field.kind {
            FieldKind::Video { .. } => pixels_by_row(field, array),
            _ => Vec::new(),
        })
        .collect();
    wanted
        .iter()
        .map(|wanted| {
            rows[wanted.field][wanted.row]
                .take()
                .expect("a sample asks for a camera once")
        })
        .collect()
}

fn pixels_by_row<'a>(field: &Field, array: &'a mut Array) -> Vec<Option<Pixels<'a>>> {
    let row_len = field.shape().iter().product::<usize>().max(1);
    match array.data_mut() {
        ArrayData::U8(data) => data
            .chunks_exact_mut(row_len)
            .map(|row| Some(Pixels::U8(row)))
            .collect(),
        ArrayData::U16(data) => data
            .chunks_exact_mut(row_len)
            .map(|row| Some(Pixels::U16(row)))
            .collect(),
        ArrayData::F32(data) => data
            .chunks_exact_mut(row_len)
            .map(|row| Some(Pixels::F32(row)))
            .collect(),
        other => unreachable!("a camera's array holds {:?}", other.element_type()),
    }
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
