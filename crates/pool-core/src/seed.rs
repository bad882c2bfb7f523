//! Seeds: the key that a consumer's order is drawn from, and the seed that every emission carries.

/// The golden ratio as a 64-bit fraction, made odd: steps of this size spread over all 64 bits.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Folds one more word into a hash.
///
/// For a given `state`, different words give different results, since each operation can be undone: the step is odd, and
/// [`mix`] is a permutation.
pub(crate) fn absorb(state: u64, word: u64) -> u64 {
    mix(state.wrapping_add(word.wrapping_add(1).wrapping_mul(STEP)))
}

/// Spreads every bit of a word over all 64: the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014; the constants are Stafford's variant 13).
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The part of [`emission_seed`] that all frames of an episode have in common in one epoch.
pub(crate) fn episode_seed(seed: u64, epoch: u64, episode_index: usize) -> u64 {
    [seed, epoch, episode_index as u64]
        .into_iter()
        .fold(0, absorb)
}

/// The seed that the emission of one frame carries, from `(seed, epoch, episode_index, frame_index)` alone.
///
/// An augmentation that draws from it repeats on any number of machines, whatever the order of emission. It starts at 0 and
/// absorbs the four numbers one after the other, each by
/// `state = mix(state + (number + 1) * 0x9E3779B97F4A7C15)` modulo 2^64, where `mix` is SplitMix64's finaliser.
///
/// Within one episode and epoch all seeds differ. Otherwise two seeds agree as seldom as two random numbers do.
/// It is well spread but no secret: whoever knows a few seeds can find the others.
///
/// # Examples
///
/// ```
/// use pool_core::emission_seed;
///
/// let seed = emission_seed(7, 0, 12, 30);
/// assert_eq!(seed, emission_seed(7, 0, 12, 30));
/// assert_ne!(seed, emission_seed(7, 1, 12, 30));
/// ```
#[must_use]
pub fn emission_seed(seed: u64, epoch: u64, episode_index: usize, frame_index: usize) -> u64 {
    absorb(episode_seed(seed, epoch, episode_index), frame_index as u64)
}

/// The key of one consumer's order in one epoch: `seed ‖ epoch ‖ rank ‖ worker`, each little-endian.
pub(crate) fn order_key(seed: u64, epoch: u64, rank: usize, worker: usize) -> [u8; 32] {
    let mut key = [0; 32];
    for (bytes, number) in key
        .chunks_exact_mut(8)
        .zip([seed, epoch, rank as u64, worker as u64])
    {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    key
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn absorbing_zero_is_the_first_output_of_splitmix64() {
        // Published outputs of SplitMix64 seeded with 0: absorbing word k gives output k.
        let outputs = [
            0xE220_A839_7B1D_CDAF,
            0x6E78_9E6A_A1B9_65F4,
            0x06C4_5D18_8009_454F,
        ];
        for (word, output) in outputs.into_iter().enumerate() {
            assert_eq!(absorb(0, word as u64), output);
        }
    }

    #[test]
    fn emission_seeds_never_change() {
        // Computed by another implementation too, in another language.
        assert_eq!(emission_seed(0, 0, 0, 0), 0x2130_748A_AAC8_0268);
        assert_eq!(emission_seed(1, 2, 3, 4), 0x3A09_5BF2_044D_24FA);
    }

    #[test]
    fn every_input_bit_moves_half_of_the_seed() {
        // Over 4 numbers x 64 bits x 64 bases a fair hash flips 32 bits on average, with standard deviation
        // 4 / sqrt(64) = 0.5 for the mean of one input bit; 3.5 off is 7 deviations, odds of 7e-10 over the 256 input bits.
        const BASES: u32 = 64;
        let flip = |numbers: [u64; 4]| {
            emission_seed(
                numbers[0],
                numbers[1],
                numbers[2] as usize,
                numbers[3] as usize,
            )
        };
        for input in 0..4 {
            for bit in 0..64 {
                let mut flipped = 0;
                for base in 0..BASES {
                    let numbers = [base.into(), 3, u64::from(base) * 5, u64::from(base) % 7];
                    let mut changed = numbers;
                    changed[input] ^= 1 << bit;
                    flipped += (flip(numbers) ^ flip(changed)).count_ones();
                }
                let mean = f64::from(flipped) / f64::from(BASES);
                assert!(
                    (mean - 32.0).abs() < 3.5,
                    "bit {bit} of number {input} flips {mean} bits"
                );
            }
        }
    }

    #[test]
    fn a_million_frames_have_a_million_seeds() {
        // By chance two of a million 64-bit seeds agree with odds of 2.7e-8.
        let mut seeds = BTreeSet::new();
        for epoch in 0..10 {
            for episode_index in 0..100 {
                for frame_index in 0..1000 {
                    seeds.insert(emission_seed(0, epoch, episode_index, frame_index));
                }
            }
        }
        assert_eq!(seeds.len(), 1_000_000);
    }

    #[test]
    fn an_order_key_is_the_four_numbers_in_turn() {
        let mut expected = [0; 32];
        expected[0] = 0x34;
        expected[1] = 0x12;
        expected[8] = 5;
        expected[16] = 6;
        expected[24] = 7;
        assert_eq!(order_key(0x1234, 5, 6, 7), expected);
    }
}
