//! Setups at random, for the properties, and small helpers.

use pool_core::contracts::Setup;
use pool_core::{
    Admission, EpisodeInfo, Filter, Plan, PlanOptions, Selection, ShardUnit, Sharding, Share, Step,
    Topology,
};
use proptest::prelude::*;

/// Episodes of the given lengths, numbered from 0, in files of `per_file` episodes.
pub(crate) fn episodes(lengths: &[usize], per_file: usize) -> Vec<EpisodeInfo> {
    let lengths = lengths.iter().enumerate();
    lengths
        .map(|(episode_index, &length)| EpisodeInfo {
            episode_index,
            length,
            file: episode_index / per_file,
        })
        .collect()
}

/// All frames of episodes of the given lengths, each in a file of its own.
pub(crate) fn select(lengths: &[usize]) -> Selection {
    Selection::new(&episodes(lengths, 1), &Filter::default()).unwrap()
}

/// All frames of episodes of the given lengths, for one process.
pub(crate) fn plan(lengths: &[usize], options: &PlanOptions) -> Plan {
    let share = Share::new(&select(lengths), &Topology::single(), &Sharding::default()).unwrap();
    Plan::new(&share, options).unwrap()
}

/// The frames that steps emit, as `(episode, frame)`.
pub(crate) fn frames(steps: impl IntoIterator<Item = Step>) -> Vec<(usize, usize)> {
    let frame = |step| match step {
        Step::Emit(emission) => Some((emission.episode_index, emission.frame_index)),
        _ => None,
    };
    steps.into_iter().filter_map(frame).collect()
}

/// Lengths, many of them short and some of them 1.
fn lengths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(
        prop_oneof![1 => Just(1_usize), 2 => 1..5_usize, 3 => 1..60_usize],
        1..40,
    )
}

/// Episodes with numbers that have gaps and come in any order, in files of any number of episodes.
fn datasets() -> impl Strategy<Value = Vec<EpisodeInfo>> {
    let spacing = prop_oneof![Just(1_usize), Just(3_usize)];
    (lengths(), spacing, 1..6_usize, any::<bool>()).prop_map(
        |(lengths, spacing, per_file, is_reversed)| {
            let mut dataset = episodes(&lengths, per_file);
            for episode in &mut dataset {
                episode.episode_index = episode.episode_index * spacing + 2;
            }
            if is_reversed {
                dataset.reverse();
            }
            dataset
        },
    )
}

/// Filters of every kind for a dataset.
fn filters(dataset: &[EpisodeInfo]) -> impl Strategy<Value = Filter> + use<> {
    let indices: Vec<usize> = dataset
        .iter()
        .map(|episode| episode.episode_index)
        .collect();
    let subset = || prop::sample::subsequence(indices.clone(), 0..=indices.len()).prop_shuffle();
    let chosen = prop_oneof![3 => Just(None), 1 => subset().prop_map(Some)];
    let excluded = prop_oneof![3 => Just(Vec::new()), 1 => subset()];
    let drops = || prop_oneof![2 => Just(0_usize), 1 => 0..4_usize];
    let one_ranges = |episode: EpisodeInfo| {
        let range = (0..episode.length, 1..=episode.length)
            .prop_map(move |(start, span)| start..episode.length.min(start + span));
        (
            Just(episode.episode_index),
            prop::collection::vec(range, 0..4),
        )
    };
    let some_ranges = prop::sample::subsequence(dataset.to_vec(), 0..=dataset.len().min(4))
        .prop_flat_map(move |some| some.into_iter().map(one_ranges).collect::<Vec<_>>())
        .prop_map(|ranges| ranges.into_iter().collect());
    (chosen, excluded, drops(), drops(), some_ranges).prop_map(
        |(episodes, exclude_episodes, drop_n_first_frames, drop_n_last_frames, keep_ranges)| {
            Filter {
                episodes,
                exclude_episodes,
                drop_n_first_frames,
                drop_n_last_frames,
                keep_ranges,
            }
        },
    )
}

fn shardings() -> impl Strategy<Value = Sharding> {
    let units = prop_oneof![Just(ShardUnit::Episode), Just(ShardUnit::File)];
    let most = prop_oneof![2 => Just(None), 1 => (1..12_usize).prop_map(Some)];
    (units, most).prop_map(|(unit, max_num_shards)| Sharding {
        unit,
        max_num_shards,
    })
}

fn options() -> impl Strategy<Value = PlanOptions> {
    let pool_sizes = prop_oneof![1..5_usize, Just(64_usize), Just(usize::MAX)];
    // Small ones make chapters of sixteen full pools.
    let chapters = prop_oneof![Just(1_u64), Just(PlanOptions::default().chapter_frames)];
    (
        any::<u64>(),
        any::<u64>(),
        pool_sizes,
        prop::bool::weighted(0.8),
        prop_oneof![Just(Admission::Shuffled), Just(Admission::FileGrouped)],
        chapters,
    )
        .prop_map(
            |(seed, epoch, episode_pool_size, shuffle, admission, chapter_frames)| PlanOptions {
                seed,
                epoch,
                episode_pool_size,
                shuffle,
                admission,
                chapter_frames,
            },
        )
}

/// World sizes 1 to 9, 0 to 5 workers, and everything else at random. Something is always selected.
pub(crate) fn setups() -> impl Strategy<Value = Setup> {
    datasets()
        .prop_flat_map(|dataset| {
            let filters = filters(&dataset);
            (
                Just(dataset),
                filters,
                1..=9_usize,
                0..=5_usize,
                shardings(),
                options(),
            )
        })
        .prop_map(
            |(episodes, filter, world_size, num_workers, sharding, options)| Setup {
                episodes,
                filter,
                world_size,
                num_workers,
                sharding,
                options,
            },
        )
        .prop_filter("a filter that leaves nothing is an error", |setup| {
            Selection::new(&setup.episodes, &setup.filter).is_ok()
        })
}
