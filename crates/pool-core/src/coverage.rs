//! The proof that an epoch emitted every selected frame, once.

use std::fmt;
use std::str::FromStr;

use crate::seed::absorb;

/// A digest of a multiset of frames: the same for any order, and combined by adding.
///
/// It is the number of frames recorded, and the sum of a 128-bit hash of each, modulo 2^128. A sum and not an exclusive or:
/// there a frame recorded twice would cancel out, and leave the same trace as none. A missing frame, one too many, or another
/// in its place changes the sum, except with odds of about 2^-128 for each comparison; this guards against mistakes, not
/// against someone who looks for two sets of frames with one digest.
///
/// Consumers record what they emit, each into its own; the sum over all of them is compared with
/// [`Selection::coverage`](crate::Selection::coverage). The text form carries a digest from one process to another.
///
/// # Examples
///
/// ```
/// use pool_core::{Coverage, CoverageReport};
///
/// let (mut selected, mut one, mut other) = (Coverage::default(), Coverage::default(), Coverage::default());
/// for frame_index in 0..3 {
///     selected.record(7, frame_index);
/// }
/// one.record(7, 2);
/// other.record(7, 0);
/// other.record(7, 1);
/// one.merge(other.to_string().parse()?);
///
/// assert_eq!(one, selected);
/// assert_eq!(CoverageReport::new(selected, one).to_string(), "3 of 3 frames, each once");
/// # Ok::<(), pool_core::ParseCoverageError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Coverage {
    num_frames: u64,
    sum: u128,
}

impl Coverage {
    /// Counts one frame in.
    pub fn record(&mut self, episode_index: usize, frame_index: usize) {
        self.merge(Self {
            num_frames: 1,
            sum: hash(episode_index as u64, frame_index as u64),
        });
    }

    /// Counts in all that another digest has recorded.
    pub fn merge(&mut self, other: Self) {
        self.num_frames = self.num_frames.wrapping_add(other.num_frames);
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The number of frames recorded, repetitions included.
    #[must_use]
    pub fn num_frames(&self) -> u64 {
        self.num_frames
    }
}

/// Two halves of 64 bits that start from different constants: the hexadecimal digits of pi after the point.
fn hash(episode_index: u64, frame_index: u64) -> u128 {
    let half = |start| absorb(absorb(start, episode_index), frame_index);
    let (high, low) = (half(0x243F_6A88_85A3_08D3), half(0x1319_8A2E_0370_7344));
    u128::from(high) << 64 | u128::from(low)
}

/// The number of frames in decimal, a hyphen, and the sum as 32 hexadecimal digits.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:032x}", self.num_frames, self.sum)
    }
}

/// Reads back what `Display` wrote.
impl FromStr for Coverage {
    type Err = ParseCoverageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (num_frames, sum) = text.split_once('-')?;
            let coverage = Self {
                num_frames: num_frames.parse().ok()?,
                sum: u128::from_str_radix(sum, 16).ok()?,
            };
            // One text for one digest: no signs, no other widths.
            (coverage.to_string() == text).then_some(coverage)
        };
        parse().ok_or_else(|| ParseCoverageError {
            text: text.to_owned(),
        })
    }
}

/// A text that is no coverage digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no coverage digest: a number of frames, a hyphen and 32 lower-case hexadecimal digits are expected"
)]
pub struct ParseCoverageError {
    /// The text.
    pub text: String,
}

/// Whether what was emitted is what was selected, each frame once; `Display` says so in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoverageReport {
    /// The number of frames selected.
    pub selected: u64,
    /// The number of frames emitted.
    pub emitted: u64,
    /// Whether the emitted frames are the selected ones, each once.
    pub exactly_once: bool,
}

impl CoverageReport {
    /// Compares what was emitted, over all consumers, with what was selected.
    #[must_use]
    pub fn new(selected: Coverage, emitted: Coverage) -> Self {
        Self {
            selected: selected.num_frames,
            emitted: emitted.num_frames,
            exactly_once: selected == emitted,
        }
    }
}

impl fmt::Display for CoverageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (selected, emitted) = (Thousands(self.selected), Thousands(self.emitted));
        write!(f, "{emitted} of {selected} frames, ")?;
        if self.exactly_once {
            return f.write_str("each once");
        }
        let difference = Thousands(self.selected.abs_diff(self.emitted));
        match self.emitted.cmp(&self.selected) {
            std::cmp::Ordering::Less => write!(f, "{difference} fewer than selected"),
            std::cmp::Ordering::Greater => write!(f, "{difference} more than selected"),
            std::cmp::Ordering::Equal => f.write_str(
                "but not the selected ones, each once: some are missing, and others came twice or were not selected",
            ),
        }
    }
}

/// A number with a comma between thousands.
struct Thousands(u64);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (999_999, "999,999"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        for (number, text) in cases {
            assert_eq!(Thousands(number).to_string(), text);
        }
    }
}
