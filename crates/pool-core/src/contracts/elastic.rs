//! An epoch that one topology begins and others go on with.

use super::setup::{Setup, Violation, broken};
use crate::coverage::{Coverage, CoverageReport};
use crate::ownership::{ShardUnit, Share};
use crate::plan::{Plan, Step};
use crate::seed::absorb;
use crate::selection::{Progress, Selection};

/// An epoch that the setup's topology begins, and other topologies take up one after the other, emits every selected frame once,
/// wherever each consumer stops.
///
/// `topologies` are numbers of ranks, and of each rank's workers. Every consumer of the first emits as much of its share as the setup's seed
/// happens to say; then the next topology shares out what is left; the last one emits all. What is left depends on nothing else: it is
/// the same when it is worked out twice, and equals what was not emitted, episode by episode. Where episodes are shared
/// out, shares differ from the ideal by the longest episode at most.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
pub fn elastic_covers_once(setup: &Setup, topologies: &[(usize, usize)]) -> Result<(), Violation> {
    let broken = broken("elastic_covers_once");
    let selected = setup.selection()?;
    let mut emitted = Coverage::default();
    let mut rest = Some(selected.clone());
    let first = (setup.world_size, setup.num_workers);
    let topologies: Vec<_> = std::iter::once(first)
        .chain(topologies.iter().copied())
        .collect();
    for (leg, &(world_size, num_workers)) in topologies.iter().enumerate() {
        let Some(left) = rest else { break };
        let shares = Share::fleet(&left, world_size, num_workers, &setup.sharding)?;
        if setup.sharding.unit == ShardUnit::Episode {
            check_balance(&left, &shares).map_err(&broken)?;
        }
        let is_last = leg + 1 == topologies.len();
        let mut progress = Vec::new();
        let mut in_leg = Coverage::default();
        for (consumer, share) in shares.iter().enumerate() {
            let chance = [leg as u64, consumer as u64]
                .into_iter()
                .fold(setup.options.seed, absorb);
            let stop = if is_last {
                share.num_frames()
            } else {
                chance % (share.num_frames() + 1)
            };
            progress.push(stop);
            let frames = Plan::new(share, &setup.options)?.filter_map(|step| match step {
                Step::Emit(emission) => Some(emission),
                _ => None,
            });
            for emission in frames.take(usize::try_from(stop).unwrap_or(usize::MAX)) {
                in_leg.record(emission.episode_index, emission.frame_index);
            }
        }
        let progress = Progress {
            world_size,
            num_workers,
            sharding: setup.sharding,
            options: setup.options,
            emitted: progress,
        };
        rest = left.rest(&progress)?;
        let again = left.rest(&progress)?;
        if rest.as_ref().map(Selection::episodes) != again.as_ref().map(Selection::episodes) {
            return Err(broken(format!(
                "what is left after {leg} changes is not the same twice"
            )));
        }
        let mut both = in_leg;
        both.merge(rest.as_ref().map(Selection::coverage).unwrap_or_default());
        let report = CoverageReport::new(left.coverage(), both);
        if !report.exactly_once {
            return Err(broken(format!(
                "what was emitted and what is left after {leg} changes: {report}"
            )));
        }
        emitted.merge(in_leg);
    }
    let report = CoverageReport::new(selected.coverage(), emitted);
    if rest.is_some() || !report.exactly_once {
        return Err(broken(format!("over all topologies: {report}")));
    }
    Ok(())
}

fn check_balance(left: &Selection, shares: &[Share]) -> Result<(), String> {
    let longest = left
        .episodes()
        .iter()
        .map(|episode| episode.num_frames())
        .max();
    let longest = u128::from(longest.unwrap_or(0));
    let num_consumers = shares.len() as u128;
    for (consumer, share) in shares.iter().enumerate() {
        let difference =
            (u128::from(share.num_frames()) * num_consumers).abs_diff(left.num_frames().into());
        if difference > longest * num_consumers {
            return Err(format!(
                "consumer {consumer} of {num_consumers} gets {} of {} frames, with episodes of {longest} at most",
                share.num_frames(),
                left.num_frames(),
            ));
        }
    }
    Ok(())
}
