//! The order is a function of its inputs, and differs wherever one of these does.

use std::collections::BTreeMap;

use super::reader::Reader;
use super::setup::{Setup, Violation, broken};
use crate::ownership::{Sharding, Share};
use crate::plan::{Emission, Plan, PlanOptions, Step};
use crate::selection::Selection;
use crate::topology::Topology;

/// Two orders with at least this many bits of chance in them agree with odds of 2^-64: such a thing counts as broken.
const ENOUGH_BITS: f64 = 64.0;

/// The same inputs give the same steps: when planned again, on another thread, while other consumers' plans advance in
/// between, from a copy, and whatever is asked of the plan on the way. Without shuffle it is the dataset's order.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
///
/// # Panics
///
/// If no thread can be started.
pub fn order_is_a_function(setup: &Setup) -> Result<(), Violation> {
    let broken = broken("order_is_a_function");
    let alone: Vec<Vec<Step>> = setup.plans()?.into_iter().map(Iterator::collect).collect();

    let elsewhere = std::thread::scope(|scope| {
        let thread = scope.spawn(|| -> Result<Vec<Vec<Step>>, Violation> {
            Ok(setup.plans()?.into_iter().map(Iterator::collect).collect())
        });
        thread.join().expect("planning does not panic")
    })?;
    if elsewhere != alone {
        return Err(broken("the steps differ on another thread".to_owned()));
    }

    let mut plans = setup.plans()?;
    let mut in_turns = vec![Vec::new(); plans.len()];
    let mut is_over = false;
    while !is_over {
        is_over = true;
        for (plan, steps) in plans.iter_mut().zip(&mut in_turns) {
            // A copy that runs on, and questions, must leave no trace.
            let mut copy = plan.clone();
            copy.skip_emissions(1);
            copy.next();
            let announced = plan.next_admissions(1).next();
            let step = plan.next();
            if let Some(Step::Admit { episode_index }) = step
                && announced != Some(episode_index)
            {
                return Err(broken(format!(
                    "{announced:?} was announced and {episode_index} admitted"
                )));
            }
            is_over &= step.is_none();
            steps.extend(step);
        }
    }
    if in_turns != alone {
        return Err(broken(
            "the steps differ when consumers take turns".to_owned(),
        ));
    }

    if !setup.options.shuffle {
        for (share, steps) in setup.shares()?.iter().zip(&alone) {
            let in_order = share.episodes().flat_map(|episode| {
                episode
                    .frames()
                    .map(|frame_index| (episode.episode_index(), frame_index))
            });
            if !emissions(steps).map(frame).eq(in_order) {
                return Err(broken(
                    "unshuffled, the frames do not come in dataset order".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

/// Two epochs have different orders, for every consumer whose share leaves enough to chance: at least 64 bits, so that equal
/// orders are no accident. Without shuffle there is nothing to check.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
pub fn epochs_reshuffle(setup: &Setup) -> Result<(), Violation> {
    let broken = broken("epochs_reshuffle");
    if !setup.options.shuffle {
        return Ok(());
    }
    for (consumer, share) in setup.shares()?.iter().enumerate() {
        let mut orders = BTreeMap::new();
        for later in 0..3 {
            let epoch = setup.options.epoch.wrapping_add(later);
            let options = PlanOptions {
                epoch,
                ..setup.options
            };
            let Some(order) = prefix(share, &options)? else {
                break;
            };
            if let Some(other) = orders.insert(order, epoch) {
                return Err(broken(format!(
                    "consumer {consumer} has one order in epochs {other} and {epoch}"
                )));
            }
        }
    }
    Ok(())
}

/// Two consumers would bring the same episodes into different orders. So that they can be compared, each is given the whole
/// selection here, and the beginning of its order is looked at, up to 64 bits of chance; a selection that has less is not
/// judged. Without shuffle there is nothing to check.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
pub fn consumers_decorrelate(setup: &Setup) -> Result<(), Violation> {
    let broken = broken("consumers_decorrelate");
    if !setup.options.shuffle {
        return Ok(());
    }
    let whole = whole_share(&setup.selection()?)?;
    let mut orders = BTreeMap::new();
    for topology in setup.consumers()? {
        let share = whole.clone().seen_by(topology);
        let Some(order) = prefix(&share, &setup.options)? else {
            break;
        };
        let consumer = topology.consumer();
        if let Some(other) = orders.insert(order, consumer) {
            return Err(broken(format!(
                "consumers {other} and {consumer} have one order"
            )));
        }
    }
    Ok(())
}

fn whole_share(selection: &Selection) -> Result<Share, Violation> {
    Ok(Share::new(
        selection,
        &Topology::single(),
        &Sharding::default(),
    )?)
}

/// The beginning of an order, up to [`ENOUGH_BITS`] of chance; `None` if it has less.
fn prefix(share: &Share, options: &PlanOptions) -> Result<Option<Vec<(usize, usize)>>, Violation> {
    let lengths: BTreeMap<_, _> = share
        .episodes()
        .map(|episode| (episode.episode_index(), episode.num_frames()))
        .collect();
    let (mut bits, mut pooled) = (0.0, 0);
    let mut order = Vec::new();
    for step in Plan::new(share, options)? {
        match step {
            Step::Admit { episode_index } => pooled += lengths[&episode_index],
            Step::Emit(emission) => {
                bits += (pooled as f64).log2();
                pooled -= 1;
                order.push(frame(emission));
                if bits >= ENOUGH_BITS {
                    return Ok(Some(order));
                }
            }
            Step::Evict { .. } => {}
        }
    }
    Ok(None)
}

/// A plan that skips emissions goes on as one that has emitted them, wherever the skip begins and ends. The steps after it suit
/// a reader who has followed all before, and on a new plan one who starts there: nothing is emitted that was not admitted, nothing
/// is evicted that is not held, and the pool keeps its bound.
///
/// It is checked from up to 40 places, spread over each consumer's epoch.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
pub fn resume_equals_suffix(setup: &Setup) -> Result<(), Violation> {
    let broken = broken("resume_equals_suffix");
    let selection = setup.selection()?;
    let new_reader = Reader::new(&selection, setup.pool_size());
    for plan in setup.plans()? {
        let total = plan.remaining();
        let whole: Vec<Step> = plan.clone().collect();
        let whole: Vec<Emission> = emissions(&whole).collect();
        for start in places(total) {
            // Three ways to the same place: one skip, two skips, and a skip in the middle of an iteration.
            let half = start / 2;
            let mut following = plan.clone();
            let mut reader = new_reader.clone();
            while total - following.remaining() < half {
                let step = following
                    .next()
                    .ok_or_else(|| broken("the plan ended early".to_owned()))?;
                reader.follow(step, false).map_err(&broken)?;
            }
            let ways = [
                (plan.clone(), new_reader.clone(), vec![start]),
                (plan.clone(), new_reader.clone(), vec![half, start - half]),
                (following, reader, vec![start - half]),
            ];
            for (mut plan, mut reader, skips) in ways {
                for n in skips {
                    let before = plan.remaining();
                    let skipped = plan.skip_emissions(n);
                    if skipped != n.min(before) || plan.remaining() != before - skipped {
                        let left = plan.remaining();
                        return Err(broken(format!(
                            "{skipped} of {n} were skipped, {left} of {before} are left"
                        )));
                    }
                }
                let mut expected = whole.iter().skip(start as usize);
                for step in plan {
                    reader.follow(step, true).map_err(&broken)?;
                    if let Step::Emit(emission) = step
                        && Some(&emission) != expected.next()
                    {
                        return Err(broken(format!(
                            "after {start} of {total} frames, {emission:?} is not the next"
                        )));
                    }
                }
                if expected.next().is_some() || reader.num_held() > 0 {
                    return Err(broken(format!(
                        "after {start} of {total} frames, the plan ends early"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Up to 40 numbers of emissions, from none to one more than all.
fn places(total: u64) -> impl Iterator<Item = u64> {
    let step = (total / 36).max(1);
    let spread = (0..total).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    spread.chain(total.saturating_sub(1)..=total + 1)
}

fn emissions(steps: &[Step]) -> impl Iterator<Item = Emission> + '_ {
    steps.iter().filter_map(|step| match step {
        Step::Emit(emission) => Some(*emission),
        Step::Admit { .. } | Step::Evict { .. } => None,
    })
}

fn frame(emission: Emission) -> (usize, usize) {
    (emission.episode_index, emission.frame_index)
}
