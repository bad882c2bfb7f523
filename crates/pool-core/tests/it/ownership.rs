//! Shares are disjoint, complete and balanced, and what is odd about them is said.

use pool_core::contracts::Setup;
use pool_core::{Error, Filter, Selection, ShardUnit, Sharding, Share, Topology, Warning};
use proptest::prelude::*;

use crate::setups::{episodes, select, setups};

fn topologies(world_size: usize, num_workers: usize) -> Vec<Topology> {
    let mut topologies = Vec::new();
    for rank in 0..world_size {
        for worker in 0..num_workers.max(1) {
            topologies.push(Topology::new(rank, world_size, worker, num_workers).unwrap());
        }
    }
    topologies
}

fn shares(
    selection: &Selection,
    world_size: usize,
    num_workers: usize,
    sharding: Sharding,
) -> Vec<Share> {
    let topologies = topologies(world_size, num_workers);
    topologies
        .iter()
        .map(|topology| Share::new(selection, topology, &sharding).unwrap())
        .collect()
}

fn positions(shares: &[Share]) -> Vec<Vec<usize>> {
    shares
        .iter()
        .map(|share| share.positions().collect())
        .collect()
}

fn by_file(max_num_shards: Option<usize>) -> Sharding {
    Sharding {
        unit: ShardUnit::File,
        max_num_shards,
    }
}

proptest! {
    #[test]
    fn a_fleets_shares_are_those_of_its_consumers(setup in setups()) {
        let selection = Selection::new(&setup.episodes, &setup.filter).unwrap();
        let fleet = Share::fleet(&selection, setup.world_size, setup.num_workers, &setup.sharding).unwrap();
        let each = shares(&selection, setup.world_size, setup.num_workers, setup.sharding);
        let known = |shares: &[Share]| -> Vec<_> {
            let known = |share: &Share| (share.topology(), share.num_frames(), share.warnings().to_vec());
            shares.iter().map(known).collect()
        };
        prop_assert_eq!(positions(&fleet), positions(&each));
        prop_assert_eq!(known(&fleet), known(&each));
    }
}

#[test]
fn a_fleet_beyond_counting_is_an_error() {
    let error = Share::fleet(&select(&[3]), 1 << 40, 2, &Sharding::default()).unwrap_err();
    assert!(
        error.to_string().contains("2199023255552 consumers"),
        "{error}"
    );
}

#[test]
fn the_worked_example_of_episodes() {
    let shares = shares(&select(&[4, 3, 8, 5, 2, 6]), 2, 2, Sharding::default());
    assert_eq!(
        positions(&shares),
        [vec![0, 1], vec![2], vec![3], vec![4, 5]]
    );
    assert_eq!(
        shares.iter().map(Share::num_frames).collect::<Vec<_>>(),
        [7, 8, 5, 8]
    );
}

#[test]
fn the_worked_example_of_files() {
    let mut dataset = episodes(&[4, 3, 8, 5, 2, 6], 1);
    for (episode, file) in dataset.iter_mut().zip([0, 0, 1, 2, 2, 3]) {
        episode.file = file;
    }
    let selection = Selection::new(&dataset, &Filter::default()).unwrap();
    let shares = shares(&selection, 2, 2, by_file(None));
    assert_eq!(
        positions(&shares),
        [vec![0, 1], vec![3, 4], vec![2], vec![5]]
    );
    assert_eq!(
        shares.iter().map(Share::num_frames).collect::<Vec<_>>(),
        [7, 7, 8, 6]
    );
    assert!(shares.iter().all(|share| share.warnings().is_empty()));
}

#[test]
fn a_long_episode_leaves_nobody_idle() {
    assert_eq!(
        positions(&shares(
            &select(&[1000, 1, 1, 1]),
            4,
            0,
            Sharding::default()
        )),
        [vec![0], vec![1], vec![2], vec![3]],
    );
    assert_eq!(
        positions(&shares(
            &select(&[1, 1, 1, 1, 1000]),
            2,
            2,
            Sharding::default()
        )),
        [vec![0, 1], vec![2], vec![3], vec![4]],
    );
}

#[test]
fn eight_files_keep_any_number_of_workers_busy() {
    // Earlier loaders divide the files first for shuffling and then for workers; then one of two workers reads everything.
    let selection = Selection::new(&episodes(&[300; 32], 4), &Filter::default()).unwrap();
    for num_workers in [1, 2, 3, 8, 16] {
        let shares = shares(&selection, 2, num_workers, Sharding::default());
        let least = shares.iter().map(Share::num_frames).min().unwrap();
        assert!(
            least >= 300 * (32 / shares.len() as u64),
            "{num_workers} workers: one gets {least}"
        );
        assert!(shares.iter().all(|share| share.warnings().is_empty()));
    }
}

#[test]
fn fewer_episodes_than_consumers_are_spread_over_the_ranks() {
    let shares = shares(&select(&[5, 5, 5]), 2, 4, Sharding::default());
    let owners: Vec<_> = shares.iter().map(Share::num_episodes).collect();
    assert_eq!(owners, [1, 0, 1, 0, 0, 1, 0, 0]);
    let expected = Warning::IdleConsumers {
        unit: ShardUnit::Episode,
        num_units: 3,
        num_consumers: 8,
        num_idle: 5,
    };
    assert_eq!(
        expected.to_string(),
        "5 of 8 consumers (ranks times workers) own nothing and will emit nothing, since there are only 3 selected episodes; use \
         fewer workers or ranks, or select more episodes",
    );
    for share in shares {
        assert_eq!(share.warnings(), std::slice::from_ref(&expected));
    }
}

#[test]
fn files_that_do_not_divide_by_the_ranks_are_warned_about() {
    let shares = shares(&select(&[10; 7]), 2, 4, by_file(None));
    assert_eq!(
        shares[0].warnings(),
        [
            Warning::ShardsNotDivisible {
                num_shards: 7,
                world_size: 2,
            },
            Warning::IdleConsumers {
                unit: ShardUnit::File,
                num_units: 7,
                num_consumers: 8,
                num_idle: 1,
            },
        ],
    );
    assert_eq!(
        shares[0].warnings()[0].to_string(),
        "7 shards of data files cannot be dealt evenly to 2 ranks: some ranks get one more than others and end the epoch later; \
         choose episodes as the shard unit, or a world_size that divides 7, or a max_num_shards that world_size divides",
    );
    assert_eq!(
        shares[0].warnings()[1].to_string(),
        "1 of 8 consumers (ranks times workers) own nothing and will emit nothing, since there are only 7 shards of data files; \
         use fewer workers or ranks, or choose episodes as the shard unit",
    );
}

#[test]
fn files_can_be_grouped_into_fewer_shards() {
    let shares = shares(&select(&[10; 7]), 3, 0, by_file(Some(3)));
    assert_eq!(positions(&shares), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
    assert!(shares[0].warnings().is_empty());
}

#[test]
fn max_num_shards_is_not_ignored_in_silence() {
    let sharding = |max_num_shards| Sharding {
        max_num_shards: Some(max_num_shards),
        ..Sharding::default()
    };
    let share = Share::new(&select(&[10; 7]), &Topology::single(), &sharding(3)).unwrap();
    assert_eq!(
        share.warnings(),
        [Warning::MaxNumShardsIgnored { max_num_shards: 3 }]
    );
    assert_eq!(
        share.warnings()[0].to_string(),
        "max_num_shards = 3 has no effect, since episodes are shared out one by one; leave it out, or choose data files as the \
         shard unit",
    );
    let none = Share::new(&select(&[10; 7]), &Topology::single(), &sharding(0));
    assert_eq!(none.unwrap_err(), Error::NoShards);
}

#[test]
fn enormous_numbers_of_consumers_cost_nothing() {
    for topology in [
        Topology::new(usize::MAX - 1, usize::MAX, 0, 0).unwrap(),
        Topology::new(0, 1, usize::MAX - 1, usize::MAX).unwrap(),
    ] {
        for sharding in [Sharding::default(), by_file(None)] {
            let share = Share::new(&select(&[3, 4]), &topology, &sharding).unwrap();
            assert!(share.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn shares_are_disjoint_and_complete(setup in setups()) {
        let Setup { episodes, filter, world_size, num_workers, sharding, .. } = setup;
        let selection = Selection::new(&episodes, &filter).unwrap();
        let shares = shares(&selection, world_size, num_workers, sharding);
        let mut all: Vec<usize> = positions(&shares).concat();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..selection.episodes().len()));

        let num_idle = shares.iter().filter(|share| share.is_empty()).count();
        let warned = shares[0].warnings().iter().find_map(|warning| match warning {
            Warning::IdleConsumers { num_idle, .. } => Some(*num_idle),
            _ => None,
        });
        prop_assert_eq!(warned.unwrap_or(0), num_idle);
    }

    #[test]
    fn runs_of_episodes_are_contiguous_and_balanced(setup in setups()) {
        let Setup { episodes, filter, world_size, num_workers, .. } = setup;
        let selection = Selection::new(&episodes, &filter).unwrap();
        let shares = shares(&selection, world_size, num_workers, Sharding::default());
        // Rank by rank, and each rank's workers in turn, the runs follow one another.
        prop_assert!(positions(&shares).concat().into_iter().eq(0..selection.episodes().len()));
        if selection.episodes().len() >= shares.len() {
            prop_assert!(shares.iter().all(|share| !share.is_empty()));
        } else {
            prop_assert!(shares.iter().all(|share| share.num_episodes() <= 1));
        }
        // |share - T / C| <= longest, in units of 1 / C of a frame.
        let num_consumers = shares.len() as u64;
        let longest = selection.episodes().iter().map(|episode| episode.num_frames()).max().unwrap();
        for share in &shares {
            let off = (share.num_frames() * num_consumers).abs_diff(selection.num_frames());
            prop_assert!(off <= longest * num_consumers, "{} of {}", share.num_frames(), selection.num_frames());
        }
    }
}
