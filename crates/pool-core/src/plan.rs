//! The plan: one consumer's whole epoch, as a stream of steps that is fixed before anything is read.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::sync::Arc;

use crate::draw::{ADMISSIONS, Draws, FRAMES};
use crate::error::Error;
use crate::limits::MAX_POOL_FRAMES;
use crate::ownership::Share;
use crate::pool::{Pool, Taken};
use crate::seed::{absorb, episode_seed, order_key};
use crate::selection::SelectedEpisode;
use crate::warning::Warning;

/// What steers the order of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanOptions {
    /// The run's seed; 0 by default.
    pub seed: u64,
    /// The epoch; 0 by default.
    pub epoch: u64,
    /// The most episodes that are resident at once; 64 by default. More mix better and hold more rows in memory.
    pub episode_pool_size: usize,
    /// Whether to mix; true by default. Otherwise frames come exactly in dataset order, and one episode at a time is resident.
    pub shuffle: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            epoch: 0,
            episode_pool_size: 64,
            shuffle: true,
        }
    }
}

/// One step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The episode's frames will be emitted from now on: have its rows at hand.
    Admit {
        /// The dataset's number of the episode.
        episode_index: usize,
    },
    /// Emit a frame of an admitted episode.
    Emit(Emission),
    /// No more frames of the episode will be emitted: let go of its rows.
    Evict {
        /// The dataset's number of the episode.
        episode_index: usize,
    },
}

/// One frame to emit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Emission {
    /// The dataset's number of the episode.
    pub episode_index: usize,
    /// The frame within its episode, from 0.
    pub frame_index: usize,
    /// For augmentations: see [`emission_seed`](crate::emission_seed).
    pub seed: u64,
}

/// One consumer's whole epoch: an iterator of [`Step`]s.
///
/// # The order
///
/// It is a function of seed, epoch, rank, worker, the pool size and the lengths of the share's episodes; nothing that is
/// read or measured later can change it, and no later version will.
///
/// - The 32-byte key is `seed ‖ epoch ‖ rank ‖ worker`, each as a little-endian `u64`. Two streams of ChaCha8 words come from
///   it, with stream number 0 and 1.
/// - Stream 0 puts the share's episodes into the order of their admission: Fisher and Yates, from the end.
/// - The pool is one flat array of the frames left. An episode is admitted by appending its frames, first to last. The pool
///   is filled with up to `episode_pool_size` episodes, and whenever the last frame of one is emitted, the next is admitted.
/// - Each emission is drawn from the whole array, by stream 1; the array's last entry takes the place of the one drawn.
/// - A draw below `n` is `word * n / 2^32`, rounded down, of the next 32-bit word; a word with `word * n mod 2^32` below
///   `2^32 mod n` is skipped.
///
/// So each emission is uniform over all frames left in the pool. Without `shuffle` nothing is drawn: episodes and frames
/// come in dataset order.
///
/// # The steps
///
/// - At most `episode_pool_size` episodes are admitted and not yet evicted, at any time.
/// - Every episode is admitted before it is emitted from, and evicted right after its last frame, before the next one is
///   admitted; each once.
///
/// # Near the end of an epoch
///
/// When the last episode has been admitted, the pool is not refilled and gets shorter by one episode after the other. What is
/// resident then is emitted from in proportion to the frames left, so most of these episodes last nearly to the end: with
/// 100 episodes of 100 frames and a pool of 8, a window of 256 samples draws on 8 episodes at the start of an
/// epoch, on 10.3 in the middle, and on 9.6 at the end. It is different if one episode is much longer than the
/// others, see [`Warning::DominantEpisode`].
///
/// # Cost
///
/// An emission takes constant time and allocates nothing. The plan keeps 8 bytes for every frame that could be resident at
/// once and 4 for every episode of the share. A clone reserves nothing, and allocates when its pool grows.
///
/// # Examples
///
/// ```
/// use pool_core::{EpisodeInfo, Filter, Plan, PlanOptions, Selection, Share, Sharding, Step, Topology};
///
/// let episodes = [0, 1, 2].map(|i| EpisodeInfo { episode_index: i, length: 2, file: 0 });
/// let selection = Selection::new(&episodes, &Filter::default())?;
/// let share = Share::new(&selection, &Topology::single(), &Sharding::default())?;
///
/// let options = PlanOptions { shuffle: false, ..PlanOptions::default() };
/// let mut plan = Plan::new(&share, &options)?;
/// assert_eq!(plan.next_admissions(2).collect::<Vec<_>>(), [0, 1]);
///
/// assert_eq!(plan.skip_emissions(3), 3);
/// assert_eq!(plan.next(), Some(Step::Admit { episode_index: 1 }));
/// assert!(matches!(plan.next(), Some(Step::Emit(emission)) if emission.frame_index == 1));
/// assert_eq!(plan.next(), Some(Step::Evict { episode_index: 1 }));
/// assert_eq!(plan.remaining(), 2);
/// # Ok::<(), pool_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    episodes: Arc<[SelectedEpisode]>,
    /// The share's episodes, as positions in `episodes`, in the order of their admission. An index in here is an ordinal.
    order: Vec<u32>,
    /// How many of `order` have entered the pool. It is full whenever this is less than all.
    num_pooled: usize,
    pool: Pool,
    remaining: u64,
    seed: u64,
    epoch: u64,
    // What the reader has yet to be told. Between two emissions of a plain iteration these hold at most one each.
    /// The ordinals of pooled episodes that the reader has yet to admit, ascending.
    to_admit: VecDeque<u32>,
    /// The episodes that are no longer pooled and that the reader has yet to evict.
    to_evict: VecDeque<usize>,
    /// The reader has been told to admit the resident episodes with lower ordinals.
    next_to_tell: u32,
    warnings: Vec<Warning>,
}

impl Plan {
    /// The plan of one epoch of the consumer that owns `share`.
    ///
    /// # Errors
    ///
    /// If `episode_pool_size` is 0, or if the pool could come to hold more than
    /// [`MAX_POOL_FRAMES`](crate::MAX_POOL_FRAMES) frames.
    pub fn new(share: &Share, options: &PlanOptions) -> Result<Self, Error> {
        let PlanOptions {
            seed,
            epoch,
            episode_pool_size,
            shuffle,
        } = *options;
        if episode_pool_size == 0 {
            return Err(Error::EmptyPool);
        }
        let topology = share.topology();
        let key = order_key(seed, epoch, topology.rank(), topology.worker());
        let mut order = share.raw_positions().to_vec();
        let (draws, pool_size) = if shuffle {
            Draws::new(key, ADMISSIONS).shuffle(&mut order);
            (Some(Draws::new(key, FRAMES)), episode_pool_size)
        } else {
            (None, 1)
        };
        let pool_size = pool_size.min(order.len());
        let mut plan = Self {
            pool: Pool::new(pool_size as u32, pool_frames(share, pool_size)?, draws),
            episodes: Arc::clone(share.selection()),
            order,
            num_pooled: 0,
            remaining: share.num_frames(),
            seed,
            epoch,
            to_admit: VecDeque::with_capacity(pool_size),
            to_evict: VecDeque::with_capacity(pool_size),
            next_to_tell: 0,
            warnings: dominant_episode(share, options).into_iter().collect(),
        };
        plan.fill_pool();
        plan.owe_admissions();
        Ok(plan)
    }

    /// The number of frames that are left to emit.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// What is legal and yet probably not meant.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The next `k` episodes that will be admitted, in order, or as many as are left. The plan does not advance.
    pub fn next_admissions(&self, k: usize) -> impl Iterator<Item = usize> + '_ {
        let owed = self.to_admit.iter().map(|&ordinal| ordinal as usize);
        owed.chain(self.num_pooled..self.order.len())
            .take(k)
            .map(|ordinal| self.episode(ordinal).episode_index())
    }

    /// Leaves out the next `n` emissions, or as many as are left, and returns their number. It costs a draw each.
    ///
    /// The steps that follow fit those that came before: first the episodes that have been admitted and are exhausted by now
    /// are evicted, then those that are resident and have not been admitted are admitted, then the emissions go on as if
    /// there had been no skip. So on a new plan an `Admit` for every resident episode comes first, and a reader can start
    /// there.
    pub fn skip_emissions(&mut self, n: u64) -> u64 {
        let mut skipped = 0;
        while skipped < n && self.advance().is_some() {
            skipped += 1;
        }
        self.owe_admissions();
        skipped
    }

    /// Takes the next frame out of the pool and keeps the pool full. What the reader has to be told of an episode that this
    /// removes is noted; what it has to be told of one that this adds is not.
    #[inline]
    fn advance(&mut self) -> Option<Taken> {
        let taken = self.pool.take()?;
        self.remaining -= 1;
        if taken.is_last {
            if taken.slot.ordinal < self.next_to_tell {
                self.to_evict.push_back(taken.slot.episode_index);
            }
            self.fill_pool();
        }
        Some(taken)
    }

    fn fill_pool(&mut self) {
        while self.pool.has_room() && self.num_pooled < self.order.len() {
            let ordinal = self.num_pooled;
            let episode = &self.episodes[self.order[ordinal] as usize];
            let seed = episode_seed(self.seed, self.epoch, episode.episode_index());
            self.pool.admit(
                ordinal as u32,
                episode.episode_index(),
                seed,
                episode.kept(),
            );
            self.num_pooled += 1;
        }
    }

    /// Finds the resident episodes that the reader has not been told of.
    fn owe_admissions(&mut self) {
        let untold = self
            .pool
            .residents()
            .map(|slot| slot.ordinal)
            .filter(|&ordinal| ordinal >= self.next_to_tell);
        self.to_admit.clear();
        self.to_admit.extend(untold);
        self.to_admit.make_contiguous().sort_unstable();
    }

    /// The step that has to come before the next emission, if there is one.
    #[cold]
    fn owed_step(&mut self) -> Option<Step> {
        if let Some(episode_index) = self.to_evict.pop_front() {
            return Some(Step::Evict { episode_index });
        }
        let ordinal = self.to_admit.pop_front()?;
        self.next_to_tell = ordinal + 1;
        let episode_index = self.episode(ordinal as usize).episode_index();
        Some(Step::Admit { episode_index })
    }

    fn episode(&self, ordinal: usize) -> &SelectedEpisode {
        &self.episodes[self.order[ordinal] as usize]
    }
}

impl Iterator for Plan {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        if !(self.to_evict.is_empty() && self.to_admit.is_empty()) {
            return self.owed_step();
        }
        let num_pooled = self.num_pooled;
        let Taken {
            slot,
            frame,
            is_last,
        } = self.advance()?;
        if is_last {
            self.to_admit
                .extend(num_pooled as u32..self.num_pooled as u32);
        }
        Some(Step::Emit(Emission {
            episode_index: slot.episode_index,
            frame_index: frame as usize,
            seed: absorb(slot.seed, frame.into()),
        }))
    }
}

impl FusedIterator for Plan {}

/// The most frames that `pool_size` episodes of a share can have between them.
fn pool_frames(share: &Share, pool_size: usize) -> Result<usize, Error> {
    let mut lengths: Vec<u64> = share.episodes().map(SelectedEpisode::num_frames).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let num_frames: u64 = lengths.iter().take(pool_size).sum();
    if num_frames > MAX_POOL_FRAMES {
        return Err(Error::PoolTooLarge {
            num_episodes: pool_size,
            num_frames,
        });
    }
    Ok(usize::try_from(num_frames).expect("2^28 fits"))
}

/// Says so if one episode will be most of what is emitted for over a third of the epoch.
fn dominant_episode(share: &Share, options: &PlanOptions) -> Option<Warning> {
    let longest = share
        .episodes()
        .max_by_key(|episode| episode.num_frames())?;
    let holds_all = options.episode_pool_size >= share.num_episodes();
    let is_dominant = longest.num_frames() > share.num_frames() / 3;
    (options.shuffle && !holds_all && is_dominant).then(|| Warning::DominantEpisode {
        episode_index: longest.episode_index(),
        episode_frames: longest.num_frames(),
        share_frames: share.num_frames(),
        share_episodes: share.num_episodes(),
        episode_pool_size: options.episode_pool_size,
    })
}
