//! Where an order is divided, so that a skip can start there.

/// Runs of an order of episodes, each of which is drawn on its own.
///
/// An order of `T` frames has at most `n = ceil(T / chapter_frames)` chapters: the `k`-th ends with the first episode that
/// reaches frame `k * T / n` of the order. Where a long episode reaches several such places at once, chapters fall together.
///
/// Invariant: the last one ends with the order, and none is empty; an empty order has none.
#[derive(Debug, Clone)]
pub(crate) struct Chapters {
    chapters: Box<[Chapter]>,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chapter {
    /// Its number, from 0.
    pub(crate) number: u32,
    /// The first episode, by its place in the order, and one past the last.
    pub(crate) first: usize,
    pub(crate) end: usize,
    /// The frames before it.
    pub(crate) start_frame: u64,
}

impl Chapters {
    /// `lengths` are the episodes' frames, in order, `num_frames` in all.
    pub(crate) fn new(
        lengths: impl Iterator<Item = u64>,
        num_frames: u64,
        chapter_frames: u64,
    ) -> Self {
        let num_chapters = num_frames.div_ceil(chapter_frames.max(1));
        let mut chapters = Vec::new();
        let (mut first, mut start_frame, mut frame) = (0, 0, 0);
        for (place, length) in lengths.enumerate() {
            frame += length;
            // Compared as `frame / num_frames` with the ideal `k / num_chapters`, in exact numbers.
            let reached = u128::from(frame) * u128::from(num_chapters) / u128::from(num_frames);
            let before =
                u128::from(frame - length) * u128::from(num_chapters) / u128::from(num_frames);
            if reached > before {
                chapters.push(Chapter {
                    // Each holds an episode, and there are fewer than 2^32 of these.
                    number: chapters.len() as u32,
                    first,
                    end: place + 1,
                    start_frame,
                });
                (first, start_frame) = (place + 1, frame);
            }
        }
        Self {
            chapters: chapters.into(),
        }
    }

    /// The chapter that holds a frame of the order; the last one for a frame beyond.
    ///
    /// # Panics
    ///
    /// If there are no chapters.
    pub(crate) fn at(&self, frame: u64) -> Chapter {
        let after = self
            .chapters
            .partition_point(|chapter| chapter.start_frame <= frame);
        self.chapters[after - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(lengths: &[u64], chapter_frames: u64) -> Vec<(usize, u64)> {
        let num_frames = lengths.iter().sum();
        let chapters = Chapters::new(lengths.iter().copied(), num_frames, chapter_frames);
        let chapters = chapters.chapters.iter();
        chapters
            .map(|chapter| (chapter.end, chapter.start_frame))
            .collect()
    }

    #[test]
    fn short_orders_are_one_chapter() {
        assert_eq!(ends(&[4, 3, 8], 15), [(3, 0)]);
        assert_eq!(ends(&[4, 3, 8], u64::MAX), [(3, 0)]);
        assert_eq!(ends(&[], 15), []);
    }

    #[test]
    fn chapters_end_with_the_episode_that_reaches_their_part() {
        // 15 frames in two parts: the first is full at frame 7.5.
        assert_eq!(ends(&[4, 3, 8], 14), [(3, 0)]);
        assert_eq!(ends(&[4, 4, 7], 14), [(2, 0), (3, 8)]);
        assert_eq!(ends(&[5, 5, 5], 5), [(1, 0), (2, 5), (3, 10)]);
        // A long episode ends two of them at once.
        assert_eq!(ends(&[1, 9, 2], 4), [(2, 0), (3, 10)]);
    }

    #[test]
    fn every_frame_is_in_a_chapter() {
        let chapters = Chapters::new([5, 5, 5].into_iter(), 15, 5);
        let numbers: Vec<u32> = [0, 4, 5, 14, 99]
            .map(|frame| chapters.at(frame).number)
            .into();
        assert_eq!(numbers, [0, 0, 1, 2, 2]);
    }
}
