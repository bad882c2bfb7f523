//! Places for pictures that are being decoded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use decode::Picture;

/// A place for a picture: empty until it is decoded, or until it is known that it will not be.
#[derive(Debug, Default)]
pub(super) struct Slot {
    picture: OnceLock<Option<Picture>>,
}

/// The pictures of one field of a sample, in the order of its window.
#[derive(Debug)]
pub(crate) struct Pictures {
    slots: Vec<Option<Arc<Slot>>>,
}

impl Pictures {
    pub(super) fn new(slots: Vec<Option<Arc<Slot>>>) -> Self {
        Self { slots }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of the first row that holds the same picture as this one.
    pub(crate) fn first_like(&self, row: usize) -> usize {
        let is_same = |slot: &Option<Arc<Slot>>| match (slot, &self.slots[row]) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        self.slots[..row].iter().position(is_same).unwrap_or(row)
    }

    /// The picture of a row, once it is decoded; `None` if it is not going to be.
    pub(crate) fn wait(&self, row: usize) -> Option<&Picture> {
        self.slots[row].as_ref()?.picture.wait().as_ref()
    }
}

/// The frames of a pass that is under way. When this goes, for whatever reason, those that are still not decoded will never be.
pub(super) struct Undone {
    /// By the frames' numbers, ascending.
    slots: Vec<(usize, Arc<Slot>)>,
    under_way: Arc<AtomicUsize>,
}

impl Undone {
    /// Counts a pass as under way until it goes.
    pub(super) fn new(slots: Vec<(usize, Arc<Slot>)>, under_way: Arc<AtomicUsize>) -> Self {
        under_way.fetch_add(1, Ordering::Relaxed);
        Self { slots, under_way }
    }

    /// The frames that somebody else has a hold on.
    pub(super) fn still_wanted(&self) -> Vec<usize> {
        let wanted = self
            .slots
            .iter()
            .filter(|(_, slot)| Arc::strong_count(slot) > 1);
        wanted.map(|&(frame, _)| frame).collect()
    }

    pub(super) fn set(&self, frame: usize, picture: Picture) {
        if let Ok(place) = self.slots.binary_search_by_key(&frame, |&(frame, _)| frame) {
            // A slot is filled once.
            let _ = self.slots[place].1.picture.set(Some(picture));
        }
    }
}

impl Drop for Undone {
    fn drop(&mut self) {
        for (_, slot) in &self.slots {
            let _ = slot.picture.set(None);
        }
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_goes_leaves_nobody_waiting() {
        let under_way = Arc::<AtomicUsize>::default();
        let slot = Arc::<Slot>::default();
        let undone = Undone::new(
            vec![(3, Arc::clone(&slot)), (5, Arc::default())],
            Arc::clone(&under_way),
        );
        assert_eq!(undone.still_wanted(), [3]);
        assert_eq!(under_way.load(Ordering::Relaxed), 1);

        let pictures = Pictures::new(vec![Some(Arc::clone(&slot)), None, Some(slot)]);
        let waiting = std::thread::spawn(move || {
            assert!(pictures.wait(0).is_none() && pictures.wait(1).is_none());
            [0, 1, 2].map(|row| pictures.first_like(row))
        });
        drop(undone);
        assert_eq!(waiting.join().unwrap(), [0, 1, 0]);
        assert_eq!(under_way.load(Ordering::Relaxed), 0);
    }
}
