//! Which frames of a dataset are emitted at all: its episodes, filtered.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use crate::coverage::Coverage;
use crate::error::{Error, KnownEpisodes};
use crate::limits::{MAX_EPISODE_FRAMES, MAX_EPISODES};
use crate::ownership::{Sharding, Share};
use crate::plan::{Plan, PlanOptions};
use crate::warning::Warning;

/// What planning needs to know of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeInfo {
    /// The dataset's own number of the episode.
    pub episode_index: usize,
    /// Its length in frames.
    pub length: usize,
    /// The position, among the dataset's data files, of the parquet file that holds it.
    pub file: usize,
}

/// Which episodes and frames to keep. The default keeps everything.
///
/// A frame is emitted if its episode passes `episodes` and `exclude_episodes`, and it passes all of the other three.
/// What is not emitted is still there: a window may look into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// The only episodes to keep; all by default. They keep the dataset's order, whatever theirs here.
    pub episodes: Option<Vec<usize>>,
    /// Episodes to leave out. This has the last word over `episodes`.
    pub exclude_episodes: Vec<usize>,
    /// How many frames to drop at the start of every episode.
    pub drop_n_first_frames: usize,
    /// How many frames to drop at the end of every episode.
    pub drop_n_last_frames: usize,
    /// For some episodes, the only ranges of frames to keep. They may overlap, which counts once, and come in any order.
    pub keep_ranges: BTreeMap<usize, Vec<Range<usize>>>,
}

/// The episodes and frames that one epoch emits, in dataset order.
///
/// Invariants:
///
/// - there is at least one episode, and each has at least one frame that is kept;
/// - no episode occurs twice.
///
/// Cloning is cheap.
///
/// # Examples
///
/// ```
/// use pool_core::{EpisodeInfo, Filter, Selection};
///
/// let episodes = [3, 7, 2].map(|length| EpisodeInfo { episode_index: length * 10, length, file: 0 });
/// let filter = Filter { episodes: Some(vec![20, 70]), drop_n_last_frames: 1, ..Filter::default() };
/// let selection = Selection::new(&episodes, &filter)?;
///
/// let kept: Vec<_> = selection.episodes().iter().map(|e| (e.episode_index(), e.num_frames())).collect();
/// assert_eq!(kept, [(70, 6), (20, 1)]);
/// # Ok::<(), pool_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Selection {
    episodes: Arc<[SelectedEpisode]>,
    num_frames: u64,
    generation: u32,
    warnings: Vec<Warning>,
}

/// How far all consumers of a run have come in an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The number of ranks.
    pub world_size: usize,
    /// The number of workers of each rank.
    pub num_workers: usize,
    /// How the episodes were shared out.
    pub sharding: Sharding,
    /// What steered the order.
    pub options: PlanOptions,
    /// The frames that each consumer has emitted, `[world_size * max(1, num_workers)]`, rank by rank. What a consumer has emitted
    /// beyond its share, it has repeated.
    pub emitted: Vec<u64>,
}

/// An episode of a [`Selection`], and which of its frames are kept: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedEpisode {
    episode_index: usize,
    length: usize,
    file: usize,
    /// Ascending, apart from each other, none of them empty.
    kept: Box<[Range<u32>]>,
    num_frames: u32,
}

impl Selection {
    /// Applies a filter to a dataset's episodes, given in dataset order.
    ///
    /// # Errors
    ///
    /// If the dataset lists an episode twice; if the filter names an episode that is not in the dataset, or names one twice;
    /// if a range to keep is empty or not within its episode; if no frame is left; if a kept episode is longer than
    /// [`MAX_EPISODE_FRAMES`](crate::MAX_EPISODE_FRAMES) or there are more than `u32::MAX` episodes.
    pub fn new(episodes: &[EpisodeInfo], filter: &Filter) -> Result<Self, Error> {
        if episodes.len() > MAX_EPISODES {
            return Err(Error::TooManyEpisodes {
                num_episodes: episodes.len(),
            });
        }
        let dataset = Dataset::new(episodes)?;
        let chosen = match &filter.episodes {
            Some(list) => Some(dataset.distinct("episodes", list)?),
            None => None,
        };
        let excluded = dataset.distinct("exclude_episodes", &filter.exclude_episodes)?;
        for &episode_index in filter.keep_ranges.keys() {
            dataset.check_known("keep_ranges", episode_index)?;
        }

        let mut selected = Vec::new();
        let mut emptied = Vec::new();
        for episode in episodes {
            let episode_index = episode.episode_index;
            let is_chosen = chosen
                .as_ref()
                .is_none_or(|chosen| chosen.contains(&episode_index));
            // The ranges are checked for episodes that are left out too: a fault in a file of ranges should not hide.
            let kept = kept_ranges(episode, filter)?;
            if !is_chosen || excluded.contains(&episode_index) {
                continue;
            }
            if episode.length > MAX_EPISODE_FRAMES {
                return Err(Error::EpisodeTooLong {
                    episode_index,
                    length: episode.length,
                });
            }
            match SelectedEpisode::new(episode, &kept) {
                Some(episode) => selected.push(episode),
                None => emptied.push(episode_index),
            }
        }

        if selected.is_empty() {
            return Err(Error::NothingSelected {
                num_episodes: episodes.len(),
                num_chosen: emptied.len(),
            });
        }
        let mut warnings = Vec::new();
        if !emptied.is_empty() {
            warnings.push(Warning::EmptiedEpisodes {
                episode_indices: emptied,
            });
        }
        Ok(Self {
            // Fewer than 2^32 episodes of fewer than 2^32 frames: the sum cannot overflow.
            num_frames: selected.iter().map(SelectedEpisode::num_frames).sum(),
            episodes: selected.into(),
            generation: 0,
            warnings,
        })
    }

    /// What is left of an epoch that has come so far: the frames that no consumer has emitted, for any topology to share out anew.
    /// `None` if there are none.
    ///
    /// It is worked out from the plans of the consumers that have begun the epoch, without reading anything; it costs a draw for
    /// each frame emitted, and for each consumer no more than a chapter of them.
    ///
    /// # Errors
    ///
    /// If `progress` is not told for each consumer, or its options are not valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use pool_core::{EpisodeInfo, Filter, PlanOptions, Progress, Selection, Sharding};
    ///
    /// let episodes = [0, 1, 2].map(|i| EpisodeInfo { episode_index: i, length: 4, file: 0 });
    /// let selection = Selection::new(&episodes, &Filter::default())?;
    /// // Three ranks without workers.
    /// let progress = Progress {
    ///     world_size: 3,
    ///     num_workers: 0,
    ///     sharding: Sharding::default(),
    ///     options: PlanOptions { shuffle: false, ..PlanOptions::default() },
    ///     emitted: vec![4, 2, 0],
    /// };
    /// let rest = selection.rest(&progress)?.expect("six frames are left");
    /// let left: Vec<_> = rest.episodes().iter().map(|e| (e.episode_index(), e.frames().collect::<Vec<_>>())).collect();
    /// assert_eq!(left, [(1, vec![2, 3]), (2, vec![0, 1, 2, 3])]);
    /// # Ok::<(), pool_core::Error>(())
    /// ```
    pub fn rest(&self, progress: &Progress) -> Result<Option<Self>, Error> {
        let Progress {
            world_size,
            num_workers,
            sharding,
            options,
            emitted,
        } = progress;
        let shares = Share::fleet(self, *world_size, *num_workers, sharding)?;
        if shares.len() != emitted.len() {
            return Err(Error::ProgressOfOthers {
                found: emitted.len(),
                expected: shares.len(),
            });
        }
        let mut left: Vec<Option<SelectedEpisode>> = vec![None; self.episodes.len()];
        for (share, &emitted) in shares.iter().zip(emitted) {
            let mut plan = Plan::new(share, options)?;
            plan.skip_emissions(emitted);
            for (position, frames) in plan.left() {
                let episode = &self.episodes[position as usize];
                left[position as usize] = Some(match frames {
                    Some(frames) => episode.only(&frames),
                    None => episode.clone(),
                });
            }
        }
        let episodes: Arc<[SelectedEpisode]> = left.into_iter().flatten().collect();
        Ok((!episodes.is_empty()).then(|| Self {
            num_frames: episodes.iter().map(SelectedEpisode::num_frames).sum(),
            episodes,
            generation: self.generation + 1,
            warnings: Vec::new(),
        }))
    }

    /// How often what was [left](Self::rest) of an epoch has been taken up anew: 0 for a whole epoch.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The selected episodes, in dataset order.
    #[must_use]
    pub fn episodes(&self) -> &[SelectedEpisode] {
        &self.episodes
    }

    /// The number of frames that one epoch emits, over all consumers.
    #[must_use]
    pub fn num_frames(&self) -> u64 {
        self.num_frames
    }

    /// What an epoch's emissions have to add up to. This walks over all selected frames: a few nanoseconds each.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for episode in self.episodes.iter() {
            for frame_index in episode.frames() {
                coverage.record(episode.episode_index, frame_index);
            }
        }
        coverage
    }

    /// What is legal and yet probably not meant.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub(crate) fn shared_episodes(&self) -> Arc<[SelectedEpisode]> {
        Arc::clone(&self.episodes)
    }
}

impl SelectedEpisode {
    /// `None` if no frame is kept.
    fn new(episode: &EpisodeInfo, kept: &[Range<usize>]) -> Option<Self> {
        let narrow =
            |frame: usize| u32::try_from(frame).expect("the episode's length is checked before");
        let kept: Box<[_]> = kept
            .iter()
            .map(|range| narrow(range.start)..narrow(range.end))
            .collect();
        let num_frames = kept.iter().map(|range| range.end - range.start).sum();
        (num_frames > 0).then_some(Self {
            episode_index: episode.episode_index,
            length: episode.length,
            file: episode.file,
            kept,
            num_frames,
        })
    }

    /// The dataset's own number of the episode.
    #[must_use]
    pub fn episode_index(&self) -> usize {
        self.episode_index
    }

    /// The episode's length in frames, whether they are kept or not.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The position, among the dataset's data files, of the parquet file that holds it.
    #[must_use]
    pub fn file(&self) -> usize {
        self.file
    }

    /// The number of frames that are kept, at least 1.
    #[must_use]
    pub fn num_frames(&self) -> u64 {
        self.num_frames.into()
    }

    /// The same episode with these frames alone, which are some of its own, ascending.
    fn only(&self, frames: &[u32]) -> Self {
        let mut kept: Vec<Range<u32>> = Vec::new();
        for &frame in frames {
            match kept.last_mut() {
                Some(last) if last.end == frame => last.end += 1,
                _ => kept.push(frame..frame + 1),
            }
        }
        Self {
            kept: kept.into(),
            num_frames: frames.len() as u32,
            ..*self
        }
    }

    /// The ranges of frames that are kept, ascending, apart from each other, none of them empty.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        let wide = |range: &Range<u32>| range.start as usize..range.end as usize;
        self.kept.iter().map(wide)
    }

    /// The indices of the frames that are kept, ascending.
    pub fn frames(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept().map(|frame| frame as usize)
    }

    pub(crate) fn kept(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.kept.iter().cloned().flatten()
    }
}

/// The episode numbers of a dataset, to check a filter against.
struct Dataset {
    known: BTreeSet<usize>,
}

impl Dataset {
    fn new(episodes: &[EpisodeInfo]) -> Result<Self, Error> {
        let mut known = BTreeSet::new();
        for &EpisodeInfo { episode_index, .. } in episodes {
            if !known.insert(episode_index) {
                return Err(Error::DuplicateEpisode { episode_index });
            }
        }
        Ok(Self { known })
    }

    fn check_known(&self, option: &'static str, episode_index: usize) -> Result<(), Error> {
        if self.known.contains(&episode_index) {
            return Ok(());
        }
        Err(Error::UnknownEpisode {
            option,
            episode_index,
            known: self.describe(),
        })
    }

    fn distinct(&self, option: &'static str, list: &[usize]) -> Result<BTreeSet<usize>, Error> {
        let mut distinct = BTreeSet::new();
        for &episode_index in list {
            self.check_known(option, episode_index)?;
            if !distinct.insert(episode_index) {
                return Err(Error::RepeatedEpisode {
                    option,
                    episode_index,
                    known: self.describe(),
                });
            }
        }
        Ok(distinct)
    }

    fn describe(&self) -> KnownEpisodes {
        KnownEpisodes {
            count: self.known.len(),
            first: self.known.first().copied().unwrap_or_default(),
            last: self.known.last().copied().unwrap_or_default(),
        }
    }
}

/// The frames of an episode that a filter keeps: ascending, apart from each other, none of them empty.
fn kept_ranges(episode: &EpisodeInfo, filter: &Filter) -> Result<Vec<Range<usize>>, Error> {
    let length = episode.length;
    let within = filter.drop_n_first_frames..length.saturating_sub(filter.drop_n_last_frames);
    let given = filter.keep_ranges.get(&episode.episode_index);
    for &Range { start, end } in given.into_iter().flatten() {
        if start >= end || end > length {
            return Err(Error::InvalidRange {
                episode_index: episode.episode_index,
                start,
                end,
                length,
            });
        }
    }
    let mut ranges = given
        .cloned()
        .unwrap_or_else(|| iter::once(0..length).collect());
    ranges.sort_unstable_by_key(|range| range.start);

    let mut kept: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        let range = range.start.max(within.start)..range.end.min(within.end);
        if range.is_empty() {
            continue;
        }
        match kept.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => kept.push(range),
        }
    }
    Ok(kept)
}
