//! Draws: ChaCha8 words, and an unbiased choice among n.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The stream of a consumer's key that orders its admissions, when the epoch was taken up anew so many times.
///
/// There are fewer than 2^32 chapters, so no two uses share a stream.
pub(crate) fn admissions_stream(generation: u32) -> u64 {
    u64::from(generation) << 33
}

/// The stream of a consumer's key that chooses the frames of a chapter.
pub(crate) fn frames_stream(generation: u32, chapter: u32) -> u64 {
    // 2^31 generations do not come about: each is a line in a run's saved state.
    u64::from(generation) << 33 | u64::from(chapter) << 1 | 1
}

/// A stream of choices that a key and a stream number fix for ever.
///
/// The words are those of the ChaCha8 key stream, block counter from 0, little-endian. What is made of them is written
/// here and not taken from a library, so that no dependency's update can reorder a user's run.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    words: ChaCha8Rng,
}

impl Draws {
    pub(crate) fn new(key: [u8; 32], stream: u64) -> Self {
        let mut words = ChaCha8Rng::from_seed(key);
        words.set_stream(stream);
        Self { words }
    }

    /// A number below `n`, each as likely as any other. `n` is at least 1.
    #[inline]
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        choose(n, || self.words.next_u32())
    }

    /// Puts a list into a random order, each as likely as any other: Fisher and Yates, from the end.
    ///
    /// The list has at most `u32::MAX` items.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        let length = u32::try_from(list.len())
            .expect("the number of episodes is checked when they are selected");
        for last in (1..length).rev() {
            let chosen = self.below(last + 1);
            list.swap(last as usize, chosen as usize);
        }
    }
}

/// Maps uniform 32-bit words to a uniform number below `n`, by multiplication (Lemire, "Fast random integer generation
/// in an interval", ACM TOMACS 2019).
///
/// `word * n / 2^32` is a number below `n`. The 2^32 words fall on the `n` results almost evenly; they do exactly once
/// the `2^32 mod n` words whose product has the lowest fractions are turned away, and another word is taken instead.
#[inline]
fn choose(n: u32, mut word: impl FnMut() -> u32) -> u32 {
    debug_assert!(n > 0, "nothing to choose from");
    loop {
        let product = u64::from(word()) * u64::from(n);
        let fraction = product as u32;
        // `2^32 mod n` is below n, so the costly remainder is rarely needed.
        if fraction >= n || fraction >= n.wrapping_neg() % n {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::order_key;

    const ADMISSIONS: u64 = 0;
    const FRAMES: u64 = 1;

    #[test]
    fn an_epochs_first_streams_are_0_and_1() {
        assert_eq!(
            (admissions_stream(0), frames_stream(0, 0)),
            (ADMISSIONS, FRAMES)
        );
        assert_eq!(frames_stream(0, 3), 7);
        assert_eq!(
            (admissions_stream(2), frames_stream(2, 3)),
            (2 << 33, (2 << 33) + 7)
        );
    }

    /// The first block of ChaCha8 for a zero key and nonce, as published in draft-strombergson-chacha-test-vectors-01
    /// (test case 1, 256-bit key).
    const PUBLISHED: &str = "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e\
                             984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42";

    #[test]
    fn words_are_those_of_chacha8() {
        let mut draws = Draws::new([0; 32], 0);
        let mut block = String::new();
        for _ in 0..16 {
            for byte in draws.words.next_u32().to_le_bytes() {
                block += &format!("{byte:02x}");
            }
        }
        assert_eq!(block, PUBLISHED);
    }

    #[test]
    fn words_of_a_consumer_never_change() {
        // These and the next test's numbers were computed by another implementation too, in another language.
        let pinned = [
            (
                ADMISSIONS,
                [
                    164_770_237,
                    1_584_318_572,
                    2_950_028_289,
                    2_266_410_184,
                    3_222_195_515,
                    2_860_163_336,
                ],
            ),
            (
                FRAMES,
                [
                    3_527_385_068,
                    2_917_751_416,
                    4_037_336_546,
                    3_011_579_496,
                    748_861_687,
                    3_241_557_477,
                ],
            ),
        ];
        for (stream, expected) in pinned {
            let mut draws = Draws::new(order_key(42, 1, 2, 3), stream);
            assert_eq!([(); 6].map(|()| draws.words.next_u32()), expected);
        }
    }

    #[test]
    fn choices_never_change() {
        let mut draws = Draws::new(order_key(42, 1, 2, 3), FRAMES);
        let choices = [1, 2, 3, 10, 1000, 19_200, 1 << 31, u32::MAX].map(|n| draws.below(n));
        assert_eq!(
            choices,
            [0, 1, 2, 7, 174, 14_490, 1_721_119_090, 1_533_819_902]
        );
        let mut list = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        draws.shuffle(&mut list);
        assert_eq!(list, [0, 4, 8, 5, 6, 2, 7, 1, 3, 9]);
    }

    #[test]
    fn the_words_that_would_bias_a_choice_are_turned_away() {
        // 2^32 = 3 * 1431655765 + 1: one word is too many, the one whose product has fraction 0.
        let mut words = [0, u32::MAX].into_iter();
        assert_eq!(choose(3, || words.next().unwrap()), 2);
        assert_eq!(words.next(), None);
        // The next word up is taken.
        assert_eq!(choose(3, || 1), 0);
        // 2^32 mod 2^31 = 0: no word is turned away.
        assert_eq!(choose(1 << 31, || 0), 0);
        // 2^32 mod (2^32 - 1) = 1: again the word 0.
        let mut words = [0, 1].into_iter();
        assert_eq!(choose(u32::MAX, || words.next().unwrap()), 0);
        assert_eq!(words.next(), None);
    }

    #[test]
    fn every_result_takes_equally_many_words() {
        // The same arithmetic with 8-bit words can be counted to the end: this is the proof that `choose` rests on.
        for n in 1..=255_u8 {
            let mut counts = [0; 255];
            for word in 0..=255_u8 {
                let product = u16::from(word) * u16::from(n);
                if product as u8 >= n.wrapping_neg() % n {
                    counts[usize::from(product >> 8)] += 1;
                }
            }
            let expected = 256 / u32::from(n);
            assert!(
                counts[..usize::from(n)]
                    .iter()
                    .all(|&count| count == expected),
                "below {n}"
            );
        }
    }

    #[test]
    fn choices_are_uniform() {
        // Chi-square with n - 1 degrees of freedom; each bound is exceeded with odds below 2e-6.
        for (n, bound) in [(2_u32, 24.0), (7, 40.0), (64, 130.0), (1000, 1267.0)] {
            let mut draws = Draws::new(order_key(1, 0, 0, 0), FRAMES);
            let mut counts = vec![0_u32; n as usize];
            const DRAWS: u32 = 100_000;
            for _ in 0..DRAWS {
                counts[draws.below(n) as usize] += 1;
            }
            let expected = f64::from(DRAWS) / f64::from(n);
            let chi_square: f64 = counts
                .iter()
                .map(|&count| (f64::from(count) - expected).powi(2) / expected)
                .sum();
            assert!(chi_square < bound, "below {n}: {chi_square}");
        }
    }

    #[test]
    fn shuffles_reach_every_order_alike() {
        // 24 orders of 4, 24,000 shuffles: chi-square with 23 degrees of freedom is over 70 with odds of 1.3e-6.
        let mut draws = Draws::new(order_key(2, 0, 0, 0), ADMISSIONS);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            let mut list = [0, 1, 2, 3];
            draws.shuffle(&mut list);
            *counts.entry(list).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi_square: f64 = counts
            .values()
            .map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi_square < 70.0, "{chi_square}");
    }
}
