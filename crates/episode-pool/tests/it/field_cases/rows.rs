//! Rows of the wrong episode, windows cut short, episodes that were not asked for.

use std::fs;

use testkit::{Camera, Code, RowGroups, Spec, Split};

use super::{CAMERA, assert_says, camera, chain, codes, field, own_code};
use crate::support::{builder, order, samples, windows};

/// An episode's number was taken for its position among the chosen ones.
#[test]
fn chosen_episodes_keep_their_own_rows_and_numbers() {
    let lengths = [3, 7, 2, 9, 4, 5];
    let dataset = Spec {
        data_files: Split::Every(4),
        ..Spec::new(10, &lengths)
    }
    .write();
    for chosen in [&[4, 1, 3][..], &[5], &[2, 0], &[0, 1, 2, 3, 4, 5]] {
        let pool = builder(dataset.root())
            .episodes(chosen.iter().copied())
            .delta_timestamps(windows(&[("observation.state", &[-0.1, 0.0, 0.1])]))
            .build()
            .unwrap();
        let emitted = samples(&pool, 0);
        assert_eq!(
            emitted.len(),
            chosen
                .iter()
                .map(|&episode| lengths[episode])
                .sum::<usize>()
        );
        for sample in &emitted {
            assert!(chosen.contains(&sample.episode_index));
            let first: usize = lengths[..sample.episode_index].iter().sum();
            let (first, length) = (first as i64, lengths[sample.episode_index] as i64);
            let frame = sample.frame_index as i64;
            let own = |offset: i64| (first + (frame + offset).clamp(0, length - 1)) as f32;
            let states: Vec<f32> = [-1, 0, 1]
                .into_iter()
                .flat_map(|offset| [own(offset); 2])
                .collect();
            assert_eq!(field(sample, "observation.state").as_f32().unwrap(), states);
            assert_eq!(
                field(sample, "observation.state_is_pad").as_bool().unwrap(),
                [frame == 0, false, frame == length - 1]
            );
            assert_eq!(
                field(sample, "episode_index").as_i64().unwrap(),
                [sample.episode_index as i64]
            );
            assert_eq!(field(sample, "index").as_i64().unwrap(), [first + frame]);
        }
    }
}

#[test]
fn a_choice_that_is_not_possible_is_told_with_the_valid_range() {
    let dataset = Spec::new(10, &[3, 7, 2]).write();
    let chosen = |episodes: &[usize]| {
        let builder = builder(dataset.root()).episodes(episodes.iter().copied());
        chain(&builder.build().unwrap_err())
    };
    assert_says(&chosen(&[1, 3]), &["episodes names episode 3", "0 to 2"]);
    assert_says(
        &chosen(&[1, 2, 1]),
        &["episodes names episode 1 more than once", "0 to 2"],
    );
}

/// Offsets of more than 100 frames came back as padding, although the frames exist.
#[test]
fn a_window_reaches_as_far_as_its_episode() {
    let (length, reach) = (300_i64, 105_i64);
    let dataset = Spec {
        cameras: vec![camera()],
        ..Spec::new(30, &[300, 300])
    }
    .write();
    let deltas: &[f64] = &[-3.5, 3.5];
    let keys = ["observation.state", "action", CAMERA];
    let pool = builder(dataset.root())
        .delta_timestamps(windows(&keys.map(|key| (key, deltas))))
        .build()
        .unwrap();
    let emitted = samples(&pool, 0);
    assert_eq!(emitted.len(), 600);
    for sample in &emitted {
        let frame = sample.frame_index as i64;
        let frames = [-reach, reach].map(|offset| (frame + offset).clamp(0, length - 1) as usize);
        let indices = frames.map(|frame| (sample.episode_index * 300 + frame) as f32);
        let states = indices.map(|index| [index; 2]).concat();
        let actions = indices.map(|index| [index, index + 0.5]).concat();
        assert_eq!(field(sample, "observation.state").as_f32().unwrap(), states);
        assert_eq!(field(sample, "action").as_f32().unwrap(), actions);
        let expected = frames.map(|frame| Code {
            episode: sample.episode_index,
            frame,
            camera: 0,
        });
        assert_eq!(codes(sample, CAMERA), expected);
        for key in keys {
            let mask = field(sample, &format!("{key}_is_pad"));
            assert_eq!(
                mask.as_bool().unwrap(),
                [frame < reach, frame >= length - reach]
            );
        }
    }
}

/// A filter chose files instead of rows: the whole dataset came back, or the file's other episodes too.
#[test]
fn one_episode_of_a_shared_file_comes_alone() {
    let lengths = [4, 6, 5];
    for row_groups in [
        RowGroups::PerEpisode,
        RowGroups::Rows(4),
        RowGroups::Rows(100),
    ] {
        let dataset = Spec {
            row_groups,
            ..Spec::new(10, &lengths)
        }
        .write();
        for (chosen, length) in lengths.into_iter().enumerate() {
            let pool = builder(dataset.root())
                .episodes([chosen])
                .shuffle(false)
                .build()
                .unwrap();
            assert_eq!(pool.num_frames(), length as u64);
            let expected: Vec<_> = (0..length).map(|frame| (chosen, frame)).collect();
            assert_eq!(order(&pool, 0), expected, "{row_groups:?}");
        }
    }
}

#[test]
fn files_of_episodes_that_are_not_chosen_are_not_needed() {
    let camera = Camera {
        files: Split::Every(1),
        ..camera()
    };
    let dataset = Spec {
        cameras: vec![camera],
        data_files: Split::Every(1),
        ..Spec::new(10, &[4, 6, 5])
    }
    .write();
    for other in [0, 2] {
        fs::remove_file(dataset.data_file(other)).unwrap();
        fs::remove_file(dataset.video_file(CAMERA, other)).unwrap();
    }
    let pool = builder(dataset.root()).episodes([1]).build().unwrap();
    let emitted = samples(&pool, 0);
    assert_eq!(emitted.len(), 6);
    for sample in &emitted {
        assert_eq!(codes(sample, CAMERA), [own_code(sample)]);
    }
}
