//! The steps of small plans, the plan's bounds, and what it says without advancing.

use std::collections::BTreeSet;

use pool_core::{
    Admission, EpisodeInfo, Error, Filter, MAX_EPISODE_FRAMES, Plan, PlanOptions, Selection,
    Sharding, Share, Step, Topology, emission_seed,
};

use crate::setups::{frames, plan};

/// A plan's steps as text, with `+` for Admit and `-` for Evict.
fn story(plan: impl Iterator<Item = Step>) -> String {
    let steps: Vec<_> = plan
        .map(|step| match step {
            Step::Admit { episode_index } => format!("+{episode_index}"),
            Step::Emit(emission) => format!("{}.{}", emission.episode_index, emission.frame_index),
            Step::Evict { episode_index } => format!("-{episode_index}"),
        })
        .collect();
    steps.join(" ")
}

fn unshuffled() -> PlanOptions {
    PlanOptions {
        shuffle: false,
        ..PlanOptions::default()
    }
}

#[test]
fn without_shuffle_frames_come_in_dataset_order() {
    let plan = plan(&[2, 1, 3], &unshuffled());
    assert_eq!(story(plan), "+0 0.0 0.1 -0 +1 1.0 -1 +2 2.0 2.1 2.2 -2");
}

#[test]
fn a_pool_of_one_takes_episodes_one_by_one() {
    let options = PlanOptions {
        episode_pool_size: 1,
        ..PlanOptions::default()
    };
    let order = frames(plan(&[5; 20], &options));
    let episodes: Vec<_> = order.chunks(5).map(|chunk| chunk[0].0).collect();
    for (chunk, episode) in order.chunks(5).zip(&episodes) {
        assert!(chunk.iter().all(|(other, _)| other == episode), "{chunk:?}");
    }
    assert!(!episodes.is_sorted(), "{episodes:?}");
}

#[test]
fn a_skip_leaves_the_steps_a_consistent_story() {
    // On a new plan, what is resident is admitted first.
    let mut late = plan(&[2, 1, 3], &unshuffled());
    assert_eq!(late.skip_emissions(4), 4);
    assert_eq!(late.remaining(), 2);
    assert_eq!(story(late), "+2 2.1 2.2 -2");
    // In the middle, what was admitted and is exhausted is evicted first.
    let mut following = plan(&[2, 1, 3], &unshuffled());
    assert_eq!(story(following.by_ref().take(2)), "+0 0.0");
    assert_eq!(following.skip_emissions(2), 2);
    assert_eq!(story(following), "-0 +2 2.0 2.1 2.2 -2");
    // An episode that is still resident goes on.
    let mut within = plan(&[2, 1, 3], &unshuffled());
    assert_eq!(story(within.by_ref().skip(6).take(3)), "-1 +2 2.0");
    assert_eq!(within.skip_emissions(1), 1);
    assert_eq!(story(within), "2.2 -2");
    // A skip of nothing changes nothing.
    let mut still = plan(&[2], &unshuffled());
    assert_eq!(still.skip_emissions(0), 0);
    assert_eq!(story(still), "+0 0.0 0.1 -0");
}

#[test]
fn a_skip_past_the_end_only_evicts_what_is_held() {
    let mut ended = plan(&[2, 1, 3], &unshuffled());
    assert_eq!(story(ended.by_ref().take(1)), "+0");
    assert_eq!(ended.skip_emissions(u64::MAX), 6);
    assert_eq!(story(ended.by_ref()), "-0");
    assert_eq!(ended.skip_emissions(1), 0);
    assert_eq!((ended.next(), ended.remaining()), (None, 0));
}

/// Fifty episodes of 1 to 9 frames in chapters of sixteen pools: 2 episodes of 9 frames at most, so of 288 frames.
fn chaptered(seed: u64) -> (Vec<usize>, PlanOptions) {
    let lengths = (0..130).map(|i| 1 + i * 7 % 9).collect();
    let options = PlanOptions {
        seed,
        episode_pool_size: 2,
        chapter_frames: 1,
        ..PlanOptions::default()
    };
    (lengths, options)
}

#[test]
fn the_pool_runs_empty_where_a_chapter_ends() {
    let (lengths, options) = chaptered(3);
    let num_frames: usize = lengths.iter().sum();
    assert_eq!(num_frames.div_ceil(288), 3);
    // Where nothing is held in the middle of the epoch, how many frames have been emitted?
    let (mut held, mut emitted, mut ends) = (0, 0, Vec::new());
    for step in plan(&lengths, &options) {
        match step {
            Step::Admit { .. } => held += 1,
            Step::Emit(_) => emitted += 1,
            Step::Evict { .. } => {
                held -= 1;
                if held == 0 {
                    ends.push(emitted);
                }
            }
        }
    }
    let ideal = [num_frames / 3, num_frames * 2 / 3, num_frames];
    assert_eq!(ends.len(), 3);
    for (end, ideal) in ends.into_iter().zip(ideal) {
        assert!((ideal..ideal + 10).contains(&end), "{end}, {ideal}");
    }
    // Without chapters the order is another from the first boundary on, and the same before.
    let whole = PlanOptions {
        chapter_frames: u64::MAX,
        ..options
    };
    let (chapters, whole) = (
        frames(plan(&lengths, &options)),
        frames(plan(&lengths, &whole)),
    );
    assert_eq!(chapters[..num_frames / 3 - 9], whole[..num_frames / 3 - 9]);
    assert_ne!(chapters, whole);
}

#[test]
fn chapters_are_drawn_independently() {
    // Two chapters of one long list of episodes of one length: the draws differ, not only the episodes.
    let options = PlanOptions {
        episode_pool_size: 1,
        chapter_frames: 1,
        ..PlanOptions::default()
    };
    let order = frames(plan(&[40; 32], &options));
    let within =
        |chapter: &[(usize, usize)]| chapter.iter().map(|&(_, frame)| frame).collect::<Vec<_>>();
    let (first, second) = order.split_at(640);
    assert_ne!(within(first), within(second));
}

#[test]
fn a_length_cuts_the_order_short_or_repeats_it() {
    for shuffle in [true, false] {
        let (lengths, options) = chaptered(4);
        let options = PlanOptions { shuffle, ..options };
        let whole = frames(plan(&lengths, &options));
        for length in [
            0,
            1,
            17,
            whole.len() - 1,
            whole.len(),
            whole.len() + 1,
            whole.len() * 2 + 300,
        ] {
            let cut = || plan(&lengths, &options).with_length(length as u64);
            let expected: Vec<_> = whole.iter().copied().cycle().take(length).collect();
            assert_eq!(cut().remaining(), length as u64);
            // What is admitted is evicted, and nothing is emitted that is not held.
            let mut held = std::collections::BTreeSet::new();
            for step in cut() {
                match step {
                    Step::Admit { episode_index } => assert!(held.insert(episode_index)),
                    Step::Emit(emission) => assert!(held.contains(&emission.episode_index)),
                    Step::Evict { episode_index } => assert!(held.remove(&episode_index)),
                }
                assert!(held.len() <= 2);
            }
            assert!(held.is_empty());
            assert_eq!(frames(cut()), expected);
            for skip in [1, length / 3, length.saturating_sub(1), length] {
                let mut plan = cut();
                plan.skip_emissions(skip as u64);
                assert_eq!(
                    frames(plan),
                    expected[skip.min(length)..],
                    "{skip} of {length}"
                );
            }
        }
    }
    assert_eq!(
        story(plan(&[2], &unshuffled()).with_length(5)),
        "+0 0.0 0.1 -0 +0 0.0 0.1 -0 +0 0.0 -0"
    );
    let mut for_ever = plan(&[2, 3], &PlanOptions::default()).with_length(u64::MAX);
    assert_eq!(for_ever.skip_emissions((1 << 62) - 1), (1 << 62) - 1);
    assert_eq!(frames(for_ever).len(), 1);
}

#[test]
fn what_is_owed_can_be_asked_for_before_the_next_emission() {
    let mut plan = plan(&[1, 2], &unshuffled());
    assert_eq!(plan.next_owed(), Some(Step::Admit { episode_index: 0 }));
    assert_eq!(plan.next_owed(), None);
    assert!(matches!(plan.next(), Some(Step::Emit(_))));
    assert_eq!(plan.next_owed(), Some(Step::Evict { episode_index: 0 }));
    assert_eq!(plan.next_owed(), Some(Step::Admit { episode_index: 1 }));
    assert_eq!(plan.next_owed(), None);
    assert_eq!(plan.remaining(), 2);
}

#[test]
fn the_next_admissions_are_those_that_come() {
    let options = PlanOptions {
        episode_pool_size: 3,
        ..PlanOptions::default()
    };
    let mut plan = plan(&[4, 2, 7, 1, 1, 9, 3], &options);
    loop {
        let rest: Vec<_> = plan
            .clone()
            .filter_map(|step| match step {
                Step::Admit { episode_index } => Some(episode_index),
                _ => None,
            })
            .collect();
        assert_eq!(plan.next_admissions(usize::MAX).collect::<Vec<_>>(), rest);
        assert!(plan.next_admissions(2).eq(rest.into_iter().take(2)));
        if plan.next().is_none() {
            break;
        }
    }
    assert_eq!(plan.next_admissions(1).next(), None);
}

#[test]
fn an_emission_carries_its_frames_seed_whatever_the_world() {
    let options = PlanOptions {
        seed: 11,
        epoch: 4,
        episode_pool_size: 2,
        ..PlanOptions::default()
    };
    for step in plan(&[3, 9, 4], &options).chain(plan(
        &[3, 9, 4],
        &PlanOptions {
            episode_pool_size: 1,
            ..options
        },
    )) {
        if let Step::Emit(emission) = step {
            assert_eq!(
                emission.seed,
                emission_seed(11, 4, emission.episode_index, emission.frame_index)
            );
        }
    }
}

#[test]
fn a_consumer_without_episodes_has_an_empty_plan() {
    let selection = crate::setups::select(&[5]);
    let topology = Topology::new(1, 2, 0, 0).unwrap();
    let share = Share::new(&selection, &topology, &Sharding::default()).unwrap();
    let mut plan = Plan::new(&share, &PlanOptions::default()).unwrap();
    assert_eq!(
        (
            plan.next(),
            plan.remaining(),
            plan.next_admissions(9).count()
        ),
        (None, 0, 0)
    );
    assert_eq!(plan.skip_emissions(3), 0);
}

#[test]
fn a_pool_of_no_episodes_is_an_error() {
    let share = Share::new(
        &crate::setups::select(&[5]),
        &Topology::single(),
        &Sharding::default(),
    )
    .unwrap();
    let options = PlanOptions {
        episode_pool_size: 0,
        ..PlanOptions::default()
    };
    assert_eq!(Plan::new(&share, &options).unwrap_err(), Error::EmptyPool);
}

#[test]
fn a_pool_that_could_not_be_held_in_memory_is_an_error_at_once() {
    // Lengths as a broken file might tell them; nothing is reserved for them.
    let episodes = [0, 1, 2].map(|episode_index| EpisodeInfo {
        episode_index,
        length: MAX_EPISODE_FRAMES,
        file: 0,
    });
    let selection = Selection::new(&episodes, &Filter::default()).unwrap();
    let share = Share::new(&selection, &Topology::single(), &Sharding::default()).unwrap();
    let error = Plan::new(&share, &PlanOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a pool of 3 episodes could hold 12884901885 frames; at most 268435456 are possible, so lower episode_pool_size",
    );
}

#[test]
fn plans_can_be_sent_to_threads_and_shared() {
    fn assert_send_sync<T: Send + Sync + 'static>() {}
    assert_send_sync::<(Selection, Share, Plan, Error)>();
}

/// Grouped by files, each file's episodes come one after the other, in an order of their own, and so do the files; all else is as shuffled.
#[test]
fn grouped_admissions_go_from_file_to_file() {
    let episodes: Vec<EpisodeInfo> = (0..30)
        .map(|i| EpisodeInfo {
            episode_index: i,
            length: 2,
            file: i / 6,
        })
        .collect();
    let selection = Selection::new(&episodes, &Filter::default()).unwrap();
    let share = Share::new(&selection, &Topology::single(), &Sharding::default()).unwrap();
    let admissions = |admission, seed| {
        let options = PlanOptions {
            seed,
            admission,
            episode_pool_size: 4,
            ..PlanOptions::default()
        };
        let steps = Plan::new(&share, &options).unwrap();
        let admitted = steps.filter_map(|step| match step {
            Step::Admit { episode_index } => Some(episode_index),
            _ => None,
        });
        admitted.collect::<Vec<_>>()
    };
    let mut orders_of_files = BTreeSet::new();
    for seed in 0..20 {
        let shuffled = admissions(Admission::Shuffled, seed);
        let grouped = admissions(Admission::FileGrouped, seed);
        let files: Vec<usize> = grouped.chunks(6).map(|chunk| chunk[0] / 6).collect();
        for (chunk, &file) in grouped.chunks(6).zip(&files) {
            let of_file: Vec<usize> = shuffled.iter().copied().filter(|e| e / 6 == file).collect();
            assert_eq!(chunk, of_file);
        }
        orders_of_files.insert(files);
    }
    assert!(orders_of_files.len() > 10, "{orders_of_files:?}");
}
