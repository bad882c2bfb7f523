//! Planning allocates at its start only. A binary of its own, since it replaces the allocator.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::hint::black_box;

use pool_core::{
    EpisodeInfo, Filter, Plan, PlanOptions, Selection, Sharding, Share, Step, Topology,
};

/// A new plan for 200 episodes of 1 to 300 frames.
fn plan(options: &PlanOptions) -> Plan {
    let episodes: Vec<_> = (0..200)
        .map(|episode_index| EpisodeInfo {
            episode_index,
            length: 1 + episode_index * 37 % 300,
            file: 0,
        })
        .collect();
    let selection = Selection::new(&episodes, &Filter::default()).unwrap();
    let share = Share::new(&selection, &Topology::single(), &Sharding::default()).unwrap();
    Plan::new(&share, options).unwrap()
}

#[test]
fn a_whole_epoch_allocates_nothing() {
    for (shuffle, episode_pool_size) in [(true, 1), (true, 64), (true, 1000), (false, 64)] {
        let options = PlanOptions {
            shuffle,
            episode_pool_size,
            ..PlanOptions::default()
        };
        let mut plan = plan(&options);
        let mut num_frames = 0_u64;
        let announced = plan.remaining();
        let info = allocation_counter::measure(|| {
            for step in plan.by_ref() {
                num_frames += u64::from(matches!(black_box(step), Step::Emit(_)));
            }
        });
        assert_eq!(num_frames, announced);
        assert_eq!(
            info.count_total, 0,
            "shuffle {shuffle}, a pool of {episode_pool_size}"
        );
    }
}

#[test]
fn skips_and_previews_allocate_nothing() {
    let mut plan = plan(&PlanOptions::default());
    let info = allocation_counter::measure(|| {
        plan.by_ref().take(100).for_each(|step| _ = black_box(step));
        while plan.skip_emissions(1000) > 0 {
            black_box(plan.next_admissions(8).sum::<usize>());
            plan.by_ref().take(100).for_each(|step| _ = black_box(step));
        }
    });
    assert_eq!(info.count_total, 0);
}

#[test]
fn the_counter_counts() {
    let info = allocation_counter::measure(|| drop(black_box(vec![0_u8; 100])));
    assert_eq!(info.count_total, 1);
}
