//! The contracts, each a property over random datasets, filters, topologies and options.

use pool_core::contracts::{self, Setup, Violation};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::setups::setups;

fn check(
    contract: fn(&Setup) -> Result<(), Violation>,
    setup: &Setup,
) -> Result<(), TestCaseError> {
    contract(setup).map_err(|violation| TestCaseError::fail(violation.to_string()))
}

proptest! {
    #[test]
    fn exactly_once(setup in setups()) {
        check(contracts::exactly_once, &setup)?;
    }

    #[test]
    fn order_is_a_function(setup in setups()) {
        check(contracts::order_is_a_function, &setup)?;
    }

    #[test]
    fn epochs_reshuffle(setup in setups()) {
        check(contracts::epochs_reshuffle, &setup)?;
    }

    #[test]
    fn consumers_decorrelate(setup in setups()) {
        check(contracts::consumers_decorrelate, &setup)?;
    }

    #[test]
    fn pool_is_bounded(setup in setups()) {
        check(contracts::pool_is_bounded, &setup)?;
    }

    #[test]
    fn elastic_covers_once(
        setup in setups(),
        topologies in prop::collection::vec((1..=6_usize, 0..=4_usize), 1..4),
    ) {
        let checked = contracts::elastic_covers_once(&setup, &topologies);
        checked.map_err(|violation| TestCaseError::fail(violation.to_string()))?;
    }

    #[test]
    fn resume_equals_suffix(setup in setups()) {
        check(contracts::resume_equals_suffix, &setup)?;
    }
}

proptest! {
    // A statistic: with fixed seeds it either always passes or never.
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn uniform_over_the_pool(setup in setups()) {
        check(contracts::uniform_over_the_pool, &setup)?;
    }
}

#[test]
fn every_world_size_and_number_of_workers_covers_once() {
    let lengths = [7, 1, 30, 1, 1, 12, 5, 90, 1, 3, 3, 8, 41, 2, 1, 60];
    for world_size in 1..=9 {
        for num_workers in 0..=5 {
            let mut setup = Setup::new(&lengths, world_size, num_workers);
            setup.options.episode_pool_size = 3;
            contracts::exactly_once(&setup).unwrap();
            contracts::resume_equals_suffix(&setup).unwrap();
            contracts::elastic_covers_once(&setup, &[(3, 1), (1, 0)]).unwrap();
        }
    }
}

#[test]
fn an_invalid_setup_is_told_from_a_broken_contract() {
    let violation = contracts::exactly_once(&Setup::new(&[], 1, 0)).unwrap_err();
    assert!(matches!(violation, Violation::Invalid(_)), "{violation}");
}
