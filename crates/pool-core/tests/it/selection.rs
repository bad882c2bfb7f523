//! Filters keep what they say, and name what they cannot find.

use std::collections::BTreeMap;

use pool_core::{
    EpisodeInfo, Error, Filter, MAX_EPISODE_FRAMES, Plan, PlanOptions, Progress, Selection,
    Sharding, Share, Topology, Warning,
};

use crate::setups::episodes;

/// Six episodes, of 3, 7, 2, 9, 4 and 5 frames.
fn dataset() -> Vec<EpisodeInfo> {
    episodes(&[3, 7, 2, 9, 4, 5], 2)
}

/// The kept frames of each selected episode.
fn kept(filter: &Filter) -> Vec<(usize, Vec<usize>)> {
    let selection = Selection::new(&dataset(), filter).unwrap();
    let episodes = selection.episodes().iter();
    let kept: Vec<_> = episodes
        .map(|episode| {
            (
                episode.episode_index(),
                episode.frames().collect::<Vec<_>>(),
            )
        })
        .collect();
    let num_frames: usize = kept.iter().map(|(_, frames)| frames.len()).sum();
    assert_eq!(selection.num_frames(), num_frames as u64);
    kept
}

/// The message that a filter is refused with.
fn refusal(filter: &Filter) -> String {
    Selection::new(&dataset(), filter).unwrap_err().to_string()
}

fn ranges<const N: usize>(ranges: [(usize, Vec<std::ops::Range<usize>>); N]) -> Filter {
    Filter {
        keep_ranges: BTreeMap::from(ranges),
        ..Filter::default()
    }
}

#[test]
fn chosen_episodes_keep_their_numbers_and_the_datasets_order() {
    let filter = Filter {
        episodes: Some(vec![4, 1, 3]),
        ..Filter::default()
    };
    let selection = Selection::new(&dataset(), &filter).unwrap();
    let seen: Vec<_> = selection
        .episodes()
        .iter()
        .map(|e| (e.episode_index(), e.length(), e.file()))
        .collect();
    assert_eq!(seen, [(1, 7, 0), (3, 9, 1), (4, 4, 2)]);
}

#[test]
fn excluding_has_the_last_word() {
    let filter = Filter {
        episodes: Some(vec![0, 2, 5]),
        exclude_episodes: vec![2, 3],
        ..Filter::default()
    };
    assert_eq!(
        kept(&filter),
        [(0, vec![0, 1, 2]), (5, vec![0, 1, 2, 3, 4])]
    );
}

#[test]
fn dropped_ends_and_kept_ranges_act_together() {
    let filter = Filter {
        drop_n_first_frames: 1,
        drop_n_last_frames: 2,
        exclude_episodes: vec![1, 4],
        // Out of order, overlapping, adjacent, and repeated.
        ..ranges([(3, vec![6..9, 0..2, 1..3, 3..4, 0..2])])
    };
    assert_eq!(kept(&filter), [(3, vec![1, 2, 3, 6]), (5, vec![1, 2])]);
    let warnings = Selection::new(&dataset(), &filter)
        .unwrap()
        .warnings()
        .to_vec();
    assert_eq!(
        warnings,
        [Warning::EmptiedEpisodes {
            episode_indices: vec![0, 2],
        }],
    );
    assert_eq!(
        warnings[0].to_string(),
        "2 chosen episodes emit nothing (0, 2): no frame of theirs is left after drop_n_first_frames, drop_n_last_frames and \
         keep_ranges; drop fewer frames to keep them",
    );
}

#[test]
fn a_long_list_of_emptied_episodes_is_cut_short() {
    let warning = Warning::EmptiedEpisodes {
        episode_indices: (0..1000).collect(),
    };
    let text = warning.to_string();
    assert!(
        text.starts_with(
            "1000 chosen episodes emit nothing (0, 1, 2, 3, 4, 5, 6, 7 and 992 more): "
        ),
        "{text}"
    );
}

#[test]
fn an_unknown_episode_is_named_with_those_that_exist() {
    let known = "which the dataset does not have: it has 6 episodes, numbered 0 to 5";
    let chosen = Filter {
        episodes: Some(vec![4, 6]),
        ..Filter::default()
    };
    assert_eq!(
        refusal(&chosen),
        format!("episodes names episode 6, {known}")
    );
    let excluded = Filter {
        exclude_episodes: vec![usize::MAX],
        ..Filter::default()
    };
    assert_eq!(
        refusal(&excluded),
        format!("exclude_episodes names episode {}, {known}", usize::MAX)
    );
    assert_eq!(
        refusal(&ranges([(9, vec![])])),
        format!("keep_ranges names episode 9, {known}")
    );
}

#[test]
fn gaps_in_the_numbers_are_told() {
    let mut dataset = dataset();
    dataset.remove(2);
    let filter = Filter {
        episodes: Some(vec![2]),
        ..Filter::default()
    };
    let error = Selection::new(&dataset, &filter).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("it has 5 episodes, numbered 0 to 5, with gaps"),
        "{error}"
    );
}

#[test]
fn an_episode_named_twice_is_an_error() {
    let twice = || vec![1, 3, 1];
    let message = |option| {
        format!(
            "{option} names episode 1 more than once: name each episode once; the dataset has 6 episodes, numbered 0 to 5"
        )
    };
    let chosen = Filter {
        episodes: Some(twice()),
        ..Filter::default()
    };
    assert_eq!(refusal(&chosen), message("episodes"));
    let excluded = Filter {
        exclude_episodes: twice(),
        ..Filter::default()
    };
    assert_eq!(refusal(&excluded), message("exclude_episodes"));

    let mut dataset = dataset();
    dataset[4].episode_index = 0;
    let error = Selection::new(&dataset, &Filter::default()).unwrap_err();
    assert_eq!(error, Error::DuplicateEpisode { episode_index: 0 });
}

#[test]
fn a_range_that_is_no_part_of_its_episode_is_an_error() {
    #[expect(clippy::reversed_empty_ranges, reason = "this is what is refused")]
    for range in [
        0..8,
        7..8,
        3..3,
        5..2,
        usize::MAX..usize::MAX,
        0..usize::MAX,
    ] {
        let message = format!(
            "keep_ranges of episode 1 hold {}..{}, which is no part of its frames 0..7: a range starts below its end, and ends at 7 \
             or before",
            range.start, range.end,
        );
        assert_eq!(refusal(&ranges([(1, vec![0..7, range.clone()])])), message);
        // A fault does not hide behind an episode that is left out.
        let filter = Filter {
            exclude_episodes: vec![1],
            ..ranges([(1, vec![range])])
        };
        assert_eq!(refusal(&filter), message);
    }
}

#[test]
fn a_filter_that_leaves_nothing_is_an_error() {
    let message = |num_chosen| {
        format!(
            "no frame is selected: of 6 episodes {num_chosen} pass `episodes` and `exclude_episodes`, and drop_n_first_frames, \
             drop_n_last_frames and keep_ranges leave none of their frames; loosen the filter"
        )
    };
    let none = Filter {
        episodes: Some(vec![]),
        ..Filter::default()
    };
    assert_eq!(refusal(&none), message(0));
    let dropped = Filter {
        drop_n_first_frames: usize::MAX,
        drop_n_last_frames: usize::MAX,
        ..Filter::default()
    };
    assert_eq!(refusal(&dropped), message(6));
    let error = Selection::new(&[], &Filter::default()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NothingSelected {
                num_episodes: 0,
                num_chosen: 0
            }
        ),
        "{error}"
    );
}

#[test]
fn an_impossible_length_is_an_error_unless_it_is_left_out() {
    let mut dataset = dataset();
    for length in [MAX_EPISODE_FRAMES + 1, usize::MAX] {
        dataset[2].length = length;
        let error = Selection::new(&dataset, &Filter::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("episode 2 has {length} frames; at most 4294967295 can be planned"),
        );
        let filter = Filter {
            exclude_episodes: vec![2],
            ..Filter::default()
        };
        assert_eq!(Selection::new(&dataset, &filter).unwrap().num_frames(), 28);
    }
}

fn progress(emitted: &[u64]) -> Progress {
    Progress {
        world_size: 2,
        num_workers: 0,
        sharding: Sharding::default(),
        options: PlanOptions::default(),
        emitted: emitted.to_vec(),
    }
}

#[test]
fn nothing_is_left_once_everything_was_emitted() {
    let selection = crate::setups::select(&[4, 4]);
    assert!(selection.rest(&progress(&[4, 4])).unwrap().is_none());
    // What was repeated is not left either.
    assert!(selection.rest(&progress(&[9, 4])).unwrap().is_none());
    let rest = selection.rest(&progress(&[4, 3])).unwrap().unwrap();
    assert_eq!((rest.num_frames(), rest.generation()), (1, 1));
    let untouched = selection.rest(&progress(&[0, 0])).unwrap().unwrap();
    assert_eq!(untouched.episodes(), selection.episodes());
}

#[test]
fn what_is_left_comes_in_another_order() {
    let selection = crate::setups::select(&[100]);
    let rest = selection.rest(&progress(&[0, 0])).unwrap().unwrap();
    let order = |selection: &Selection| {
        let share = Share::new(selection, &Topology::single(), &Sharding::default()).unwrap();
        crate::setups::frames(Plan::new(&share, &PlanOptions::default()).unwrap())
    };
    assert_ne!(order(&selection), order(&rest));
}

#[test]
fn the_progress_of_another_fleet_is_an_error() {
    let selection = crate::setups::select(&[4, 4]);
    assert_eq!(
        selection.rest(&progress(&[1])).unwrap_err(),
        Error::ProgressOfOthers {
            found: 1,
            expected: 2
        }
    );
}
