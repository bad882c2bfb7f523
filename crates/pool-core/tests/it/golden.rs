//! Orders that never change. A difference here is a breaking change: every user's run would be reordered.
//!
//! The files in `tests/golden/` are written once, for cases that have none yet, by
//! `POOL_CORE_WRITE_GOLDEN=1 cargo test -p pool-core golden`.

use std::fmt::Write as _;
use std::path::PathBuf;

use pool_core::{
    Admission, Filter, Plan, PlanOptions, Progress, Selection, ShardUnit, Sharding, Share, Step,
    Topology,
};

use crate::setups::episodes;

/// What an order depends on.
struct Case {
    lengths: &'static [usize],
    /// Rank, world size, worker, number of workers.
    topology: [usize; 4],
    /// Episodes per data file; then files are shared out instead of episodes.
    per_file: Option<usize>,
    filter: Filter,
    options: PlanOptions,
}

const LENGTHS: &[usize] = &[5, 1, 8, 3, 1, 12, 7, 2, 9, 4];

fn case() -> Case {
    Case {
        lengths: LENGTHS,
        topology: [0, 1, 0, 0],
        per_file: None,
        filter: Filter::default(),
        options: PlanOptions {
            seed: 42,
            epoch: 0,
            episode_pool_size: 3,
            ..PlanOptions::default()
        },
    }
}

fn options(change: impl FnOnce(&mut PlanOptions)) -> Case {
    let mut case = case();
    change(&mut case.options);
    case
}

fn select(case: &Case) -> Selection {
    let dataset = episodes(case.lengths, case.per_file.unwrap_or(1));
    Selection::new(&dataset, &case.filter).unwrap()
}

fn check(name: &str, case: &Case) {
    check_of(&select(case), name, case);
}

fn check_of(selection: &Selection, name: &str, case: &Case) {
    let [rank, world_size, worker, num_workers] = case.topology;
    let topology = Topology::new(rank, world_size, worker, num_workers).unwrap();
    let sharding = Sharding {
        unit: if case.per_file.is_some() {
            ShardUnit::File
        } else {
            ShardUnit::Episode
        },
        max_num_shards: None,
    };
    let share = Share::new(selection, &topology, &sharding).unwrap();
    let mut text = String::new();
    for step in Plan::new(&share, &case.options).unwrap() {
        match step {
            Step::Admit { episode_index } => writeln!(text, "admit {episode_index}"),
            Step::Emit(emission) => {
                writeln!(
                    text,
                    "emit {} {} {:016x}",
                    emission.episode_index, emission.frame_index, emission.seed
                )
            }
            Step::Evict { episode_index } => writeln!(text, "evict {episode_index}"),
        }
        .unwrap();
    }

    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    if !path.exists() && std::env::var_os("POOL_CORE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(golden == text, "the order of {name} has changed:\n{text}");
}

#[test]
fn golden_order_single() {
    check("single", &case());
}

#[test]
fn golden_order_epoch_1() {
    check("epoch_1", &options(|options| options.epoch = 1));
}

#[test]
fn golden_order_large_seed() {
    check(
        "large_seed",
        &options(|options| (options.seed, options.epoch) = (u64::MAX, u64::MAX - 1)),
    );
}

#[test]
fn golden_order_grouped() {
    let grouped = Case {
        per_file: Some(4),
        ..options(|options| options.admission = Admission::FileGrouped)
    };
    check("grouped", &grouped);
}

#[test]
fn golden_order_pool_of_1() {
    check(
        "pool_of_1",
        &options(|options| options.episode_pool_size = 1),
    );
}

#[test]
fn golden_order_pool_of_all() {
    check(
        "pool_of_all",
        &options(|options| options.episode_pool_size = 64),
    );
}

#[test]
fn golden_order_unshuffled() {
    check("unshuffled", &options(|options| options.shuffle = false));
}

#[test]
fn golden_order_rank_1_of_2() {
    check(
        "rank_1_of_2",
        &Case {
            topology: [1, 2, 0, 0],
            ..case()
        },
    );
}

#[test]
fn golden_order_worker_1_of_2_on_rank_1_of_2() {
    check(
        "worker_1_of_2_on_rank_1_of_2",
        &Case {
            topology: [1, 2, 1, 2],
            ..case()
        },
    );
}

#[test]
fn golden_order_one_worker_is_the_main_process() {
    // The key knows the worker's number and not how many there are.
    check(
        "single",
        &Case {
            topology: [0, 1, 0, 1],
            ..case()
        },
    );
}

#[test]
fn golden_order_files() {
    check(
        "files",
        &Case {
            topology: [1, 2, 0, 2],
            per_file: Some(2),
            ..case()
        },
    );
}

#[test]
fn golden_order_filtered() {
    let filter = Filter {
        exclude_episodes: vec![2],
        drop_n_first_frames: 1,
        keep_ranges: [(5, vec![0..3, 9..12])].into(),
        ..Filter::default()
    };
    check("filtered", &Case { filter, ..case() });
}

#[test]
fn golden_order_chapters() {
    // Pools of one episode, of 12 frames at most: chapters of no more than 16 * 12 of 208 frames.
    let case = options(|options| (options.episode_pool_size, options.chapter_frames) = (1, 1));
    let lengths: &[usize] = &[
        5, 1, 8, 3, 1, 12, 7, 2, 9, 4, 5, 1, 8, 3, 1, 12, 7, 2, 9, 4, 5, 1, 8, 3, 1, 12, 7, 2, 9,
        4, 5, 1, 8, 3, 1, 12, 7, 2, 9, 4,
    ];
    check("chapters", &Case { lengths, ..case });
}

#[test]
fn golden_order_of_what_is_left() {
    // Two ranks have emitted 13 and 5 frames, and three go on; then these have emitted 4 each, and one goes on.
    let progress = |world_size, emitted: &[u64]| Progress {
        world_size,
        num_workers: 0,
        sharding: Sharding::default(),
        options: case().options,
        emitted: emitted.to_vec(),
    };
    let rest = select(&case())
        .rest(&progress(2, &[13, 5]))
        .unwrap()
        .unwrap();
    check_of(
        &rest,
        "left_for_rank_1_of_3",
        &Case {
            topology: [1, 3, 0, 0],
            ..case()
        },
    );
    let rest = rest.rest(&progress(3, &[4, 4, 4])).unwrap().unwrap();
    check_of(&rest, "left_again", &case());
}
