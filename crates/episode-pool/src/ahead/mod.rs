//! Decoding ahead: an epoch's order is known, so that each GOP can be decoded once for all the samples that will want it soon.
//!
//! A consumer reads its plan ahead up to a horizon, and tells the [`Scheduler`] which frames each sample will want. The scheduler says which
//! frames to decode together; the threads do it; and a sample finds its pictures decoded, in the order planned.
//!
//! Nothing of this can change what comes out. Whatever goes wrong ahead (a file that does not open, a packet that is damaged, a
//! time without a frame) only leaves a picture undone. The sample that wants it then decodes it itself, and meets the error, if there still
//! is one, in its turn and by its name.

mod episodes;
mod slot;
mod threads;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use decode::{DecodeStats, Decoder};
use lookahead::{FrameId, Pass, Scheduler};
use pool_core::{Emission, Step};

use crate::cameras::Cameras;
use crate::course::Course;
use crate::fetch::{FetchMeans, Fetches};
use crate::{Error, FetchReport};
use episodes::{Episodes, VideoPlace};
pub(crate) use slot::Pictures;
use slot::{Slot, Undone};
pub(crate) use threads::DecodeThreads;
use threads::{Task, Work};

/// The most wanted frames that are known ahead, for all consumers of a rank together: some 70 bytes each.
const MAX_HORIZON_FRAMES: usize = 1 << 19;
/// Of which each consumer has at least so many.
const MIN_HORIZON_FRAMES: usize = 1 << 12;
/// By how many samples the horizon moves on, at most, while one is emitted.
const HORIZON_STEP: usize = 1024;
/// It stops earlier once so many files had to be opened, for the sample to be emitted waits.
const MAX_OPENS_PER_STEP: u64 = 4;
/// The most samples that are under way at once.
const MAX_SCHEDULED: usize = 256;
/// The passes that are under way at once, for each thread: enough that none runs dry while a sample is put together.
const PASSES_PER_THREAD: usize = 4;

/// What decoding for one epoch has cost, and what it was good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecodeReport {
    /// Passes over a GOP.
    pub gops_decoded: u64,
    /// Frames that decoders gave, whether a sample wanted them or only other frames did.
    pub frames_decoded: u64,
    /// Camera frames in the samples emitted; one that a sample repeats at an episode's edge counts once.
    pub frames_used: u64,
    /// Decoders opened: one for each thread and kind of stream, at best.
    pub decoder_opens: u64,
    /// The most memory that decoded frames took at once, by the scheduler's account, in bytes.
    pub peak_held_bytes: u64,
}

impl DecodeReport {
    /// Frames used for each frame decoded; 0 before the first. Above 1 where windows share frames.
    #[must_use]
    pub fn reuse(&self) -> f64 {
        if self.frames_decoded == 0 {
            0.0
        } else {
            self.frames_used as f64 / self.frames_decoded as f64
        }
    }

    /// Adds what another consumer did. Memory adds up, too: consumers hold theirs at the same time.
    pub fn merge(&mut self, other: Self) {
        self.gops_decoded += other.gops_decoded;
        self.frames_decoded += other.frames_decoded;
        self.frames_used += other.frames_used;
        self.decoder_opens += other.decoder_opens;
        self.peak_held_bytes += other.peak_held_bytes;
    }
}

/// What a consumer may work with, and shares with the rank's others.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    /// None for a dataset without videos.
    pub(crate) decode: Option<DecodeMeans>,
    /// None for a dataset of this machine.
    pub(crate) fetch: Option<FetchMeans>,
}

/// The threads and the memory that a consumer may decode with.
#[derive(Debug, Clone)]
pub(crate) struct DecodeMeans {
    pub(crate) threads: Arc<DecodeThreads>,
    /// The most memory that decoded frames may take, in bytes.
    pub(crate) budget_bytes: u64,
    /// The consumers that share the threads.
    pub(crate) num_consumers: usize,
    /// The threads that each of them may write a batch's pictures with, while it waits for that.
    pub(crate) num_painters: usize,
}

/// One consumer's steps, with the camera frames of its emissions decoded ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    course: Course,
    /// What the course said and the consumer has yet to do.
    steps: VecDeque<Step>,
    num_emissions: usize,
    /// What the course said next, of an episode of which too little is known yet.
    put_off: Option<Step>,
    decoding: Option<Decoding>,
    fetches: Option<Fetches>,
}

/// What a dataset with videos needs.
#[derive(Debug)]
struct Decoding {
    means: DecodeMeans,
    shared: Arc<Shared>,
    episodes: Episodes,
    scheduler: Scheduler,
    /// The frames of every emission in `steps`.
    samples: VecDeque<SampleFrames>,
    /// The pictures that are decoded, or will be.
    slots: HashMap<FrameId, Arc<Slot>>,
    num_scheduled: u64,
    peak_held_bytes: u64,
    max_horizon_frames: usize,
}

/// What a consumer and its tasks share.
#[derive(Debug)]
struct Shared {
    cameras: Arc<Cameras>,
    interrupted: Arc<AtomicBool>,
    passes_under_way: Arc<AtomicUsize>,
    gops: AtomicU64,
    frames: AtomicU64,
    opens: AtomicU64,
}

/// The frames of one sample: for every video field, in order, one for each row of its window. `None` where the frame could not be found.
type SampleFrames = Box<[Box<[Option<FrameId>]>]>;

/// A step, and what was decoded for it.
#[derive(Debug)]
pub(crate) enum Next {
    Admit(usize),
    Evict(usize),
    /// With its pictures, or why they cannot be fetched.
    Emit(Emission, Result<SamplePictures, Error>),
}

/// A sample's pictures: for every video field, in order, one for each row of its window.
#[derive(Debug, Default)]
pub(crate) struct SamplePictures {
    fields: VecDeque<Pictures>,
}

impl SamplePictures {
    /// The next video field's pictures; none where nothing is decoded ahead.
    pub(crate) fn next_field(&mut self) -> Option<Pictures> {
        self.fields.pop_front()
    }
}

impl Ahead {
    /// Once `interrupted` is set, nothing more is decoded or waited for.
    pub(crate) fn new(
        course: Course,
        cameras: &Arc<Cameras>,
        means: Means,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let has_horizon = means.decode.is_some();
        let fetches = means
            .fetch
            .map(|means| Fetches::new(means, &course, cameras, &interrupted, has_horizon));
        let decoding = means.decode.map(|means| Decoding {
            scheduler: Scheduler::new(means.budget_bytes),
            max_horizon_frames: (MAX_HORIZON_FRAMES / means.num_consumers.max(1))
                .max(MIN_HORIZON_FRAMES),
            means,
            episodes: Episodes::new(Arc::clone(cameras)),
            shared: Arc::new(Shared {
                cameras: Arc::clone(cameras),
                interrupted,
                passes_under_way: Arc::default(),
                gops: AtomicU64::new(0),
                frames: AtomicU64::new(0),
                opens: AtomicU64::new(0),
            }),
            samples: VecDeque::new(),
            slots: HashMap::new(),
            num_scheduled: 0,
            peak_held_bytes: 0,
        });
        Self {
            course,
            steps: VecDeque::new(),
            num_emissions: 0,
            put_off: None,
            decoding,
            fetches,
        }
    }

    /// The number of samples still to come.
    pub(crate) fn remaining(&self) -> u64 {
        let put_off = u64::from(self.put_off.as_ref().is_some_and(is_emission));
        self.course.remaining() + self.num_emissions as u64 + put_off
    }

    /// What was done so far, without the frames used.
    pub(crate) fn report(&self) -> DecodeReport {
        let Some(decoding) = &self.decoding else {
            return DecodeReport::default();
        };
        let shared = &decoding.shared;
        DecodeReport {
            gops_decoded: shared.gops.load(Ordering::Relaxed),
            frames_decoded: shared.frames.load(Ordering::Relaxed),
            frames_used: 0,
            decoder_opens: shared.opens.load(Ordering::Relaxed),
            peak_held_bytes: decoding.peak_held_bytes,
        }
    }

    /// The next step; `None` at the epoch's end. A sample must be [released](Self::release) before the next is asked for.
    ///
    /// `decoder` opens the files that are first looked at here.
    pub(crate) fn next(&mut self, decoder: &mut Decoder) -> Option<Next> {
        self.look_ahead(decoder);
        match self.steps.pop_front()? {
            Step::Admit { episode_index } => {
                if let Some(fetches) = &mut self.fetches {
                    fetches.admit(episode_index);
                }
                Some(Next::Admit(episode_index))
            }
            Step::Evict { episode_index } => {
                if let Some(fetches) = &mut self.fetches {
                    fetches.evict(episode_index);
                }
                Some(Next::Evict(episode_index))
            }
            Step::Emit(emission) => {
                self.num_emissions -= 1;
                let pictures = match (&mut self.decoding, &mut self.fetches) {
                    (Some(decoding), fetches) => {
                        decoding.take_sample(&emission, fetches.as_mut(), decoder)
                    }
                    (None, _) => Ok(SamplePictures::default()),
                };
                Some(Next::Emit(emission, pictures))
            }
        }
    }

    /// What is fetched ahead; none for a dataset of this machine.
    pub(crate) fn fetches(&mut self) -> Option<&mut Fetches> {
        self.fetches.as_mut()
    }

    /// What fetching has cost so far.
    pub(crate) fn fetch_report(&self) -> FetchReport {
        let fetches = self.fetches.as_ref();
        fetches.map(Fetches::report).unwrap_or_default()
    }

    /// Lets go of the pictures of the sample that was emitted last, but for those that others will want. Whoever has yet to write them
    /// has its own hold on them.
    pub(crate) fn release(&mut self) {
        if let Some(decoding) = &mut self.decoding {
            for frame in decoding.scheduler.release() {
                decoding.slots.remove(&frame);
            }
        }
    }

    /// Moves the horizon on, and schedules what there is room for.
    fn look_ahead(&mut self, decoder: &mut Decoder) {
        let Some(decoding) = &mut self.decoding else {
            let step = self.course.next();
            self.num_emissions = usize::from(step.as_ref().is_some_and(is_emission));
            self.steps.extend(step);
            return;
        };
        if !self.steps.front().is_none_or(is_emission) {
            return;
        }
        let (mut moved, opened) = (0, decoding.num_opened());
        while moved < HORIZON_STEP
            && decoding.num_opened() < opened + MAX_OPENS_PER_STEP
            && decoding.scheduler.num_waiting_uses() < decoding.max_horizon_frames
        {
            let Some(step) = self.put_off.take().or_else(|| self.course.next()) else {
                break;
            };
            match step {
                Step::Emit(emission) => {
                    if let Some(fetches) = &mut self.fetches
                        && !fetches.is_mapped(emission.episode_index)
                    {
                        if !self.steps.is_empty() {
                            self.put_off = Some(step);
                            break;
                        }
                        fetches.wait_mapped(emission.episode_index);
                    }
                    decoding.push(&emission, self.fetches.as_ref(), decoder);
                    self.num_emissions += 1;
                    moved += 1;
                }
                Step::Evict { episode_index } => decoding.episodes.forget(episode_index),
                Step::Admit { .. } => {}
            }
            self.steps.push_back(step);
        }
        decoding.schedule();
    }
}

fn is_emission(step: &Step) -> bool {
    matches!(step, Step::Emit(_))
}

impl Decoding {
    /// The files opened so far.
    fn num_opened(&self) -> u64 {
        self.shared.cameras.cache_stats().misses
    }

    /// Takes note of what an emission will want.
    fn push(&mut self, emission: &Emission, fetches: Option<&Fetches>, decoder: &mut Decoder) {
        let episode_index = emission.episode_index;
        let before = decoder.stats();
        if fetches.is_some_and(|fetches| fetches.is_lost(episode_index)) {
            self.episodes.give_up(episode_index);
        }
        if let Some(fetches) = fetches {
            fetches.want_rows(episode_index);
        }
        let (frames, wanted) = self.episodes.frames_of(emission, decoder);
        if let Some(fetches) = fetches.filter(|fetches| !fetches.is_whole(episode_index)) {
            for (file, ranges) in self.episodes.bytes_of(&frames, decoder) {
                fetches.want(episode_index, &file, &ranges);
            }
        }
        self.shared.count(before, decoder.stats());
        self.scheduler.push(&wanted);
        self.samples.push_back(frames);
    }

    /// Starts passes for the samples to come: no more than keeps the threads busy, but those of the next sample in any case.
    fn schedule(&mut self) {
        let max_passes = PASSES_PER_THREAD * self.means.threads.len();
        loop {
            let under_way = self.scheduler.num_scheduled();
            let passes = self.shared.passes_under_way.load(Ordering::Relaxed);
            if under_way > 0 && (under_way >= MAX_SCHEDULED || passes >= max_passes) {
                break;
            }
            let Some(scheduled) = self.scheduler.schedule() else {
                break;
            };
            self.peak_held_bytes = self.peak_held_bytes.max(self.scheduler.held_bytes());
            for pass in &scheduled.passes {
                self.start(pass);
            }
            for frame in &scheduled.dropped {
                self.slots.remove(frame);
            }
            self.num_scheduled += 1;
        }
    }

    /// Hands a pass to the threads.
    fn start(&mut self, pass: &Pass) {
        let slots = pass.frames.iter().map(|&frame| {
            let id = FrameId {
                gop: pass.gop,
                frame,
            };
            let slot = Arc::new(Slot::default());
            self.slots.insert(id, Arc::clone(&slot));
            (frame as usize, slot)
        });
        let undone = Undone::new(slots.collect(), Arc::clone(&self.shared.passes_under_way));
        let (video, shared) = (
            self.episodes.video(pass.gop.video),
            Arc::clone(&self.shared),
        );
        self.means.threads.push(Task {
            // Consumers take turns, so their samples are wanted in the order of their numbers.
            priority: self.num_scheduled,
            file: Arc::clone(&video.path),
            read: Box::new(move |decoder| shared.read(&video, undone, decoder)),
        });
    }

    /// The pictures of the next sample, which is scheduled. Waits until their bytes are at hand.
    fn take_sample(
        &mut self,
        emission: &Emission,
        fetches: Option<&mut Fetches>,
        decoder: &mut Decoder,
    ) -> Result<SamplePictures, Error> {
        let frames = self
            .samples
            .pop_front()
            .expect("every emission in `steps` has its frames here");
        if let Some(fetches) = fetches
            && !fetches.is_whole(emission.episode_index)
        {
            let wanted = self.episodes.bytes_of(&frames, decoder);
            fetches.wait_bytes(emission, &wanted)?;
        }
        let slot_of = |frame: &Option<FrameId>| frame.and_then(|id| self.slots.get(&id).cloned());
        Ok(SamplePictures {
            fields: frames
                .iter()
                .map(|field| Pictures::new(field.iter().map(slot_of).collect()))
                .collect(),
        })
    }
}

impl Drop for Decoding {
    /// Passes that have not begun do nothing; those that have stop before their next packet.
    fn drop(&mut self) {
        self.shared.interrupted.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// A pass's first half: opens the file, where it is not open yet, and reads.
    fn read(
        self: Arc<Self>,
        video: &VideoPlace,
        undone: Undone,
        decoder: &mut Decoder,
    ) -> Option<Work> {
        // What goes wrong here is met again by the sample that wants the frames.
        let frames = undone.still_wanted();
        if frames.is_empty() || self.interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let before = decoder.stats();
        let video = self
            .cameras
            .open(video.camera(&self.cameras), decoder)
            .ok()?;
        self.count(before, decoder.stats());
        let encoded = video.read_ahead(&frames).ok()?;
        Some(Box::new(move |decoder| {
            let before = decoder.stats();
            self.gops.fetch_add(1, Ordering::Relaxed);
            let interrupted = &self.interrupted;
            // As above.
            let _ = decoder.pictures(&video, encoded, &frames, interrupted, |nth, picture| {
                undone.set(frames[nth], picture);
            });
            self.count(before, decoder.stats());
        }))
    }

    fn count(&self, before: DecodeStats, after: DecodeStats) {
        self.frames
            .fetch_add(after.frames - before.frames, Ordering::Relaxed);
        self.opens
            .fetch_add(after.opens - before.opens, Ordering::Relaxed);
    }
}
