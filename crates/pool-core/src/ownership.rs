//! Who owns what: the episodes of a selection, shared out among all consumers.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::limits::MAX_FLEET;
use crate::selection::{SelectedEpisode, Selection};
use crate::topology::Topology;
use crate::warning::Warning;

/// What is shared out among the consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShardUnit {
    /// Single episodes: contiguous runs of them, balanced by frames. No consumer idles unless there are fewer episodes
    /// than consumers, and neighbours share few files.
    #[default]
    Episode,
    /// Whole data files, dealt out one by one. A file is read by one consumer only, and consumers may get unequal shares or
    /// nothing.
    File,
}

/// How episodes are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sharding {
    /// What is shared out.
    pub unit: ShardUnit,
    /// For [`ShardUnit::File`]: the number of shards that files are grouped into, neighbours together; by default every file
    /// is a shard of its own, and so it is if there are fewer files than this. Otherwise it has no effect, and a warning.
    pub max_num_shards: Option<usize>,
}

/// The episodes that one consumer owns for an epoch.
///
/// The shares of all consumers of a topology are disjoint, and together they are the selection. A share depends on the
/// selection, the topology and the sharding; never on seed or epoch.
///
/// Shares are rarely equal. [`num_frames`](Self::num_frames) tells each one's frames before the start, of any consumer: whoever
/// needs the same number of steps on all ranks can compute it from that.
///
/// # `ShardUnit::Episode`
///
/// The selected episodes stand in a row, in dataset order, `T` frames in all. The row is cut into `C` runs, one for each
/// consumer, rank by rank and each rank's workers in turn: so a rank's share is one run, and its workers share that. Cut `c`
/// would ideally lie at frame `c * T / C`, and is made at the boundary between episodes that is nearest to it (at the lower of
/// two). Where that would leave a consumer without an episode, the cut moves on, so that with at least as many episodes as
/// consumers nobody idles. With fewer, each is a run of its own, and they are spread evenly over the consumers.
///
/// Every share then differs from the ideal `T / C` frames by at most the longest episode. (A cut is half of that from its
/// ideal place at most. A cut that moved ends a run of one episode; and if `T / C` exceeds the longest episode, then none
/// moves, since neighbouring ideal places always have a boundary of their own.)
///
/// A worked example: episodes of 4, 3, 8, 5, 2 and 6 frames, 28 in all, for 2 ranks of 2 workers, so 7 frames each would be
/// ideal. The boundaries lie at frames 0, 4, 7, 15, 20, 22 and 28. The cuts would be at 7 (there is a boundary), 14 (the
/// nearest is 15) and 21 (20 and 22 are as near; the lower is taken):
///
/// ```
/// use pool_core::{EpisodeInfo, Filter, Selection, Share, Sharding, Topology};
///
/// let lengths = [4, 3, 8, 5, 2, 6];
/// let episodes: Vec<_> = (0..).zip(lengths).map(|(i, length)| EpisodeInfo { episode_index: i, length, file: 0 }).collect();
/// let selection = Selection::new(&episodes, &Filter::default())?;
///
/// let mut shares = Vec::new();
/// for (rank, worker) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
///     let share = Share::new(&selection, &Topology::new(rank, 2, worker, 2)?, &Sharding::default())?;
///     shares.push((share.positions().collect::<Vec<_>>(), share.num_frames()));
/// }
/// assert_eq!(shares, [(vec![0, 1], 7), (vec![2], 8), (vec![3], 5), (vec![4, 5], 8)]);
/// # Ok::<(), pool_core::Error>(())
/// ```
///
/// # `ShardUnit::File`
///
/// The data files that hold a selected episode are numbered in the dataset's order of files; or the groups that
/// `max_num_shards` makes of them, of neighbours, and as equal in number as can be. Shard `s` belongs to rank
/// `s % world_size`, and there to worker `(s / world_size) % consumers_per_rank`.
///
/// A worked example: the same episodes in files 0, 0, 1, 2, 2 and 3. Of 2 ranks with 2 workers, rank 0 owns files 0 and 2 and
/// rank 1 files 1 and 3, one for each worker:
///
/// ```
/// # use pool_core::{EpisodeInfo, Filter, Selection, ShardUnit, Share, Sharding, Topology};
/// # let (lengths, files) = ([4, 3, 8, 5, 2, 6], [0, 0, 1, 2, 2, 3]);
/// # let episodes: Vec<_> = (0..6).map(|i| EpisodeInfo { episode_index: i, length: lengths[i], file: files[i] }).collect();
/// # let selection = Selection::new(&episodes, &Filter::default())?;
/// let sharding = Sharding { unit: ShardUnit::File, max_num_shards: None };
/// let mut shares = Vec::new();
/// for (rank, worker) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
///     let share = Share::new(&selection, &Topology::new(rank, 2, worker, 2)?, &sharding)?;
///     shares.push((share.positions().collect::<Vec<_>>(), share.num_frames()));
/// }
/// assert_eq!(shares, [(vec![0, 1], 7), (vec![3, 4], 7), (vec![2], 8), (vec![5], 6)]);
/// # Ok::<(), pool_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Share {
    selection: Arc<[SelectedEpisode]>,
    /// See [`Selection::generation`].
    generation: u32,
    /// Ascending positions in the selection.
    positions: Vec<u32>,
    topology: Topology,
    num_frames: u64,
    warnings: Vec<Warning>,
}

impl Share {
    /// What a consumer of the given topology owns.
    ///
    /// # Errors
    ///
    /// If `max_num_shards` is 0.
    pub fn new(
        selection: &Selection,
        topology: &Topology,
        sharding: &Sharding,
    ) -> Result<Self, Error> {
        let rule = Rule::new(selection.episodes(), *topology, sharding)?;
        let positions = rule.positions(selection.episodes(), topology.consumer());
        Ok(Self::of(selection, *topology, positions, rule.warnings))
    }

    /// What each consumer of a whole run owns: `[world_size * consumers_per_rank]`, rank by rank. This costs little more than
    /// one share.
    ///
    /// # Errors
    ///
    /// If `world_size` or `max_num_shards` is 0, or there are more than 2^20 consumers.
    pub fn fleet(
        selection: &Selection,
        world_size: usize,
        num_workers: usize,
        sharding: &Sharding,
    ) -> Result<Vec<Self>, Error> {
        let first = Topology::new(0, world_size, 0, num_workers)?;
        if first.num_consumers() > MAX_FLEET {
            return Err(Error::FleetTooLarge {
                num_consumers: first.num_consumers(),
            });
        }
        let rule = Rule::new(selection.episodes(), first, sharding)?;
        let owned = rule.all_positions(selection.episodes());
        let share = |(consumer, positions)| {
            let per_rank = first.consumers_per_rank();
            let (rank, worker) = (consumer / per_rank, consumer % per_rank);
            let topology = Topology::new(rank, world_size, worker, num_workers)?;
            Ok(Self::of(
                selection,
                topology,
                positions,
                rule.warnings.clone(),
            ))
        };
        owned.into_iter().enumerate().map(share).collect()
    }

    fn of(
        selection: &Selection,
        topology: Topology,
        positions: Vec<u32>,
        warnings: Vec<Warning>,
    ) -> Self {
        let episodes = selection.shared_episodes();
        Self {
            num_frames: positions
                .iter()
                .map(|&position| episodes[position as usize].num_frames())
                .sum(),
            selection: episodes,
            generation: selection.generation(),
            positions,
            topology,
            warnings,
        }
    }

    /// The positions of the owned episodes in [`Selection::episodes`], ascending.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.positions.iter().map(|&position| position as usize)
    }

    /// The owned episodes, in dataset order.
    pub fn episodes(&self) -> impl ExactSizeIterator<Item = &SelectedEpisode> + '_ {
        self.positions().map(|position| &self.selection[position])
    }

    /// The number of episodes owned.
    #[must_use]
    pub fn num_episodes(&self) -> usize {
        self.positions.len()
    }

    /// The number of frames that one epoch of this consumer emits.
    #[must_use]
    pub fn num_frames(&self) -> u64 {
        self.num_frames
    }

    /// Whether this consumer owns nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The consumer that owns this.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// What is legal and yet probably not meant. All consumers of a topology get the same warnings.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The same episodes, as if another consumer owned them.
    #[cfg(feature = "contracts")]
    pub(crate) fn seen_by(self, topology: Topology) -> Self {
        Self { topology, ..self }
    }

    pub(crate) fn selection(&self) -> &Arc<[SelectedEpisode]> {
        &self.selection
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn raw_positions(&self) -> &[u32] {
        &self.positions
    }
}

/// How a selection's episodes find their owners.
struct Rule {
    topology: Topology,
    /// The data files, or the groups of them, that are dealt out; `None` where runs of episodes are.
    shards: Option<Shards>,
    warnings: Vec<Warning>,
}

impl Rule {
    fn new(
        episodes: &[SelectedEpisode],
        topology: Topology,
        sharding: &Sharding,
    ) -> Result<Self, Error> {
        if sharding.max_num_shards == Some(0) {
            return Err(Error::NoShards);
        }
        let (shards, warnings) = match sharding.unit {
            ShardUnit::Episode => {
                let warnings = episode_warnings(episodes, topology, sharding.max_num_shards);
                (None, warnings)
            }
            ShardUnit::File => {
                let shards = Shards::new(episodes, sharding.max_num_shards);
                let warnings = shards.warnings(topology);
                (Some(shards), warnings)
            }
        };
        Ok(Self {
            topology,
            shards,
            warnings,
        })
    }

    /// The episodes of one consumer, by position.
    fn positions(&self, episodes: &[SelectedEpisode], consumer: usize) -> Vec<u32> {
        match &self.shards {
            None => run_of(episodes, consumer, self.topology.num_consumers())
                .map(narrow)
                .collect(),
            Some(shards) => (0..)
                .zip(episodes)
                .filter(|(_, episode)| shards.owner(episode, self.topology) == consumer)
                .map(|(position, _)| position)
                .collect(),
        }
    }

    /// The episodes of every consumer, by position.
    fn all_positions(&self, episodes: &[SelectedEpisode]) -> Vec<Vec<u32>> {
        match &self.shards {
            None => runs(episodes, self.topology.num_consumers())
                .map(|run| run.map(narrow).collect())
                .collect(),
            Some(shards) => {
                let mut owned = vec![Vec::new(); self.topology.num_consumers()];
                for (position, episode) in (0..).zip(episodes) {
                    owned[shards.owner(episode, self.topology)].push(position);
                }
                owned
            }
        }
    }
}

fn episode_warnings(
    episodes: &[SelectedEpisode],
    topology: Topology,
    max_num_shards: Option<usize>,
) -> Vec<Warning> {
    let (num_episodes, num_consumers) = (episodes.len(), topology.num_consumers());
    let mut warnings = Vec::new();
    if let Some(max_num_shards) = max_num_shards {
        warnings.push(Warning::MaxNumShardsIgnored { max_num_shards });
    }
    if num_episodes < num_consumers {
        warnings.push(Warning::IdleConsumers {
            unit: ShardUnit::Episode,
            num_units: num_episodes,
            num_consumers,
            num_idle: num_consumers - num_episodes,
        });
    }
    warnings
}

/// The episodes, by position, between cut `consumer` and the next one.
fn run_of(episodes: &[SelectedEpisode], consumer: usize, num_consumers: usize) -> Range<usize> {
    if episodes.len() < num_consumers {
        return sparse_run(episodes.len(), consumer, num_consumers);
    }
    runs(episodes, num_consumers)
        .nth(consumer)
        .expect("a run for each consumer")
}

/// The episodes, by position, between neighbouring cuts: a run for each consumer.
fn runs(
    episodes: &[SelectedEpisode],
    num_consumers: usize,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let num_frames: u64 = episodes.iter().map(SelectedEpisode::num_frames).sum();
    let mut cut = Boundary {
        position: 0,
        frame: 0,
    };
    (0..num_consumers).map(move |consumer| {
        if episodes.len() < num_consumers {
            return sparse_run(episodes.len(), consumer, num_consumers);
        }
        let start = cut.position;
        cut = cut_after(cut, episodes, num_frames, consumer + 1, num_consumers);
        start..cut.position
    })
}

/// The run of a consumer where there are more consumers than episodes.
fn sparse_run(num_episodes: usize, consumer: usize, num_consumers: usize) -> Range<usize> {
    let cut = |consumer: usize| {
        let cut = (consumer as u128 * num_episodes as u128).div_ceil(num_consumers as u128);
        usize::try_from(cut).expect("at most the number of episodes")
    };
    cut(consumer)..cut(consumer + 1)
}

/// The place before an episode, or after the last one.
#[derive(Clone, Copy)]
struct Boundary {
    /// The number of episodes before it.
    position: usize,
    /// The number of frames before it.
    frame: u64,
}

/// Cut `consumer`, given the cut before it.
///
/// Each run gets an episode, and leaves one for each consumer after it.
fn cut_after(
    before: Boundary,
    episodes: &[SelectedEpisode],
    num_frames: u64,
    consumer: usize,
    num_consumers: usize,
) -> Boundary {
    let last_position = episodes.len() - (num_consumers - consumer);
    // In units of 1 / num_consumers of a frame, to stay exact.
    let ideal = consumer as u128 * u128::from(num_frames);
    let distance =
        |boundary: Boundary| (u128::from(boundary.frame) * num_consumers as u128).abs_diff(ideal);
    let next = |boundary: Boundary| Boundary {
        position: boundary.position + 1,
        frame: boundary.frame + episodes[boundary.position].num_frames(),
    };

    let mut cut = next(before);
    while cut.position < last_position && distance(next(cut)) < distance(cut) {
        cut = next(cut);
    }
    cut
}

/// The data files of a selection, in groups.
struct Shards {
    /// Ascending.
    files: Vec<usize>,
    num_shards: usize,
}

impl Shards {
    fn new(episodes: &[SelectedEpisode], max_num_shards: Option<usize>) -> Self {
        let distinct: BTreeSet<_> = episodes.iter().map(SelectedEpisode::file).collect();
        let files: Vec<usize> = distinct.into_iter().collect();
        Self {
            num_shards: max_num_shards.map_or(files.len(), |most| most.min(files.len())),
            files,
        }
    }

    /// The consumer that owns an episode.
    fn owner(&self, episode: &SelectedEpisode, topology: Topology) -> usize {
        let file = self
            .files
            .binary_search(&episode.file())
            .expect("every episode's file is listed");
        // There are at most 2^32 files and shards: their product fits.
        let shard = (file as u64 * self.num_shards as u64 / self.files.len() as u64) as usize;
        let (world_size, per_rank) = (topology.world_size(), topology.consumers_per_rank());
        shard % world_size * per_rank + shard / world_size % per_rank
    }

    fn warnings(&self, topology: Topology) -> Vec<Warning> {
        let (world_size, per_rank) = (topology.world_size(), topology.consumers_per_rank());
        let num_shards = self.num_shards;
        let mut warnings = Vec::new();
        if !num_shards.is_multiple_of(world_size) {
            warnings.push(Warning::ShardsNotDivisible {
                num_shards,
                world_size,
            });
        }
        let num_idle = num_idle(num_shards, world_size, per_rank);
        if num_idle > 0 {
            warnings.push(Warning::IdleConsumers {
                unit: ShardUnit::File,
                num_units: num_shards,
                num_consumers: topology.num_consumers(),
                num_idle,
            });
        }
        warnings
    }
}

/// How many consumers get none of the shards that are dealt to ranks in turn, and there to workers in turn.
fn num_idle(num_shards: usize, world_size: usize, per_rank: usize) -> usize {
    let (each, ranks_with_one_more) = (num_shards / world_size, num_shards % world_size);
    ranks_with_one_more * per_rank.saturating_sub(each + 1)
        + (world_size - ranks_with_one_more) * per_rank.saturating_sub(each)
}

fn narrow(position: usize) -> u32 {
    u32::try_from(position).expect("the number of episodes is checked when they are selected")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_consumers_are_counted_as_they_are_dealt() {
        for num_shards in 1..20 {
            for world_size in 1..6 {
                for per_rank in 1..6 {
                    let mut owners = BTreeSet::new();
                    for shard in 0..num_shards {
                        owners.insert((shard % world_size, shard / world_size % per_rank));
                    }
                    assert_eq!(
                        num_idle(num_shards, world_size, per_rank),
                        world_size * per_rank - owners.len(),
                        "{num_shards} shards, {world_size} ranks of {per_rank}",
                    );
                }
            }
        }
    }
}
