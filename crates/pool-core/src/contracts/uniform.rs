//! Each emission is uniform over all frames left in the pool.

use std::collections::BTreeMap;

use super::setup::{Setup, Violation, broken};
use crate::ownership::Share;
use crate::plan::{Plan, PlanOptions, Step};

/// Ranks are counted in this many classes.
const CLASSES: usize = 16;
/// This many emissions are looked at, for every consumer.
const EMISSIONS: u64 = 50_000;
/// The most seeds that are tried to get them.
const SEEDS: u64 = 5_000;
/// Chi-square with 15 degrees of freedom exceeds this with odds of 6e-10.
const BOUND: f64 = 75.0;

/// Each emission is uniform over all frames left in the pool.
///
/// The frames left are ranked in two ways: by age (episodes in the order of their admission, frames first to last), and by
/// their place in their episode. The rank of each emission falls into one of 16 classes, whose odds follow from the number of
/// frames left. Over 50,000 emissions of each consumer, with as many seeds as it takes, the counts are compared with these odds
/// by a chi-square statistic for each ranking; a correct plan fails one with odds of 6e-10. Emissions with fewer than 16 frames
/// left are not looked at, and a consumer for which 5,000 seeds do not suffice is not judged. Without shuffle there is nothing
/// to check.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
pub fn uniform_over_the_pool(setup: &Setup) -> Result<(), Violation> {
    let broken = broken("uniform_over_the_pool");
    if !setup.options.shuffle {
        return Ok(());
    }
    for (consumer, share) in setup.shares()?.iter().enumerate() {
        let [mut by_age, mut by_place] = [Tally::default(); 2];
        for seed in 0..SEEDS {
            if by_age.emissions >= EMISSIONS {
                break;
            }
            let seed = setup.options.seed.wrapping_add(seed);
            tally(
                share,
                &PlanOptions {
                    seed,
                    ..setup.options
                },
                &mut by_age,
                &mut by_place,
            )?;
        }
        for (ranking, tally) in [("age", by_age), ("place in the episode", by_place)] {
            let chi_square = tally.chi_square();
            if tally.emissions >= EMISSIONS && chi_square > BOUND {
                return Err(broken(format!(
                    "for consumer {consumer} the chi-square of {} emissions ranked by {ranking} is {chi_square:.1}, over {BOUND}",
                    tally.emissions,
                )));
            }
        }
    }
    Ok(())
}

/// Counts the ranks of an epoch's emissions, or of its beginning.
fn tally(
    share: &Share,
    options: &PlanOptions,
    by_age: &mut Tally,
    by_place: &mut Tally,
) -> Result<(), Violation> {
    let episodes: BTreeMap<_, _> = share
        .episodes()
        .map(|episode| (episode.episode_index(), episode))
        .collect();
    // The frames left, by age.
    let mut left: Vec<(usize, usize)> = Vec::new();
    for step in Plan::new(share, options)? {
        match step {
            Step::Admit { episode_index } => {
                left.extend(
                    episodes[&episode_index]
                        .frames()
                        .map(|frame_index| (episode_index, frame_index)),
                );
            }
            Step::Emit(emission) => {
                let frame = (emission.episode_index, emission.frame_index);
                let age = left
                    .iter()
                    .position(|&other| other == frame)
                    .ok_or_else(|| {
                        broken("uniform_over_the_pool")(format!(
                            "{frame:?} is emitted and is not in the pool"
                        ))
                    })?;
                // Frames at the same place in different episodes are told apart by age.
                let before = |&(age_of_other, other): &(usize, &(usize, usize))| {
                    (other.1, age_of_other) < (frame.1, age)
                };
                let place = left.iter().enumerate().filter(before).count();
                by_age.count(age, left.len());
                by_place.count(place, left.len());
                left.remove(age);
                if by_age.emissions >= EMISSIONS {
                    return Ok(());
                }
            }
            Step::Evict { .. } => {}
        }
    }
    Ok(())
}

/// How many emissions fell into each class of ranks, and how many should have.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    emissions: u64,
    observed: [f64; CLASSES],
    expected: [f64; CLASSES],
}

impl Tally {
    /// Counts an emission of rank `rank` among `num_left` frames.
    fn count(&mut self, rank: usize, num_left: usize) {
        if num_left < CLASSES {
            return;
        }
        self.emissions += 1;
        self.observed[rank * CLASSES / num_left] += 1.0;
        for (class, expected) in self.expected.iter_mut().enumerate() {
            let first = |class: usize| (class * num_left).div_ceil(CLASSES);
            *expected += (first(class + 1) - first(class)) as f64 / num_left as f64;
        }
    }

    fn chi_square(&self) -> f64 {
        let classes = self.observed.iter().zip(&self.expected);
        classes
            .map(|(observed, expected)| (observed - expected).powi(2) / expected)
            .sum()
    }
}
