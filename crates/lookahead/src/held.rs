//! The frames that are decoded, or will be by a pass that is scheduled.

use std::collections::{BTreeSet, HashMap};

use crate::scheduler::{FrameId, Wanted};

/// The frames held, and the memory that they take.
#[derive(Debug, Default)]
pub(crate) struct Held {
    frames: HashMap<FrameId, Frame>,
    /// (the sample that wants it next, frame) for every frame that no scheduled sample wants: what can be dropped.
    unpinned: BTreeSet<(u64, FrameId)>,
    bytes: u64,
    pinned_bytes: u64,
}

#[derive(Debug)]
struct Frame {
    bytes: u32,
    /// The scheduled samples that want it and have not been released.
    pins: u32,
    /// The sample that wants it next, of those not yet scheduled.
    next: Option<u64>,
}

impl Held {
    /// The memory of all frames.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory of the frames that scheduled samples want.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes
    }

    /// The memory that would be pinned besides, once a sample's distinct frames are.
    pub(crate) fn bytes_to_pin(&self, sample: &[Wanted]) -> u64 {
        let is_pinned = |frame| self.frames.get(frame).is_some_and(|held| held.pins > 0);
        sample
            .iter()
            .filter(|wanted| !is_pinned(&wanted.frame))
            .map(|wanted| u64::from(wanted.bytes))
            .sum()
    }

    pub(crate) fn contains(&self, frame: FrameId) -> bool {
        self.frames.contains_key(&frame)
    }

    /// Holds a frame for a sample that is being scheduled; `next` is the sample that wants it after this one.
    pub(crate) fn pin(&mut self, frame: FrameId, bytes: u32, next: Option<u64>) {
        let held = self.frames.entry(frame).or_insert_with(|| {
            self.bytes += u64::from(bytes);
            Frame {
                bytes,
                pins: 0,
                next: None,
            }
        });
        if held.pins == 0 {
            self.pinned_bytes += u64::from(held.bytes);
            if let Some(sample) = held.next {
                self.unpinned.remove(&(sample, frame));
            }
        }
        held.pins += 1;
        held.next = next;
    }

    /// Ends one sample's hold on a frame; true when nobody wants the frame any more, which is then gone.
    pub(crate) fn unpin(&mut self, frame: FrameId) -> bool {
        let held = self
            .frames
            .get_mut(&frame)
            .expect("a scheduled sample's frames are held");
        held.pins -= 1;
        if held.pins > 0 {
            return false;
        }
        self.pinned_bytes -= u64::from(held.bytes);
        if let Some(sample) = held.next {
            self.unpinned.insert((sample, frame));
            return false;
        }
        self.bytes -= u64::from(held.bytes);
        self.frames.remove(&frame);
        true
    }

    /// Holds a frame for a sample that is not scheduled yet.
    pub(crate) fn keep(&mut self, frame: FrameId, bytes: u32, next: u64) {
        self.bytes += u64::from(bytes);
        self.unpinned.insert((next, frame));
        let held = Frame {
            bytes,
            pins: 0,
            next: Some(next),
        };
        self.frames.insert(frame, held);
    }

    /// Lets go of the frame that is wanted last, if it is wanted after `sample`.
    pub(crate) fn drop_last_after(&mut self, sample: Option<u64>) -> Option<FrameId> {
        let &(next, frame) = self.unpinned.last()?;
        if sample.is_some_and(|sample| next <= sample) {
            return None;
        }
        self.unpinned.pop_last();
        let held = self.frames.remove(&frame)?;
        self.bytes -= u64::from(held.bytes);
        Some(frame)
    }
}
