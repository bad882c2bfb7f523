//! How well an epoch is mixed, at its start, in its middle and near its end.

use std::collections::BTreeSet;

use episode_pool::pool_core::{self, Step};
use episode_pool::{EpisodePool, Warning};
use testkit::Spec;

use crate::support::builder;

/// The (episode, global index) of every emission of an epoch.
fn emissions(pool: &EpisodePool, epoch: u64) -> Vec<(usize, usize)> {
    let emissions = pool.plan(epoch).unwrap().filter_map(|step| match step {
        Step::Emit(emission) => Some(emission),
        _ => None,
    });
    emissions
        .map(|emission| {
            let first = pool
                .metadata()
                .episode(emission.episode_index)
                .unwrap()
                .from_index();
            (emission.episode_index, first + emission.frame_index)
        })
        .collect()
}

/// The mean number of distinct episodes in windows of 256 emissions.
fn distinct_episodes(part: &[(usize, usize)]) -> f64 {
    let counts = part.windows(256).step_by(27).map(|window| {
        window
            .iter()
            .map(|(episode, _)| episode)
            .collect::<BTreeSet<_>>()
            .len() as f64
    });
    counts.clone().sum::<f64>() / counts.count() as f64
}

/// Spearman's rank correlation of the order of emission with the order of the dataset: 1 for no shuffle at all.
fn rank_correlation(part: &[(usize, usize)]) -> f64 {
    let mut sorted: Vec<usize> = part.iter().map(|&(_, index)| index).collect();
    sorted.sort_unstable();
    let n = part.len() as f64;
    let squares = part.iter().enumerate().map(|(position, &(_, index))| {
        let rank = sorted.binary_search(&index).unwrap();
        (position as f64 - rank as f64).powi(2)
    });
    1.0 - 6.0 * squares.sum::<f64>() / (n * (n * n - 1.0))
}

/// 100 episodes of 100 frames and a pool of 8, in the first, middle and last 5 % of an epoch; means over 40 epochs.
#[test]
fn the_last_part_of_an_epoch_is_shown_in_the_same_figures_as_the_first() {
    const EPOCHS: u64 = 40;
    let dataset = Spec::new(10, &[100; 100]).write();
    let pool = builder(dataset.root())
        .episode_pool_size(8)
        .build()
        .unwrap();
    let mut distinct = [0.0; 3];
    let mut correlation = [0.0; 3];
    let mut strength = [0.0; 3];
    for epoch in 0..EPOCHS {
        let order = emissions(&pool, epoch);
        for (part, start) in [0, 4750, 9500].into_iter().enumerate() {
            let emitted = &order[start..start + 500];
            distinct[part] += distinct_episodes(emitted) / EPOCHS as f64;
            correlation[part] += rank_correlation(emitted) / EPOCHS as f64;
            strength[part] += rank_correlation(emitted).abs() / EPOCHS as f64;
        }
    }
    // As the documentation of `Plan` has it.
    for (found, documented) in distinct.into_iter().zip([8.0, 10.3, 9.6]) {
        assert!((found - documented).abs() < 0.3, "{distinct:?}");
    }
    // The order of the dataset does not show through. At the start the pool is a random choice of episodes: of 500 frames that
    // leaves a deviation of 0.04. Later, episodes come and go within the part, so that chance alone correlates more.
    assert!(
        correlation.iter().all(|mean| mean.abs() < 0.15),
        "{correlation:?}"
    );
    for (found, bound) in strength.into_iter().zip([0.06, 0.3, 0.3]) {
        assert!(found < bound, "{strength:?}");
    }
    let unshuffled = builder(dataset.root()).shuffle(false).build().unwrap();
    assert_eq!(rank_correlation(&emissions(&unshuffled, 0)[..500]), 1.0);
}

/// A single long episode was left alone for the last third of an epoch, and nobody said so.
#[test]
fn an_episode_that_outlasts_the_others_is_told_at_the_start() {
    for lengths in [
        vec![1, 10_000],
        vec![10_000, 1, 1, 1],
        [vec![1; 50], vec![2000], vec![1; 50]].concat(),
    ] {
        let dataset = Spec::new(10, &lengths).write();
        let long = (0..lengths.len())
            .max_by_key(|&episode| lengths[episode])
            .unwrap();
        let alone = |pool: &EpisodePool| {
            let order = emissions(pool, 0);
            let tail = order
                .iter()
                .rev()
                .take_while(|&&(episode, _)| episode == order[order.len() - 1].0);
            tail.count() as f64 / order.len() as f64
        };
        let pool = builder(dataset.root())
            .episode_pool_size(1)
            .build()
            .unwrap();
        let told = pool.warnings().iter().any(|warning| {
            matches!(
                warning,
                Warning::Planning(pool_core::Warning::DominantEpisode { episode_index, .. }) if *episode_index == long
            )
        });
        assert!(
            told,
            "{} alone at the end, {:?}",
            alone(&pool),
            pool.warnings()
        );
        // The remedy that the warning names.
        let pool = builder(dataset.root())
            .episode_pool_size(lengths.len())
            .build()
            .unwrap();
        assert_eq!(pool.warnings(), []);
    }
}
