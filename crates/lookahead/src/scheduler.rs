//! From what will be wanted to what is decoded when.

use std::collections::{BTreeSet, VecDeque};

use crate::future::Future;
use crate::held::Held;

/// Frames of a video that are decoded one from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gop {
    /// The caller's number for the video.
    pub video: u32,
    /// The caller's number for the GOP in it, such as that of the packet where its decoding starts.
    pub start: u32,
}

/// A frame of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId {
    /// The GOP that it is decoded in.
    pub gop: Gop,
    /// Its number in the video.
    pub frame: u32,
}

/// A frame that a sample wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Which one.
    pub frame: FrameId,
    /// The memory that it takes once decoded, in bytes.
    pub bytes: u32,
}

/// Frames of one GOP to decode together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The GOP.
    pub gop: Gop,
    /// The frames' numbers, ascending.
    pub frames: Vec<u32>,
}

/// A sample that was scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scheduled {
    /// What must be decoded for it and is not held yet, with what is decoded along.
    pub passes: Vec<Pass>,
    /// Frames that are held no longer, to make room; ascending. None of them is one of a scheduled sample's, or in one of the passes.
    pub dropped: Vec<FrameId>,
}

/// Decides which frames are decoded when, and how long they are held.
///
/// Samples are numbered by their pushes; they are scheduled, and later released, in this order.
#[derive(Debug)]
pub struct Scheduler {
    budget_bytes: u64,
    future: Future,
    held: Held,
    /// What each sample wants that is not scheduled yet: distinct frames, by number.
    waiting: VecDeque<Box<[Wanted]>>,
    /// The frames of every sample that is scheduled and not released.
    scheduled: VecDeque<Box<[Wanted]>>,
    /// The number of the first waiting sample.
    next: u64,
    num_waiting_uses: usize,
}

impl Scheduler {
    /// A scheduler that holds at most `budget_bytes` of decoded frames, or those of one sample if they are more.
    #[must_use]
    pub fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            future: Future::default(),
            held: Held::default(),
            waiting: VecDeque::new(),
            scheduled: VecDeque::new(),
            next: 0,
            num_waiting_uses: 0,
        }
    }

    /// Adds the sample that comes after all others. A frame that it wants more than once counts once.
    pub fn push(&mut self, sample: &[Wanted]) {
        let mut wanted = sample.to_vec();
        wanted.sort_unstable_by_key(|wanted| wanted.frame);
        wanted.dedup_by_key(|wanted| wanted.frame);
        let number = self.next + self.waiting.len() as u64;
        for wanted in &wanted {
            self.future.push(wanted.frame, number);
        }
        self.num_waiting_uses += wanted.len();
        self.waiting.push_back(wanted.into());
    }

    /// How many frames the samples want that wait to be scheduled: a measure of the memory that looking ahead takes, about 50 bytes each.
    #[must_use]
    pub fn num_waiting_uses(&self) -> usize {
        self.num_waiting_uses
    }

    /// The number of samples that are scheduled and not released.
    #[must_use]
    pub fn num_scheduled(&self) -> usize {
        self.scheduled.len()
    }

    /// The memory that the held frames take, in bytes, those included that scheduled passes are still to decode.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Schedules the next sample. None when there is none, and when the samples scheduled before want half the budget as it is: one of
    /// them must be released first.
    pub fn schedule(&mut self) -> Option<Scheduled> {
        let sample = self.waiting.front()?;
        let in_flight = self.held.pinned_bytes() + self.held.bytes_to_pin(sample);
        if !self.scheduled.is_empty() && in_flight > self.budget_bytes / 2 {
            return None;
        }
        let sample = self.waiting.pop_front()?;
        self.next += 1;
        self.num_waiting_uses -= sample.len();

        let mut passes: Vec<Pass> = Vec::new();
        for wanted in &sample {
            let FrameId { gop, frame } = wanted.frame;
            if !self.held.contains(wanted.frame) {
                match passes.last_mut() {
                    Some(pass) if pass.gop == gop => pass.frames.push(frame),
                    _ => passes.push(Pass {
                        gop,
                        frames: vec![frame],
                    }),
                }
            }
            let next = self.future.take(wanted.frame);
            self.held.pin(wanted.frame, wanted.bytes, next);
        }
        let mut dropped = BTreeSet::new();
        while self.held.bytes() > self.budget_bytes {
            match self.held.drop_last_after(None) {
                Some(frame) => dropped.insert(frame),
                None => break,
            };
        }
        let mut taken = BTreeSet::new();
        for pass in &mut passes {
            self.take_along(pass, &sample, &mut taken, &mut dropped);
        }
        // What one pass took along may have had to make room for what another did.
        for pass in &mut passes {
            let gop = pass.gop;
            pass.frames
                .retain(|&frame| !dropped.contains(&FrameId { gop, frame }));
        }
        self.scheduled.push_back(sample);
        let dropped = dropped.difference(&taken).copied().collect();
        Some(Scheduled { passes, dropped })
    }

    /// Adds to a pass whatever else of its GOP will be wanted, as far as there is room.
    fn take_along(
        &mut self,
        pass: &mut Pass,
        sample: &[Wanted],
        taken: &mut BTreeSet<FrameId>,
        dropped: &mut BTreeSet<FrameId>,
    ) {
        let gop = pass.gop;
        // Pictures of one video are of one size.
        let bytes = sample
            .iter()
            .find(|wanted| wanted.frame.gop == gop)
            .map_or(0, |wanted| wanted.bytes);
        for (next, number) in self.future.soonest(gop) {
            let frame = FrameId { gop, frame: number };
            if self.held.contains(frame) || dropped.contains(&frame) {
                continue;
            }
            while self.held.bytes() + u64::from(bytes) > self.budget_bytes {
                match self.held.drop_last_after(Some(next)) {
                    Some(frame) => dropped.insert(frame),
                    // The others of this GOP are wanted later still.
                    None => return,
                };
            }
            self.held.keep(frame, bytes, next);
            taken.insert(frame);
            let place = pass.frames.partition_point(|&other| other < number);
            pass.frames.insert(place, number);
        }
    }

    /// Releases the sample that was scheduled first, and tells which frames are held no longer.
    ///
    /// # Panics
    ///
    /// When no sample is scheduled.
    pub fn release(&mut self) -> Vec<FrameId> {
        let sample = self
            .scheduled
            .pop_front()
            .expect("a sample that is released was scheduled");
        let mut dropped: Vec<FrameId> = sample
            .iter()
            .map(|wanted| wanted.frame)
            .filter(|&frame| self.held.unpin(frame))
            .collect();
        // A sample that is larger than the budget leaves no more than the budget behind.
        while self.held.bytes() > self.budget_bytes {
            match self.held.drop_last_after(None) {
                Some(frame) => dropped.push(frame),
                None => break,
            }
        }
        dropped
    }
}
