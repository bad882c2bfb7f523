//! The plan: one consumer's whole epoch, as a stream of steps that is fixed before anything is read.

use std::collections::{BTreeMap, VecDeque};
use std::iter::FusedIterator;
use std::sync::Arc;

use crate::chapters::Chapters;
use crate::draw::{Draws, admissions_stream, frames_stream};
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
    /// In what order episodes come into the pool, when mixing.
    pub admission: Admission,
    /// The most frames, more or less, that are drawn in one go before the pool runs empty and is filled anew: 2^24 by default,
    /// and never less than sixteen full pools. A skip costs a draw for each frame of a single chapter only. It makes no
    /// difference to shares of up to so many frames.
    pub chapter_frames: u64,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            epoch: 0,
            episode_pool_size: 64,
            shuffle: true,
            admission: Admission::Shuffled,
            chapter_frames: 1 << 24,
        }
    }
}

/// In what order a shuffled epoch's episodes come into the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Admission {
    /// At random.
    #[default]
    Shuffled,
    /// File by file: the files at random, and at random within each. Mixes less, and needs each file during one part of the epoch alone.
    FileGrouped,
}

/// The most emissions of a plan: adding to it overflows nothing.
const MAX_LENGTH: u64 = 1 << 62;

/// The fewest full pools that make a chapter, so that the pool is seldom short of episodes.
const POOLS_PER_CHAPTER: u64 = 16;

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
/// - Stream 0 puts the share's episodes into the order of their admission: Fisher and Yates, from the end. With
///   [`Admission::FileGrouped`], episodes are then moved up to the first of their data file, and keep their order among themselves.
/// - The pool is one flat array of the frames left. An episode is admitted by appending its frames, first to last. The pool
///   is filled with up to `episode_pool_size` episodes, and whenever the last frame of one is emitted, the next is admitted.
/// - Each emission is drawn from the whole array, by stream 1; the array's last entry takes the place of the one drawn.
/// - A draw below `n` is `word * n / 2^32`, rounded down, of the next 32-bit word; a word with `word * n mod 2^32` below
///   `2^32 mod n` is skipped.
///
/// So each emission is uniform over all frames left in the pool. Without `shuffle` nothing is drawn: episodes and frames
/// come in dataset order.
///
/// A share of more than `chapter_frames` frames is divided into chapters: of `T` frames, in the order of admission, there are
/// `n = ceil(T / chapter_frames)`, and chapter `k` ends with the first episode that reaches frame `(k + 1) * T / n` (where an
/// episode reaches several at once, they are one). At a chapter's end the pool runs empty, as at that of an epoch; chapter `k`
/// is drawn by stream `2 * k + 1`. With the default, that is from 155 hours of video at 30 frames a second upward, for each consumer.
///
/// An epoch that another topology has begun is taken up anew with what is [left](crate::Selection::rest) of it; the `g`-th time, `g * 2^33` is
/// added to the stream numbers.
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
/// once and 4 for every episode of the share. A clone reserves nothing, and allocates when its pool grows. A skip costs a draw for
/// each frame of the chapter that it ends in, however far it goes.
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
    /// The share's episodes, as positions in `episodes`, in the order of their admission. It starts over after its end, so the
    /// ordinal of an admission, modulo its length, is an index in here.
    order: Vec<u32>,
    chapters: Chapters,
    share_frames: u64,
    /// How many episodes have entered the pool. It is full whenever this is less than `chapter_end`.
    num_pooled: u64,
    /// The ordinal at which the current chapter ends.
    chapter_end: u64,
    pool: Pool,
    emitted: u64,
    /// The number of emissions in all.
    length: u64,
    options: PlanOptions,
    key: [u8; 32],
    generation: u32,
    // What the reader has yet to be told. Between two emissions of a plain iteration these hold at most one each, except where a
    // chapter begins.
    /// The ordinals of pooled episodes that the reader has yet to admit, ascending.
    to_admit: VecDeque<u64>,
    /// The episodes that are no longer pooled and that the reader has yet to evict.
    to_evict: VecDeque<usize>,
    /// The reader has been told to admit the resident episodes with lower ordinals.
    next_to_tell: u64,
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
        let pool_frames = check(share, options)?;
        let topology = share.topology();
        let key = order_key(
            options.seed,
            options.epoch,
            topology.rank(),
            topology.worker(),
        );
        let mut order = share.raw_positions().to_vec();
        if options.shuffle {
            Draws::new(key, admissions_stream(share.generation())).shuffle(&mut order);
        }
        let episodes = share.selection();
        if options.shuffle && options.admission == Admission::FileGrouped {
            group_by_file(&mut order, episodes);
        }
        let lengths = order
            .iter()
            .map(|&position| episodes[position as usize].num_frames());
        let chapter_frames = options
            .chapter_frames
            .max(POOLS_PER_CHAPTER * pool_frames as u64);
        let pool_size = pool_size(share, options);
        let mut plan = Self {
            chapters: Chapters::new(lengths, share.num_frames(), chapter_frames),
            pool: Pool::new(pool_size as u32, pool_frames, None),
            episodes: Arc::clone(episodes),
            order,
            share_frames: share.num_frames(),
            num_pooled: 0,
            chapter_end: 0,
            emitted: 0,
            length: share.num_frames(),
            options: *options,
            key,
            generation: share.generation(),
            to_admit: VecDeque::with_capacity(pool_size),
            to_evict: VecDeque::with_capacity(pool_size),
            next_to_tell: 0,
            warnings: dominant_episode(share, options).into_iter().collect(),
        };
        if plan.length > 0 {
            plan.start_chapter(0);
        }
        plan.owe_admissions();
        Ok(plan)
    }

    /// What [`new`](Self::new) would find, without a plan: its errors, and the plan's warnings.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn check(share: &Share, options: &PlanOptions) -> Result<Vec<Warning>, Error> {
        check(share, options)?;
        Ok(dominant_episode(share, options).into_iter().collect())
    }

    /// The same plan, of `frames` emissions in all: fewer than the share's leave out the last of the order, and with more it starts over
    /// after its end, in the same order. A share without frames has nothing to repeat, and stays empty. More than 2^62 are as good as
    /// for ever, and as many as that.
    ///
    /// Meant for a plan that is new; what it has emitted counts.
    ///
    /// # Examples
    ///
    /// ```
    /// # use pool_core::{EpisodeInfo, Filter, Plan, PlanOptions, Selection, Share, Sharding, Step, Topology};
    /// # let episodes = [EpisodeInfo { episode_index: 0, length: 3, file: 0 }];
    /// # let selection = Selection::new(&episodes, &Filter::default())?;
    /// # let share = Share::new(&selection, &Topology::single(), &Sharding::default())?;
    /// # let options = PlanOptions { shuffle: false, ..PlanOptions::default() };
    /// // Of an episode of three frames.
    /// let plan = Plan::new(&share, &options)?.with_length(5);
    /// let frames: Vec<usize> = plan
    ///     .filter_map(|step| match step {
    ///         Step::Emit(emission) => Some(emission.frame_index),
    ///         _ => None,
    ///     })
    ///     .collect();
    /// assert_eq!(frames, [0, 1, 2, 0, 1]);
    /// # Ok::<(), pool_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_length(mut self, frames: u64) -> Self {
        if self.share_frames > 0 {
            let was_at_the_end = self.remaining() == 0;
            self.length = frames.min(MAX_LENGTH).max(self.emitted);
            match self.remaining() {
                0 => self.leave_pool(),
                _ if was_at_the_end => self.start_chapter(self.emitted),
                _ => {}
            }
            self.owe_admissions();
        }
        self
    }

    /// The number of frames that are left to emit.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.length - self.emitted
    }

    /// What is legal and yet probably not meant.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The next `k` episodes that will be admitted, in order, or as many as are left. The plan does not advance.
    ///
    /// Where [`with_length`](Self::with_length) has cut it short, the end may come before the last of them.
    pub fn next_admissions(&self, k: usize) -> impl Iterator<Item = usize> + '_ {
        let owed = self.to_admit.iter().copied();
        let last = match self.remaining() {
            0 => 0,
            // Every lap admits each episode once.
            _ => (self.length.div_ceil(self.share_frames)).saturating_mul(self.order.len() as u64),
        };
        owed.chain(self.num_pooled..last)
            .take(k)
            .map(|ordinal| self.episode(ordinal).episode_index())
    }

    /// The step that has to come before the next emission, if there is one: to let go of an episode as soon as it is exhausted.
    pub fn next_owed(&mut self) -> Option<Step> {
        if self.to_evict.is_empty() && self.to_admit.is_empty() {
            return None;
        }
        self.owed_step()
    }

    /// Leaves out the next `n` emissions, or as many as are left, and returns their number. It costs a draw for each that is in the
    /// chapter of the emission that follows.
    ///
    /// The steps that follow fit those that came before: first the episodes that have been admitted and are exhausted by now
    /// are evicted, then those that are resident and have not been admitted are admitted, then the emissions go on as if
    /// there had been no skip. So on a new plan an `Admit` for every resident episode comes first, and a reader can start
    /// there.
    pub fn skip_emissions(&mut self, n: u64) -> u64 {
        let skipped = n.min(self.remaining());
        let target = self.emitted + skipped;
        if skipped > 0 && target == self.length {
            self.leave_pool();
            self.emitted = target;
        } else if skipped > 0 && self.chapter_start(target) > self.emitted {
            self.leave_pool();
            self.start_chapter(target);
        }
        while self.emitted < target {
            self.advance();
        }
        self.owe_admissions();
        skipped
    }

    /// What has not been emitted yet of the order's first lap: episodes, as positions in the selection, each with the frames that are
    /// left, ascending, or `None` for all of them.
    pub(crate) fn left(&self) -> impl Iterator<Item = (u32, Option<Vec<u32>>)> + '_ {
        let mut resident: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let is_over = self.emitted >= self.share_frames;
        if !is_over {
            for (ordinal, frame) in self.pool.frames() {
                resident.entry(ordinal).or_default().push(frame);
            }
        }
        let untouched = if is_over {
            &[]
        } else {
            // This is the first lap, so the ordinal is the place.
            &self.order[self.num_pooled as usize..]
        };
        let resident = resident.into_iter().map(|(ordinal, mut frames)| {
            frames.sort_unstable();
            (self.order[self.index(ordinal)], Some(frames))
        });
        resident.chain(untouched.iter().map(|&position| (position, None)))
    }

    /// Takes the next frame out of the pool and keeps the pool full. What the reader has to be told of an episode that this
    /// removes is noted; what it has to be told of one that this adds is not.
    #[inline]
    fn advance(&mut self) -> Option<Taken> {
        // The pool holds a frame as long as any is to be emitted, and none afterwards.
        let taken = self.pool.take()?;
        self.emitted += 1;
        if taken.is_last {
            self.replace(taken.slot.ordinal, taken.slot.episode_index);
        }
        if self.emitted == self.length {
            self.leave_pool();
        }
        Some(taken)
    }

    /// Lets the next episode in for one that is exhausted.
    #[cold]
    fn replace(&mut self, ordinal: u64, episode_index: usize) {
        if ordinal < self.next_to_tell {
            self.to_evict.push_back(episode_index);
        }
        if self.emitted < self.length {
            self.fill_pool();
            if self.pool.is_empty() {
                self.start_chapter(self.emitted);
            }
        }
    }

    /// Empties the pool.
    #[cold]
    fn leave_pool(&mut self) {
        let residents = self.pool.residents();
        let told = residents.filter(|slot| slot.ordinal < self.next_to_tell);
        self.to_evict.extend(told.map(|slot| slot.episode_index));
        self.pool.restart(None);
    }

    /// Fills the pool, which is empty, for the chapter in which emission `emitted` lies, and goes to that chapter's start.
    fn start_chapter(&mut self, emitted: u64) {
        let lap = emitted / self.share_frames;
        let chapter = self.chapters.at(emitted % self.share_frames);
        let draws = || Draws::new(self.key, frames_stream(self.generation, chapter.number));
        self.pool.restart(self.options.shuffle.then(draws));
        self.emitted = lap * self.share_frames + chapter.start_frame;
        let first_ordinal = lap * self.order.len() as u64;
        self.num_pooled = first_ordinal + chapter.first as u64;
        self.chapter_end = first_ordinal + chapter.end as u64;
        self.fill_pool();
    }

    /// The number of emissions before the chapter in which emission `emitted` lies.
    fn chapter_start(&self, emitted: u64) -> u64 {
        let within = emitted % self.share_frames;
        emitted - within + self.chapters.at(within).start_frame
    }

    fn fill_pool(&mut self) {
        while self.pool.has_room() && self.num_pooled < self.chapter_end {
            let ordinal = self.num_pooled;
            let position = self.order[self.index(ordinal)];
            let episode = &self.episodes[position as usize];
            let (seed, epoch) = (self.options.seed, self.options.epoch);
            let seed = episode_seed(seed, epoch, episode.episode_index());
            self.pool
                .admit(ordinal, episode.episode_index(), seed, episode.kept());
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
        if self.emitted < self.length {
            self.to_admit.extend(untold);
            self.to_admit.make_contiguous().sort_unstable();
        }
    }

    /// The step that has to come before the next emission, if there is one.
    #[cold]
    fn owed_step(&mut self) -> Option<Step> {
        if let Some(episode_index) = self.to_evict.pop_front() {
            return Some(Step::Evict { episode_index });
        }
        let ordinal = self.to_admit.pop_front()?;
        self.next_to_tell = ordinal + 1;
        let episode_index = self.episode(ordinal).episode_index();
        Some(Step::Admit { episode_index })
    }

    fn episode(&self, ordinal: u64) -> &SelectedEpisode {
        &self.episodes[self.order[self.index(ordinal)] as usize]
    }

    /// The place in the order of an admission's episode.
    fn index(&self, ordinal: u64) -> usize {
        (ordinal % self.order.len() as u64) as usize
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
            self.to_admit.extend(num_pooled..self.num_pooled);
        }
        Some(Step::Emit(Emission {
            episode_index: slot.episode_index,
            frame_index: frame as usize,
            seed: absorb(slot.seed, frame.into()),
        }))
    }
}

impl FusedIterator for Plan {}

/// Checks the options, and gives the most frames that the pool can come to hold.
fn check(share: &Share, options: &PlanOptions) -> Result<usize, Error> {
    if options.episode_pool_size == 0 {
        return Err(Error::EmptyPool);
    }
    let pool_size = pool_size(share, options);
    let mut lengths: Vec<u64> = share.episodes().map(SelectedEpisode::num_frames).collect();
    if pool_size < lengths.len() {
        // The longest come first.
        lengths.select_nth_unstable_by(pool_size, |a, b| b.cmp(a));
    }
    let num_frames: u64 = lengths.iter().take(pool_size).sum();
    if num_frames > MAX_POOL_FRAMES {
        return Err(Error::PoolTooLarge {
            num_episodes: pool_size,
            num_frames,
        });
    }
    Ok(usize::try_from(num_frames).expect("2^28 fits"))
}

/// Moves the episodes of each file up to the first of them.
fn group_by_file(order: &mut [u32], episodes: &[SelectedEpisode]) {
    let file_of = |position: u32| episodes[position as usize].file();
    let mut ranks = BTreeMap::new();
    for (rank, &position) in order.iter().enumerate() {
        ranks.entry(file_of(position)).or_insert(rank);
    }
    order.sort_by_key(|&position| ranks[&file_of(position)]);
}

/// The most episodes that are resident at once.
fn pool_size(share: &Share, options: &PlanOptions) -> usize {
    let most = if options.shuffle {
        options.episode_pool_size
    } else {
        1
    };
    most.min(share.num_episodes())
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
