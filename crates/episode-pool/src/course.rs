//! One worker's way through an epoch: whose samples it gives, batch by batch, as the steps of plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use pool_core::{Coverage, Plan, PlanOptions, Share, Step};
use resume::{Fleet, Turn, Turns};

/// The steps of a worker's turns, in order.
///
/// Most workers are one consumer, and this is its plan. A worker that serves several logical consumers goes from one's plan to
/// another's with every batch, and passes over the batches that others serve.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    consumers: Consumers,
    turns: TurnsOf,
    /// The plans of the consumers that have had a turn.
    plans: BTreeMap<usize, Open>,
    /// The consumer whose turn it is, and the samples that are left of it.
    current: Option<(usize, u64)>,
    remaining: u64,
}

/// The consumers of a fleet, and what steers their orders.
#[derive(Debug, Clone)]
pub(crate) struct Consumers {
    pub(crate) shares: Arc<[Share]>,
    /// Checked for every share.
    pub(crate) options: PlanOptions,
}

#[derive(Debug, Clone)]
enum TurnsOf {
    /// All that is left of one consumer, as a single turn.
    One(Option<Turn>),
    Worker(Arc<Fleet>, Turns),
}

/// A plan, and how far it has come.
#[derive(Debug, Clone)]
struct Open {
    plan: Plan,
    position: u64,
}

impl Course {
    /// The samples of a single share after the first `samples` of it.
    pub(crate) fn of_one(share: &Share, options: PlanOptions, samples: u64) -> Self {
        let num_frames = share.num_frames();
        let start = samples.min(num_frames);
        let turn = Turn {
            consumer: 0,
            start,
            len: num_frames - start,
        };
        Self {
            consumers: Consumers {
                shares: Arc::new([share.clone()]),
                options,
            },
            turns: TurnsOf::One((turn.len > 0).then_some(turn)),
            plans: BTreeMap::new(),
            current: None,
            remaining: turn.len,
        }
    }

    /// The samples of a rank's worker in the batches that the rank takes from `first_batch` on.
    pub(crate) fn of_worker(
        consumers: Consumers,
        fleet: &Arc<Fleet>,
        (rank, worker): (usize, usize),
        first_batch: u64,
    ) -> Self {
        Self {
            consumers,
            turns: TurnsOf::Worker(
                Arc::clone(fleet),
                fleet.worker_turns(rank, worker, first_batch),
            ),
            plans: BTreeMap::new(),
            current: None,
            remaining: fleet.num_samples(rank, worker, first_batch),
        }
    }

    /// The number of samples still to come.
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The digest of the frames still to come.
    pub(crate) fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for step in self.clone() {
            if let Step::Emit(emission) = step {
                coverage.record(emission.episode_index, emission.frame_index);
            }
        }
        coverage
    }

    /// The next turn, with its plan where it begins; `None` if there is none.
    fn take_turn(&mut self) -> Option<(usize, u64)> {
        let (turn, reach) = match &mut self.turns {
            TurnsOf::One(turn) => {
                let turn = turn.take()?;
                (turn, turn.start + turn.len)
            }
            TurnsOf::Worker(fleet, turns) => {
                let turn = turns.next()?;
                (turn, fleet.reach(turn.consumer))
            }
        };
        let Consumers { shares, options } = &self.consumers;
        let open = self.plans.entry(turn.consumer).or_insert_with(|| {
            let plan = Plan::new(&shares[turn.consumer], options)
                .expect("the options were checked for every share");
            Open {
                plan: plan.with_length(reach),
                position: 0,
            }
        });
        open.plan.skip_emissions(turn.start - open.position);
        open.position = turn.start + turn.len;
        Some((turn.consumer, turn.len))
    }
}

impl Iterator for Course {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            let Some((consumer, left)) = &mut self.current else {
                self.current = Some(self.take_turn()?);
                continue;
            };
            let plan = &mut self
                .plans
                .get_mut(consumer)
                .expect("a turn opens its plan")
                .plan;
            if *left == 0 {
                // An exhausted episode is let go of now, whenever this consumer's next turn may be.
                if let Some(step) = plan.next_owed() {
                    return Some(step);
                }
                self.current = None;
                continue;
            }
            let step = plan.next();
            if matches!(step, Some(Step::Emit(_))) {
                *left -= 1;
                self.remaining -= 1;
            }
            return step;
        }
    }
}
