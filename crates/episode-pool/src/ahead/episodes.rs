//! From emissions to frames of video files.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use decode::{Decoder, Video};
use lookahead::{FrameId, Gop, Wanted};
use pool_core::Emission;
use window::Offsets;

use super::SampleFrames;
use crate::cameras::{CameraEpisode, Cameras};
use crate::columns::Rows;
use crate::schema::FieldKind;

/// The episodes between what was emitted last and the horizon: where each of their frames lies.
#[derive(Debug)]
pub(super) struct Episodes {
    cameras: Arc<Cameras>,
    /// The video fields, in the order of the dataset's fields.
    fields: Vec<VideoField>,
    /// For every video field, where the episode's frames lie. `None` where that could not be found out.
    known: HashMap<usize, Box<[Option<EpisodeFrames>]>>,
    /// Every file that was looked at, by its number.
    videos: Vec<Arc<VideoPlace>>,
    numbers: HashMap<Arc<str>, u32>,
}

#[derive(Debug)]
struct VideoField {
    key: Arc<str>,
    window: Option<Offsets>,
}

/// A video file, and whose it is.
#[derive(Debug)]
pub(super) struct VideoPlace {
    pub(super) path: Arc<str>,
    field: Arc<str>,
    /// An episode that lies in it.
    episode_index: usize,
}

/// Where the frames of an episode lie in a camera's video.
#[derive(Debug)]
struct EpisodeFrames {
    /// The size of each, decoded.
    bytes: u32,
    /// By their position in the episode. `None` where the video has no such frame.
    frames: Box<[Option<FrameId>]>,
}

impl VideoPlace {
    pub(super) fn camera<'a>(&'a self, cameras: &'a Cameras) -> CameraEpisode<'a> {
        cameras.camera(&self.field, self.episode_index, 0)
    }
}

impl Episodes {
    pub(super) fn new(cameras: Arc<Cameras>) -> Self {
        let fields = cameras.dataset().fields.iter();
        let fields = fields.filter_map(|field| match &field.kind {
            FieldKind::Video { window } => Some(VideoField {
                key: field.shared_key(),
                window: window.clone(),
            }),
            _ => None,
        });
        Self {
            fields: fields.collect(),
            cameras,
            known: HashMap::new(),
            videos: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// The file of a number.
    pub(super) fn video(&self, number: u32) -> Arc<VideoPlace> {
        Arc::clone(&self.videos[number as usize])
    }

    /// Lets go of an episode of which no frame will be emitted any more.
    pub(super) fn forget(&mut self, episode_index: usize) {
        self.known.remove(&episode_index);
    }

    /// Takes it that nothing is known of where an episode's frames lie.
    pub(super) fn give_up(&mut self, episode_index: usize) {
        let none = self.fields.iter().map(|_| None).collect();
        self.known.entry(episode_index).or_insert(none);
    }

    /// Where in their files the bytes of some frames lie.
    pub(super) fn bytes_of(
        &self,
        frames: &SampleFrames,
        decoder: &mut Decoder,
    ) -> Vec<(Arc<str>, Vec<Range<u64>>)> {
        let mut bytes = Vec::with_capacity(frames.len());
        for field in frames {
            let mut frames: Vec<FrameId> = field.iter().copied().flatten().collect();
            frames.sort_unstable_by_key(|id| (id.gop.video, id.frame));
            frames.dedup();
            for of_video in frames.chunk_by(|a, b| a.gop.video == b.gop.video) {
                let place = self.video(of_video[0].gop.video);
                // What the matter is comes out when the frames are decoded.
                let Ok(video) = self.cameras.open(place.camera(&self.cameras), decoder) else {
                    continue;
                };
                let ranges = of_video.iter().flat_map(|id| {
                    let frame = id.frame as usize;
                    video.byte_ranges(frame..frame + 1)
                });
                bytes.push((Arc::clone(&place.path), ranges.collect()));
            }
        }
        bytes
    }

    /// The frames that an emission wants: by field and row of its window, and as one list.
    pub(super) fn frames_of(
        &mut self,
        emission: &Emission,
        decoder: &mut Decoder,
    ) -> (SampleFrames, Vec<Wanted>) {
        let episode_index = emission.episode_index;
        if !self.known.contains_key(&episode_index) {
            let found = (0..self.fields.len())
                .map(|field| self.find(field, episode_index, decoder))
                .collect();
            self.known.insert(episode_index, found);
        }
        let mut wanted = Vec::new();
        let frames = self.fields.iter().zip(&self.known[&episode_index]);
        let frames = frames.map(|(field, known)| {
            let length = known.as_ref().map_or(0, |known| known.frames.len());
            let rows = Rows::new(field.window.as_ref(), emission.frame_index, length);
            let Some(known) = known else {
                return Box::default();
            };
            let frames: Box<[_]> = rows
                .indices()
                .into_iter()
                .map(|row| known.frames.get(row).copied().flatten())
                .collect();
            wanted.extend(frames.iter().flatten().map(|&frame| Wanted {
                frame,
                bytes: known.bytes,
            }));
            frames
        });
        (frames.collect(), wanted)
    }

    /// Where an episode's frames lie in a field's video; `None` where that cannot be told. What the matter is comes out when a
    /// sample wants one of them.
    fn find(
        &mut self,
        field: usize,
        episode_index: usize,
        decoder: &mut Decoder,
    ) -> Option<EpisodeFrames> {
        let cameras = Arc::clone(&self.cameras);
        let key = Arc::clone(&self.fields[field].key);
        let camera = cameras.camera(&key, episode_index, 0);
        let path = camera.path()?;
        let video = cameras.open(camera, decoder).ok()?;
        let start_s = cameras.find_start(camera, &video).ok()?;
        let number = self.number(path, &key, episode_index)?;
        let frames = (0..camera.episode.length())
            .map(|row| {
                let time_s = cameras.time_s(start_s, row);
                let frame = video.frame_at(time_s, cameras.tolerance_s()).ok()?;
                frame_id(&video, number, frame)
            })
            .collect();
        Some(EpisodeFrames {
            bytes: u32::try_from(video.picture_bytes()).unwrap_or(u32::MAX),
            frames,
        })
    }

    /// The number of a file.
    fn number(&mut self, path: &str, field: &Arc<str>, episode_index: usize) -> Option<u32> {
        if let Some(&number) = self.numbers.get(path) {
            return Some(number);
        }
        let number = u32::try_from(self.videos.len()).ok()?;
        let path: Arc<str> = path.into();
        self.numbers.insert(Arc::clone(&path), number);
        self.videos.push(Arc::new(VideoPlace {
            path,
            field: Arc::clone(field),
            episode_index,
        }));
        Some(number)
    }
}

fn frame_id(video: &Video, number: u32, frame: usize) -> Option<FrameId> {
    let gop = Gop {
        video: number,
        start: u32::try_from(video.gop_of(frame)?).ok()?,
    };
    let frame = u32::try_from(frame).ok()?;
    Some(FrameId { gop, frame })
}
