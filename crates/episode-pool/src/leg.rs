//! A leg: an epoch, or what is left of one, under one topology and one set of options.

use std::sync::Arc;

use pool_core::{Plan, PlanOptions, Progress, Selection, Sharding, Share, Topology};
use resume::{Batching, EpochEnd, Fleet, State};

use crate::course::{Consumers, Course};
use crate::epoch::Owned;
use crate::pool::Dataset;
use crate::state_dict::{
    Details, Difference, Differences, EarlierLeg, OrderOptions, StateDict, listed,
};
use crate::{Error, Warning};

/// The options of a run that its batches depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RunOptions {
    pub(crate) order: OrderOptions,
    pub(crate) batch_size: u64,
}

impl RunOptions {
    fn workers_per_rank(&self) -> usize {
        self.order.num_workers.max(1)
    }

    /// Whether the batches are those of one rank after the other, whatever the topology.
    fn is_canonical(&self) -> bool {
        self.order.canonical_consumers.is_some()
    }

    /// Whether an epoch goes on in the same order, if these options come after `earlier`.
    fn go_on_with(&self, earlier: &Self) -> bool {
        let topology = |options: &Self| {
            (!options.is_canonical())
                .then_some((options.order.world_size, options.workers_per_rank()))
        };
        let rest = |options: &Self| Self {
            order: OrderOptions {
                world_size: 1,
                num_workers: 1,
                ..options.order
            },
            ..*options
        };
        topology(self) == topology(earlier) && rest(self) == rest(earlier)
    }

    fn has_topology_of(&self, other: &Self) -> bool {
        let topology = |options: &Self| (options.order.world_size, options.workers_per_rank());
        topology(self) == topology(other)
    }

    /// Numbers of ranks and workers by which the frames are shared out.
    fn sharers(&self) -> (usize, usize) {
        match self.order.canonical_consumers {
            Some(consumers) => (consumers, 0),
            None => (self.order.world_size, self.order.num_workers),
        }
    }

    fn sharding(&self) -> Sharding {
        Sharding {
            unit: self.order.shard_unit,
            max_num_shards: self.order.max_num_shards,
        }
    }

    fn plan(&self, epoch: u64) -> PlanOptions {
        PlanOptions {
            seed: self.order.seed,
            epoch,
            episode_pool_size: self.order.episode_pool_size,
            shuffle: self.order.shuffle,
            admission: self.order.admission,
            ..PlanOptions::default()
        }
    }
}

/// Who owns what of a selection, and how it becomes batches.
#[derive(Debug, Clone)]
pub(crate) struct Lineup {
    pub(crate) shares: Arc<[Share]>,
    pub(crate) fleet: Arc<Fleet>,
}

impl Lineup {
    /// All consumers of a run over a selection; checks the options of all their plans.
    pub(crate) fn new(selection: &Selection, options: &RunOptions) -> Result<Self, Error> {
        let (world_size, num_workers) = options.sharers();
        let shares = Share::fleet(selection, world_size, num_workers, &options.sharding())?;
        for share in &shares {
            Plan::check(share, &options.plan(0))?;
        }
        let frames: Vec<u64> = shares.iter().map(Share::num_frames).collect();
        let batching = Batching {
            batch_size: options.batch_size,
            drop_last: options.order.drop_last,
            epoch_end: options.order.epoch_end,
        };
        let make = if options.is_canonical() {
            Fleet::canonical
        } else {
            Fleet::new
        };
        let fleet = make(
            &frames,
            options.order.world_size,
            options.workers_per_rank(),
            batching,
        )?;
        Ok(Self {
            shares: shares.into(),
            fleet: Arc::new(fleet),
        })
    }
}

/// An epoch, or what is left of one, before it is run.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    pub(crate) epoch: u64,
    options: RunOptions,
    rank: usize,
    lineup: Lineup,
    /// The batches of `lineup` that every rank has taken already, or all that it takes.
    first_batch: u64,
    /// What other legs of this epoch took before, in their order.
    earlier: Vec<EarlierLeg>,
    /// The batches that ranks had taken since the run began. A rank that takes fewer in an epoch waits for the others, so
    /// that this is the same for every rank.
    consumed_before: u64,
    pub(crate) warnings: Vec<Warning>,
}

impl Leg {
    /// A whole epoch.
    pub(crate) fn whole(lineup: Lineup, options: RunOptions, rank: usize, epoch: u64) -> Self {
        let per_epoch = lineup.fleet.num_steps();
        Self {
            epoch,
            options,
            rank,
            lineup,
            first_batch: 0,
            earlier: Vec::new(),
            consumed_before: epoch.saturating_mul(per_epoch),
            warnings: Vec::new(),
        }
    }

    /// The rest of an epoch of which the rank has taken `batches` in just this way.
    fn starting_at(mut self, batches: u64) -> Self {
        self.first_batch = batches;
        self.consumed_before = self.consumed_before.saturating_add(batches);
        self
    }

    /// Where a state leads.
    pub(crate) fn after(
        dataset: &Dataset,
        lineup: Lineup,
        options: RunOptions,
        rank: usize,
        state: &StateDict,
        strict: bool,
    ) -> Result<Self, Error> {
        let mut differences = Differences::default();
        differences.note("batch_size", state.state.batch_size, options.batch_size);
        let details = match &state.details {
            None if differences.0.is_empty() => {
                let consumed = state.state.batches_consumed;
                let (epoch, batch) = lineup.fleet.locate(rank, consumed)?;
                return Ok(Self::whole(lineup, options, rank, epoch).starting_at(batch));
            }
            None => {
                refuse(&differences.0, strict, true)?;
                &details_of_bare(dataset, options, &state.state)?
            }
            Some(details) => details,
        };

        let mut saved = Saved::new(state, details);
        let here = dataset.fingerprint();
        let of_datasets = Differences::of_datasets(&details.dataset, here);
        if !of_datasets.0.is_empty() {
            // What was consumed of other frames cannot be told; but no frame of the epoch may have been consumed.
            refuse(&of_datasets.0, strict, saved.legs.is_empty())?;
        }
        differences.0.extend(of_datasets.0);
        let or_none =
            |revision: &Option<String>| revision.clone().unwrap_or_else(|| "none".to_owned());
        differences.note(
            "revision",
            or_none(&details.dataset.revision),
            or_none(&here.revision),
        );
        let of_options = Differences::of_options(&details.options, &options.order);
        differences.0.extend(of_options.0);
        refuse(&differences.0, strict, true)?;

        let mut leg = saved.go_on(dataset, lineup, options, rank)?;
        leg.consumed_before = state.state.batches_consumed;
        if !differences.0.is_empty() {
            leg.warnings.push(Warning::StateDiffers {
                differences: differences.0,
            });
        }
        Ok(leg)
    }

    /// The batches of this leg that a rank still takes.
    pub(crate) fn num_batches(&self) -> u64 {
        let all = self.lineup.fleet.num_batches(self.rank);
        all.saturating_sub(self.first_batch)
    }

    pub(crate) fn num_workers(&self) -> usize {
        self.options.workers_per_rank()
    }

    /// The worker that gives the first batch.
    pub(crate) fn first_worker(&self) -> usize {
        self.lineup.fleet.worker_of(self.rank, self.first_batch)
    }

    /// The way of one of the rank's workers.
    pub(crate) fn course(&self, worker: usize) -> Course {
        let consumers = Consumers {
            shares: Arc::clone(&self.lineup.shares),
            options: self.options.plan(self.epoch),
        };
        let place = (self.rank, worker);
        Course::of_worker(consumers, &self.lineup.fleet, place, self.first_batch)
    }

    /// The lengths of one worker's batches.
    pub(crate) fn turns(&self, worker: usize) -> resume::Turns {
        self.lineup
            .fleet
            .worker_turns(self.rank, worker, self.first_batch)
    }

    /// The samples that one worker still gives.
    pub(crate) fn num_samples(&self, worker: usize) -> u64 {
        self.lineup
            .fleet
            .num_samples(self.rank, worker, self.first_batch)
    }

    /// The samples that were passed over to get here, by one worker.
    pub(crate) fn skipped(&self, worker: usize) -> u64 {
        let fleet = &self.lineup.fleet;
        fleet.num_samples(self.rank, worker, 0)
            - fleet.num_samples(self.rank, worker, self.first_batch)
    }

    /// The frames that a worker is to emit in all of the leg.
    pub(crate) fn owned(&self, worker: usize) -> Owned {
        let consumer = self.rank * self.num_workers() + worker;
        match self.lineup.shares.get(consumer) {
            Some(share) if !self.options.is_canonical() => Owned::Share(share.clone()),
            _ => {
                let whole = Self {
                    first_batch: 0,
                    ..self.clone()
                };
                Owned::Course(Box::new(whole.course(worker)))
            }
        }
    }

    /// The state after `batches` of this leg.
    pub(crate) fn state_dict(&self, dataset: &Dataset, batches: u64) -> StateDict {
        self.state_of(
            dataset,
            batches,
            self.epoch,
            self.first_batch.saturating_add(batches),
            self.earlier.clone(),
        )
    }

    /// The state after all of this leg: at the start of the next epoch.
    pub(crate) fn state_dict_at_end(&self, dataset: &Dataset) -> StateDict {
        let steps = self.lineup.fleet.num_steps();
        self.state_of(
            dataset,
            steps.saturating_sub(self.first_batch),
            self.epoch.saturating_add(1),
            0,
            Vec::new(),
        )
    }

    fn state_of(
        &self,
        dataset: &Dataset,
        batches: u64,
        epoch: u64,
        batches_in_epoch: u64,
        earlier: Vec<EarlierLeg>,
    ) -> StateDict {
        StateDict {
            state: State {
                batches_consumed: self.consumed_before.saturating_add(batches),
                batch_size: self.options.batch_size,
            },
            details: Some(Details {
                epoch,
                batches_in_epoch,
                options: self.options.order,
                earlier,
                dataset: dataset.fingerprint().clone(),
            }),
        }
    }
}

/// Differences are errors where they may not be passed over, or shall not be.
fn refuse(differences: &[Difference], strict: bool, can_be_passed_over: bool) -> Result<(), Error> {
    if differences.is_empty() || (!strict && can_be_passed_over) {
        return Ok(());
    }
    Err(Error::StateDiffers {
        differences: listed(differences),
        remedy: if can_be_passed_over {
            "give the run the saved values, or load the state with strict = false to go on with the new ones"
        } else {
            "what was consumed in the middle of an epoch cannot be told of other frames; use the dataset and the filter that the \
             state was saved with"
        },
    })
}

/// What a bare state would say, had it been saved with these options and its own batch size.
fn details_of_bare(
    dataset: &Dataset,
    options: RunOptions,
    state: &State,
) -> Result<Details, Error> {
    let then = RunOptions {
        batch_size: state.batch_size,
        ..options
    };
    let fleet = Lineup::new(&dataset.selection, &then)?.fleet;
    let places =
        (0..options.order.world_size).map(|rank| fleet.locate(rank, state.batches_consumed));
    let places: Vec<(u64, u64)> = places.collect::<Result<_, _>>()?;
    let (epoch, batches_in_epoch) = places[0];
    if let Some(rank) = places.iter().position(|place| *place != places[0]) {
        return Err(Error::State {
            reason: format!(
                "after {} batches rank 0 is in epoch {epoch} and rank {rank} in epoch {}, so another batch size cannot go on from there: \
                 ranks take different numbers of batches, unless epoch_end is drop_tail or wrap; save a loader's state_dict",
                state.batches_consumed, places[rank].0
            ),
        });
    }
    Ok(Details {
        epoch,
        batches_in_epoch,
        options: options.order,
        earlier: Vec::new(),
        dataset: dataset.fingerprint().clone(),
    })
}

/// The legs of an epoch that a state tells of.
#[derive(Debug)]
struct Saved {
    epoch: u64,
    /// None of them without batches, and no two neighbours alike.
    legs: Vec<(RunOptions, u64)>,
}

impl Saved {
    fn new(state: &StateDict, details: &Details) -> Self {
        let mut saved = Self {
            epoch: details.epoch,
            legs: Vec::new(),
        };
        for leg in &details.earlier {
            let options = RunOptions {
                order: leg.options,
                batch_size: leg.batch_size,
            };
            saved.push(options, leg.batches);
        }
        let options = RunOptions {
            order: details.options,
            batch_size: state.state.batch_size,
        };
        saved.push(options, details.batches_in_epoch);
        saved
    }

    fn push(&mut self, options: RunOptions, batches: u64) {
        match self.legs.last_mut() {
            _ if batches == 0 => {}
            Some((last, more)) if options.go_on_with(last) && options.has_topology_of(last) => {
                *more = more.saturating_add(batches);
            }
            _ => self.legs.push((options, batches)),
        }
    }

    /// The leg that comes next.
    fn go_on(
        &mut self,
        dataset: &Dataset,
        lineup: Lineup,
        options: RunOptions,
        rank: usize,
    ) -> Result<Leg, Error> {
        // The last leg goes on if nothing has changed since.
        let is_last = |(last, _): &(RunOptions, u64)| {
            options.go_on_with(last) && options.has_topology_of(last)
        };
        let batches = match self.legs.pop_if(|last| is_last(last)) {
            Some((_, batches)) => batches,
            None => 0,
        };
        let epoch = self.epoch;
        let leg = |lineup| Leg {
            earlier: self.earlier(),
            ..Leg::whole(lineup, options, rank, epoch).starting_at(batches)
        };
        if self.legs.is_empty() {
            return Ok(leg(lineup));
        }
        let mut warnings = Vec::new();
        let rest = match self.rest(dataset, &options)? {
            Some(rest) => match Lineup::new(&rest.selection, &options) {
                Ok(lineup) => {
                    let fleet = Fleet::clone(&lineup.fleet);
                    let fleet = fleet.after(rest.global_batches, options.order.epoch_end);
                    Lineup {
                        fleet: Arc::new(fleet),
                        ..lineup
                    }
                }
                Err(Error::Resume(resume::Error::NoEvenEpoch { .. })) => {
                    warnings.push(Warning::RestLeftOut {
                        epoch,
                        frames: rest.selection.num_frames(),
                    });
                    nothing_left(&options)?
                }
                Err(error) => return Err(error),
            },
            None => nothing_left(&options)?,
        };
        Ok(Leg {
            warnings,
            ..leg(rest)
        })
    }

    fn earlier(&self) -> Vec<EarlierLeg> {
        let earlier = self.legs.iter().map(|&(options, batches)| EarlierLeg {
            batches,
            batch_size: options.batch_size,
            options: options.order,
        });
        earlier.collect()
    }

    /// What all legs have left, for one with `options`; `None` if nothing.
    fn rest(&self, dataset: &Dataset, options: &RunOptions) -> Result<Option<Rest>, Error> {
        let mut selection = dataset.selection.clone();
        // The order that is under way: its options, and how far it has come: in global batches if it is canonical, else in each
        // rank's.
        let mut under_way: Option<(RunOptions, u64)> = None;
        for &(leg, batches) in self.legs.iter().chain([&(*options, 0)]) {
            let mut taken = 0;
            if let Some((before, so_far)) = under_way {
                if leg.go_on_with(&before) {
                    taken = so_far;
                } else {
                    match self.rest_of(&selection, &before, so_far)? {
                        Some(rest) => selection = rest,
                        None => return Ok(None),
                    }
                }
            }
            taken = if leg.is_canonical() {
                let fleet = Fleet::clone(&Lineup::new(&selection, &leg)?.fleet);
                fleet.after(taken, EpochEnd::Exact).global_batches(batches)
            } else {
                taken.saturating_add(batches)
            };
            under_way = Some((leg, taken));
        }
        Ok(under_way.map(|(_, taken)| Rest {
            selection,
            global_batches: taken,
        }))
    }

    /// What is left of a selection once an order has come so far.
    fn rest_of(
        &self,
        selection: &Selection,
        options: &RunOptions,
        taken: u64,
    ) -> Result<Option<Selection>, Error> {
        let fleet = Fleet::clone(&Lineup::new(selection, options)?.fleet);
        let emitted = if options.is_canonical() {
            fleet.after(taken, EpochEnd::Exact).emitted(0)
        } else {
            fleet.emitted(taken)
        };
        let (world_size, num_workers) = options.sharers();
        let rest = selection.rest(&Progress {
            world_size,
            num_workers,
            sharding: options.sharding(),
            options: options.plan(self.epoch),
            emitted,
        })?;
        Ok(rest)
    }
}

/// What is left of an epoch: a selection's order after so many global batches, if it is canonical; else all of it.
#[derive(Debug)]
struct Rest {
    selection: Selection,
    global_batches: u64,
}

/// The lineup of an epoch that is over.
fn nothing_left(options: &RunOptions) -> Result<Lineup, Error> {
    let batching = Batching {
        batch_size: options.batch_size,
        drop_last: false,
        epoch_end: EpochEnd::Exact,
    };
    let (world_size, workers) = (options.order.world_size, options.workers_per_rank());
    let none = vec![0; world_size.saturating_mul(workers)];
    Ok(Lineup {
        shares: Arc::new([]),
        fleet: Arc::new(Fleet::new(&none, world_size, workers, batching)?),
    })
}

/// The options of a loader's run.
pub(crate) fn run_options(
    dataset: &Dataset,
    topology: Topology,
    options: &crate::LoaderOptions,
) -> RunOptions {
    let pool = &dataset.options;
    RunOptions {
        order: OrderOptions {
            seed: pool.seed,
            episode_pool_size: pool.episode_pool_size,
            shuffle: pool.shuffle,
            admission: pool.admission,
            shard_unit: pool.shard_unit,
            max_num_shards: pool.max_num_shards,
            drop_last: options.drop_last,
            epoch_end: options.epoch_end,
            canonical_consumers: options.canonical_consumers,
            world_size: topology.world_size(),
            num_workers: topology.num_workers(),
        },
        batch_size: options.batch_size as u64,
    }
}
