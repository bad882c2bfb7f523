//! How well a pool mixes, from the start of an epoch to its end.

use std::collections::BTreeSet;

use pool_core::{PlanOptions, Warning};

use crate::setups::{frames, plan};

/// The mean number of distinct episodes in windows of 256 emissions that begin at the given places.
fn distinct_episodes(order: &[(usize, usize)], places: impl Iterator<Item = usize>) -> f64 {
    let counts: Vec<_> = places
        .map(|start| {
            let window = &order[start..start + 256];
            window
                .iter()
                .map(|&(episode, _)| episode)
                .collect::<BTreeSet<_>>()
                .len() as f64
        })
        .collect();
    counts.iter().sum::<f64>() / counts.len() as f64
}

#[test]
fn the_end_of_an_epoch_is_mixed_nearly_as_well_as_its_middle() {
    // 100 episodes of 100 frames and a pool of 8, as the documentation of `Plan` says; means over 200 seeds.
    const SEEDS: u64 = 200;
    let [mut first, mut middle, mut last] = [0.0; 3];
    for seed in 0..SEEDS {
        let options = PlanOptions {
            seed,
            episode_pool_size: 8,
            ..PlanOptions::default()
        };
        let order = frames(plan(&[100; 100], &options));
        let num_frames = order.len();
        first += distinct_episodes(&order, 0..244) / SEEDS as f64;
        middle +=
            distinct_episodes(&order, num_frames / 2 - 250..num_frames / 2 - 6) / SEEDS as f64;
        last += distinct_episodes(&order, num_frames - 500..num_frames - 256) / SEEDS as f64;
    }
    assert!((first - 8.0).abs() < 0.05, "{first}");
    assert!((middle - 10.3).abs() < 0.05, "{middle}");
    assert!((last - 9.6).abs() < 0.05, "{last}");
}

#[test]
fn an_episode_that_crowds_out_the_others_is_warned_about() {
    let mut lengths = vec![1; 100];
    lengths[40] = 10_000;
    let options = PlanOptions {
        episode_pool_size: 8,
        ..PlanOptions::default()
    };
    let warnings = plan(&lengths, &options).warnings().to_vec();
    let expected = Warning::DominantEpisode {
        episode_index: 40,
        episode_frames: 10_000,
        share_frames: 10_099,
        share_episodes: 100,
        episode_pool_size: 8,
    };
    assert_eq!(warnings, [expected]);
    assert_eq!(
        warnings[0].to_string(),
        "episode 40 alone is 10000 of this consumer's 10099 frames: while it is in the pool, and to the end of the epoch if it \
         comes last, most samples are its own; raise episode_pool_size from 8 to 100 to shuffle the whole share at once, or \
         leave the episode out",
    );
}

#[test]
fn there_is_no_such_warning_where_nothing_is_crowded_out() {
    let small_pool = PlanOptions {
        episode_pool_size: 2,
        ..PlanOptions::default()
    };
    // Exactly a third is not more than a third.
    assert_eq!(plan(&[10, 10, 10], &small_pool).warnings(), []);
    // The pool holds the whole share.
    assert_eq!(
        plan(&[10_000, 1, 1], &PlanOptions::default()).warnings(),
        []
    );
    let unshuffled = PlanOptions {
        shuffle: false,
        ..small_pool
    };
    assert_eq!(plan(&[10_000, 1, 1], &unshuffled).warnings(), []);
}

#[test]
fn no_episode_is_left_alone_for_a_third_of_an_epoch_without_a_warning() {
    let cases: [&[usize]; 4] = [
        &[100; 30],
        &[1, 10_000, 1, 1],
        &[500, 400, 300, 200, 100],
        &[33, 33, 34, 1],
    ];
    for lengths in cases {
        for seed in 0..50 {
            let options = PlanOptions {
                seed,
                episode_pool_size: 2,
                ..PlanOptions::default()
            };
            let plan = plan(lengths, &options);
            let is_warned = !plan.warnings().is_empty();
            let order = frames(plan);
            let last = order[order.len() - 1].0;
            let alone = order
                .iter()
                .rev()
                .take_while(|&&(episode, _)| episode == last)
                .count();
            assert!(
                is_warned || alone <= order.len() / 3,
                "{lengths:?}, seed {seed}: {alone} alone"
            );
        }
    }
}
