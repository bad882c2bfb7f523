//! A reader that follows a plan's steps and trusts none of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::Step;
use crate::selection::{SelectedEpisode, Selection};

/// What a reader of the steps knows: which episodes it holds, and which frames came out of them.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    episodes: BTreeMap<usize, &'a SelectedEpisode>,
    pool_size: usize,
    /// The frames that are left of each episode that is held.
    held: BTreeMap<usize, BTreeSet<usize>>,
    released: BTreeSet<usize>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(selection: &'a Selection, pool_size: usize) -> Self {
        let episodes = selection.episodes().iter();
        Self {
            episodes: episodes
                .map(|episode| (episode.episode_index(), episode))
                .collect(),
            pool_size,
            held: BTreeMap::new(),
            released: BTreeSet::new(),
        }
    }

    /// Follows one step; `Err` says what is wrong with it.
    ///
    /// A reader that `starts_late` joins behind a skip, and may not see all frames of an episode.
    pub(super) fn follow(&mut self, step: Step, starts_late: bool) -> Result<(), String> {
        match step {
            Step::Admit { episode_index } => self.admit(episode_index),
            Step::Evict { episode_index } => match self.held.remove(&episode_index) {
                None => Err(format!(
                    "episode {episode_index} is evicted and was not held"
                )),
                Some(left) if !left.is_empty() && !starts_late => Err(format!(
                    "episode {episode_index} is evicted with {} frames left",
                    left.len()
                )),
                Some(_) => {
                    self.released.insert(episode_index);
                    Ok(())
                }
            },
            Step::Emit(emission) => {
                let (episode, frame) = (emission.episode_index, emission.frame_index);
                let left = self.held.get_mut(&episode);
                let left =
                    left.ok_or_else(|| format!("episode {episode} is emitted from and not held"))?;
                if !left.remove(&frame) {
                    return Err(format!(
                        "frame {frame} of episode {episode} is not one of those left"
                    ));
                }
                Ok(())
            }
        }
    }

    fn admit(&mut self, episode_index: usize) -> Result<(), String> {
        let episode = self.episodes.get(&episode_index);
        let episode = episode.ok_or_else(|| format!("episode {episode_index} is not selected"))?;
        if self.released.contains(&episode_index) {
            return Err(format!(
                "episode {episode_index} is admitted after its eviction"
            ));
        }
        if self
            .held
            .insert(episode_index, episode.frames().collect())
            .is_some()
        {
            return Err(format!("episode {episode_index} is admitted twice"));
        }
        if self.held.len() > self.pool_size {
            return Err(format!(
                "{} episodes are held, with a pool of {}",
                self.held.len(),
                self.pool_size
            ));
        }
        Ok(())
    }

    /// The number of episodes held.
    pub(super) fn num_held(&self) -> usize {
        self.held.len()
    }

    /// The number of episodes that came and went.
    pub(super) fn num_released(&self) -> usize {
        self.released.len()
    }
}
