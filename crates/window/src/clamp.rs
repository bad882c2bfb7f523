//! A frame's window: clamped row indices, the padding mask, and runs to copy.

use crate::offsets::Offsets;

/// A stretch of consecutive window steps that is copied at once.
///
/// Rows are numbered within the episode. Without `repeat` the steps are the rows `first .. first + len`; with it they are
/// the one row `first`, `len` times. A run never reaches outside the episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first row, counted from the episode's start.
    pub first: usize,
    /// The number of window steps, at least 1.
    pub len: usize,
    /// Whether every step is the row `first`.
    pub repeat: bool,
}

impl Offsets {
    /// The row of every step of the window at `frame` in an episode of `length` frames: `[T]`, each below `length`.
    ///
    /// A step outside the episode is its first or last row; [`is_pad`](Self::is_pad) tells which steps those are.
    ///
    /// # Panics
    ///
    /// If `frame` is not below `length`.
    pub fn indices(&self, frame: usize, length: usize) -> impl ExactSizeIterator<Item = usize> {
        assert_inside(frame, length);
        self.as_slice()
            .iter()
            .map(move |&offset| clamped(offset, frame, length))
    }

    /// Whether each step of the window at `frame` lies outside an episode of `length` frames: `[T]`.
    ///
    /// # Panics
    ///
    /// If `frame` is not below `length`.
    pub fn is_pad(&self, frame: usize, length: usize) -> impl ExactSizeIterator<Item = bool> {
        assert_inside(frame, length);
        self.as_slice()
            .iter()
            .map(move |&offset| is_outside(offset, frame, length))
    }

    /// The same rows as [`indices`](Self::indices), as few stretches that are each copied at once.
    ///
    /// # Panics
    ///
    /// If `frame` is not below `length`.
    ///
    /// # Examples
    ///
    /// ```
    /// use window::{DEFAULT_TOLERANCE_S, Offsets, Run};
    ///
    /// let deltas_s = [-0.2, -0.1, 0.0, 0.1, 0.2];
    /// let offsets = Offsets::from_seconds("action", &deltas_s, 10.0, DEFAULT_TOLERANCE_S)?;
    /// // At frame 1 of 10: the rows 0, 0, 1, 2, 3.
    /// let runs: Vec<Run> = offsets.runs(1, 10).collect();
    /// assert_eq!(runs, [Run { first: 0, len: 2, repeat: true }, Run { first: 1, len: 3, repeat: false }]);
    /// # Ok::<(), window::Error>(())
    /// ```
    pub fn runs(&self, frame: usize, length: usize) -> impl Iterator<Item = Run> {
        let mut indices = self.indices(frame, length).peekable();
        std::iter::from_fn(move || {
            let first = indices.next()?;
            let repeat = indices.peek() == Some(&first);
            let mut len = 1;
            while indices
                .next_if(|&next| next == if repeat { first } else { first + len })
                .is_some()
            {
                len += 1;
            }
            Some(Run { first, len, repeat })
        })
    }
}

#[track_caller]
fn assert_inside(frame: usize, length: usize) {
    assert!(
        frame < length,
        "frame {frame} is outside an episode of {length} frames"
    );
}

/// The row `offset` steps from `frame`, moved to the nearest one of the episode.
fn clamped(offset: i64, frame: usize, length: usize) -> usize {
    let distance = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let last = length - 1;
    if offset < 0 {
        frame.saturating_sub(distance)
    } else {
        frame.saturating_add(distance).min(last)
    }
}

fn is_outside(offset: i64, frame: usize, length: usize) -> bool {
    let room = if offset < 0 {
        frame
    } else {
        length - 1 - frame
    };
    offset.unsigned_abs() > room as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_frames_themselves_are_not_padding() {
        assert!(!is_outside(-3, 3, 10));
        assert!(!is_outside(6, 3, 10));
    }

    #[test]
    fn the_first_step_out_of_the_episode_is_padding() {
        assert!(is_outside(-4, 3, 10));
        assert!(is_outside(7, 3, 10));
    }

    #[test]
    fn extreme_numbers_do_not_overflow() {
        let frame = usize::MAX - 1;
        for (offset, row) in [
            (i64::MIN, frame - (1 << 63)),
            (i64::MAX, frame),
            (1, frame),
            (-1, frame - 1),
        ] {
            assert_eq!(clamped(offset, frame, usize::MAX), row, "offset {offset}");
        }
        assert_eq!(clamped(i64::MIN, 5, 10), 0);
        assert_eq!(clamped(i64::MAX, 5, 10), 9);
        assert!(is_outside(i64::MIN, 5, 10) && is_outside(i64::MAX, 5, 10));
    }
}
