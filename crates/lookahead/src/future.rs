//! What will be wanted, by GOP.

use std::collections::HashMap;

use crate::scheduler::{FrameId, Gop};

/// The uses to come of every frame, up to the horizon.
#[derive(Debug, Default)]
pub(crate) struct Future {
    /// (frame, sample), ascending.
    uses: HashMap<Gop, Vec<(u32, u64)>>,
}

impl Future {
    /// Adds a use by a sample after all others.
    pub(crate) fn push(&mut self, frame: FrameId, sample: u64) {
        let uses = self.uses.entry(frame.gop).or_default();
        let end = uses.partition_point(|&(other, _)| other <= frame.frame);
        uses.insert(end, (frame.frame, sample));
    }

    /// Takes the first use of a frame away, and tells the next.
    pub(crate) fn take(&mut self, frame: FrameId) -> Option<u64> {
        let uses = self.uses.get_mut(&frame.gop)?;
        let first = uses.partition_point(|&(other, _)| other < frame.frame);
        uses.remove(first);
        let next = uses
            .get(first)
            .filter(|(other, _)| *other == frame.frame)
            .map(|&(_, sample)| sample);
        if uses.is_empty() {
            self.uses.remove(&frame.gop);
        }
        next
    }

    /// The frames of a GOP that will be wanted, each with the sample that is the first to want it; soonest first.
    pub(crate) fn soonest(&self, gop: Gop) -> Vec<(u64, u32)> {
        let Some(uses) = self.uses.get(&gop) else {
            return Vec::new();
        };
        let mut soonest: Vec<(u64, u32)> = uses
            .chunk_by(|(a, _), (b, _)| a == b)
            .map(|same| (same[0].1, same[0].0))
            .collect();
        soonest.sort_unstable();
        soonest
    }
}
