//! The pool: the frames that are left of the resident episodes, in one flat array.

use crate::draw::Draws;

/// Up to a fixed number of episodes, and a way to take frames out of them one by one.
///
/// Invariants:
///
/// - `frames` holds each frame left once, and `slots[entry.slot].left` counts those of one slot;
/// - `vacant` holds the slots without an episode.
///
/// Nothing is allocated after construction.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    frames: Vec<Entry>,
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    /// What chooses the next frame; `None` takes them in the order of their admission. The array then holds them last to
    /// first, so that this is a pop.
    draws: Option<Draws>,
}

/// A frame that is left.
#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: u32,
    frame: u32,
}

/// A resident episode.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    /// The number of admissions before it.
    pub(crate) ordinal: u64,
    /// The number of frames left.
    left: u32,
    /// The dataset's number of the episode.
    pub(crate) episode_index: usize,
    /// See [`episode_seed`](crate::seed::episode_seed).
    pub(crate) seed: u64,
}

/// A frame taken out of the pool.
pub(crate) struct Taken {
    pub(crate) slot: Slot,
    pub(crate) frame: u32,
    /// Whether it was the last of its episode, which then is no longer resident.
    pub(crate) is_last: bool,
}

impl Pool {
    /// A pool that never holds more than `num_episodes` at once, nor `num_frames`.
    pub(crate) fn new(num_episodes: u32, num_frames: usize, draws: Option<Draws>) -> Self {
        Self {
            frames: Vec::with_capacity(num_frames),
            slots: vec![Slot::default(); num_episodes as usize],
            // The lowest slot is taken first.
            vacant: (0..num_episodes).rev().collect(),
            draws,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.vacant.is_empty()
    }

    /// Adds an episode's frames, given first to last, at the end of the array.
    ///
    /// # Panics
    ///
    /// If there is no room.
    pub(crate) fn admit(
        &mut self,
        ordinal: u64,
        episode_index: usize,
        seed: u64,
        frames: impl DoubleEndedIterator<Item = u32>,
    ) {
        let slot = self
            .vacant
            .pop()
            .expect("an episode is admitted only when there is room");
        let before = self.frames.len();
        let entry = |frame| Entry { slot, frame };
        if self.draws.is_some() {
            self.frames.extend(frames.map(entry));
        } else {
            self.frames.extend(frames.rev().map(entry));
        }
        self.slots[slot as usize] = Slot {
            ordinal,
            left: (self.frames.len() - before) as u32,
            episode_index,
            seed,
        };
    }

    /// Takes the next frame out, in constant time; `None` if there is none.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Taken> {
        let num_frames = self.frames.len();
        if num_frames == 0 {
            return None;
        }
        let chosen = match &mut self.draws {
            // The number of resident frames is at most MAX_POOL_FRAMES.
            Some(draws) => draws.below(num_frames as u32) as usize,
            None => num_frames - 1,
        };
        let Entry {
            slot: number,
            frame,
        } = self.frames.swap_remove(chosen);
        let slot = &mut self.slots[number as usize];
        slot.left -= 1;
        let is_last = slot.left == 0;
        if is_last {
            self.vacant.push(number);
        }
        Some(Taken {
            slot: *slot,
            frame,
            is_last,
        })
    }

    /// Whether no frame is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Lets go of all frames, and chooses by other draws from now on.
    pub(crate) fn restart(&mut self, draws: Option<Draws>) {
        self.frames.clear();
        for (number, slot) in (0..).zip(&mut self.slots) {
            if slot.left > 0 {
                slot.left = 0;
                self.vacant.push(number);
            }
        }
        self.draws = draws;
    }

    /// The frames left, by the ordinal of their episode, in no particular order.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let entry = |entry: &Entry| (self.slots[entry.slot as usize].ordinal, entry.frame);
        self.frames.iter().map(entry)
    }

    /// The resident episodes, in no particular order.
    pub(crate) fn residents(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.left > 0)
    }
}
