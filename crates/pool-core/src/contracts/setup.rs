//! What a contract is checked on, and how it can fail.

use crate::error::Error;
use crate::ownership::{Sharding, Share};
use crate::plan::{Plan, PlanOptions};
use crate::selection::{EpisodeInfo, Filter, Selection};
use crate::topology::Topology;

/// A dataset, a topology, and all options: what a contract is checked on.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The dataset's episodes.
    pub episodes: Vec<EpisodeInfo>,
    /// Which of their frames to keep.
    pub filter: Filter,
    /// The number of ranks.
    pub world_size: usize,
    /// The number of workers of each rank.
    pub num_workers: usize,
    /// How the episodes are shared out.
    pub sharding: Sharding,
    /// What steers the order.
    pub options: PlanOptions,
}

impl Setup {
    /// Episodes of the given lengths in frames, each in a data file of its own, with default options.
    #[must_use]
    pub fn new(lengths: &[usize], world_size: usize, num_workers: usize) -> Self {
        let episodes = lengths
            .iter()
            .enumerate()
            .map(|(episode_index, &length)| EpisodeInfo {
                episode_index,
                length,
                file: episode_index,
            });
        Self {
            episodes: episodes.collect(),
            filter: Filter::default(),
            world_size,
            num_workers,
            sharding: Sharding::default(),
            options: PlanOptions::default(),
        }
    }

    pub(super) fn selection(&self) -> Result<Selection, Error> {
        Selection::new(&self.episodes, &self.filter)
    }

    /// The most episodes that a reader of any plan has to hold.
    pub(super) fn pool_size(&self) -> usize {
        if self.options.shuffle {
            self.options.episode_pool_size
        } else {
            1
        }
    }

    /// All consumers, rank by rank.
    pub(super) fn consumers(&self) -> Result<Vec<Topology>, Error> {
        let mut consumers = Vec::new();
        for rank in 0..self.world_size {
            for worker in 0..self.num_workers.max(1) {
                consumers.push(Topology::new(
                    rank,
                    self.world_size,
                    worker,
                    self.num_workers,
                )?);
            }
        }
        Ok(consumers)
    }

    /// The shares of all consumers, rank by rank.
    pub(super) fn shares(&self) -> Result<Vec<Share>, Error> {
        let selection = self.selection()?;
        let share = |topology| Share::new(&selection, topology, &self.sharding);
        self.consumers()?.iter().map(share).collect()
    }

    /// The plans of all consumers, rank by rank.
    pub(super) fn plans(&self) -> Result<Vec<Plan>, Error> {
        self.shares()?
            .iter()
            .map(|share| Plan::new(share, &self.options))
            .collect()
    }
}

/// Why a contract was not kept, or could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A promise is broken.
    #[error("{contract} is broken: {what}")]
    Broken {
        /// The contract's name.
        contract: &'static str,
        /// What was found and what was expected.
        what: String,
    },
    /// The setup is not valid, so there is nothing to check.
    #[error("the setup is not valid")]
    Invalid(#[from] Error),
}

/// Names the contract that a finding breaks.
pub(super) fn broken(contract: &'static str) -> impl Fn(String) -> Violation {
    move |what| Violation::Broken { contract, what }
}
