//! What a checkpoint keeps of a loader.

use std::fmt;

use pool_core::{Admission, Selection, ShardUnit};
use resume::{EpochEnd, State};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Error;

/// The version that is written.
const VERSION: u64 = 1;

/// Where a run stands, the same for every rank: small, versioned JSON.
///
/// Made by [`LoaderEpoch::state_dict`](crate::LoaderEpoch::state_dict), and read back by [`from_json`](Self::from_json) or `serde`. A trainer's own
/// `{"batches_consumed": 1200, "batch_size": 32}` is one, too: it means so many batches since the run began, with the topology and the
/// options that it has now.
///
/// # Examples
///
/// ```
/// use episode_pool::StateDict;
///
/// let state = StateDict::from_json(r#"{"batches_consumed": 1200, "batch_size": 32}"#)?;
/// assert_eq!(state.batches_consumed(), 1200);
/// assert_eq!(state.epoch(), None);
/// assert!(StateDict::from_json(r#"{"version": 99}"#).is_err());
/// # Ok::<(), episode_pool::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StateDict {
    pub(crate) state: State,
    pub(crate) details: Option<Details>,
}

/// What tells a state from that of another run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Details {
    pub(crate) epoch: u64,
    /// The batches that each rank has taken of this epoch under `options`.
    pub(crate) batches_in_epoch: u64,
    #[serde(flatten)]
    pub(crate) options: OrderOptions,
    /// What was done of this epoch before, under other options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<EarlierLeg>,
    pub(crate) dataset: Fingerprint,
}

/// Some batches of an epoch that were taken under one set of options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EarlierLeg {
    /// By each rank.
    pub(crate) batches: u64,
    pub(crate) batch_size: u64,
    #[serde(flatten)]
    pub(crate) options: OrderOptions,
}

/// All that an epoch's order depends on, apart from the dataset, the epoch and the batch size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderOptions {
    pub(crate) seed: u64,
    pub(crate) episode_pool_size: usize,
    pub(crate) shuffle: bool,
    /// Earlier states do not have it.
    #[serde(with = "AdmissionSpelling", default)]
    pub(crate) admission: Admission,
    #[serde(with = "ShardUnitSpelling")]
    pub(crate) shard_unit: ShardUnit,
    pub(crate) max_num_shards: Option<usize>,
    pub(crate) drop_last: bool,
    #[serde(with = "EpochEndSpelling")]
    pub(crate) epoch_end: EpochEnd,
    pub(crate) canonical_consumers: Option<usize>,
    pub(crate) world_size: usize,
    pub(crate) num_workers: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Admission", rename_all = "snake_case")]
enum AdmissionSpelling {
    Shuffled,
    FileGrouped,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ShardUnit", rename_all = "snake_case")]
enum ShardUnitSpelling {
    Episode,
    File,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "EpochEnd", rename_all = "snake_case")]
enum EpochEndSpelling {
    Exact,
    DropTail,
    Wrap,
}

/// What tells one dataset, and one choice of its frames, from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// The source's name for the version of its files; none where it has no versions.
    pub(crate) revision: Option<String>,
    pub(crate) total_frames: u64,
    pub(crate) total_episodes: u64,
    /// SHA-256 of every episode's number and length, each a little-endian u64, in the dataset's order.
    pub(crate) episode_lengths: String,
    /// The same of every selected episode's number, its number of ranges of frames, and the start and end of each.
    pub(crate) selection: String,
}

impl Fingerprint {
    pub(crate) fn new(
        revision: Option<String>,
        episodes: impl Iterator<Item = (usize, usize)>,
        selection: &Selection,
    ) -> Self {
        let (mut total_frames, mut total_episodes) = (0, 0);
        let lengths = digest(episodes.flat_map(|(episode_index, length)| {
            total_frames += length as u64;
            total_episodes += 1;
            [episode_index, length]
        }));
        let selected = selection.episodes().iter().flat_map(|episode| {
            let ranges = episode.ranges();
            let head = [episode.episode_index(), ranges.len()];
            head.into_iter()
                .chain(ranges.flat_map(|range| [range.start, range.end]))
        });
        Self {
            revision,
            total_frames,
            total_episodes,
            episode_lengths: lengths,
            selection: digest(selected),
        }
    }
}

fn digest(numbers: impl Iterator<Item = usize>) -> String {
    let mut sha256 = Sha256::new();
    for number in numbers {
        sha256.update((number as u64).to_le_bytes());
    }
    let bytes = sha256.finalize();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

impl StateDict {
    /// The batches that each rank has taken since the run began.
    #[must_use]
    pub fn batches_consumed(&self) -> u64 {
        self.state.batches_consumed
    }

    /// The samples in a full batch.
    #[must_use]
    pub fn batch_size(&self) -> u64 {
        self.state.batch_size
    }

    /// The epoch, where the state tells it.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.details.as_ref().map(|details| details.epoch)
    }

    /// Reads a state: one that [`to_json`](Self::to_json) wrote, or the bare `{"batches_consumed": .., "batch_size": ..}`. Members of an object that
    /// it does not know are left alone.
    ///
    /// # Errors
    ///
    /// [`Error::State`] if it is no state, or of a version that this release does not know.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let value = serde_json::from_str(text).map_err(|error| Error::State {
            reason: error.to_string(),
        })?;
        Self::from_value(&value).map_err(|reason| Error::State { reason })
    }

    /// The state as JSON, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        let object = value
            .as_object()
            .ok_or_else(|| format!("expected an object, found {}", kind(value)))?;
        let details = match object.get("version") {
            None if object.contains_key("epoch") => {
                return Err("`epoch` is there, but not `version`".to_owned());
            }
            None => None,
            Some(version) if version.as_u64() == Some(VERSION) => {
                Some(Details::deserialize(value).map_err(|error| error.to_string())?)
            }
            Some(version) => {
                return Err(format!(
                    "it is of version {version}, and this release reads version {VERSION}; use the release that wrote it, or a \
                     later one"
                ));
            }
        };
        let number = |key: &str| {
            let number = object
                .get(key)
                .ok_or_else(|| format!("`{key}` is missing"))?;
            let expected = || format!("`{key}` should be a whole number, found {number}");
            number.as_u64().ok_or_else(expected)
        };
        let state = State {
            batches_consumed: number("batches_consumed")?,
            batch_size: number("batch_size")?,
        };
        if state.batch_size == 0 {
            return Err("`batch_size` is 0, expected at least 1".to_owned());
        }
        Ok(Self { state, details })
    }

    fn to_value(&self) -> Value {
        let mut object = serde_json::Map::new();
        let State {
            batches_consumed,
            batch_size,
        } = self.state;
        if self.details.is_some() {
            object.insert("version".to_owned(), VERSION.into());
        }
        object.insert("batches_consumed".to_owned(), batches_consumed.into());
        object.insert("batch_size".to_owned(), batch_size.into());
        if let Some(details) = &self.details
            && let Ok(Value::Object(details)) = serde_json::to_value(details)
        {
            object.extend(details);
        }
        Value::Object(object)
    }
}

impl From<State> for StateDict {
    fn from(state: State) -> Self {
        Self {
            state,
            details: None,
        }
    }
}

impl Serialize for StateDict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StateDict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(serde::de::Error::custom)
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// One thing in which a saved state and a loader differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is: an option's name, or a property of the dataset.
    pub what: &'static str,
    /// In the state.
    pub saved: String,
    /// In the loader.
    pub here: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was {} and is {}", self.what, self.saved, self.here)
    }
}

/// The differences between a state and what a loader has now, by their names.
#[derive(Debug, Default)]
pub(crate) struct Differences(pub(crate) Vec<Difference>);

impl Differences {
    pub(crate) fn note<T: PartialEq + fmt::Display>(
        &mut self,
        what: &'static str,
        saved: T,
        here: T,
    ) {
        if saved != here {
            self.0.push(Difference {
                what,
                saved: saved.to_string(),
                here: here.to_string(),
            });
        }
    }

    /// Where it is another dataset, or other frames of it.
    pub(crate) fn of_datasets(saved: &Fingerprint, here: &Fingerprint) -> Self {
        let mut differences = Self::default();
        differences.note("total_frames", saved.total_frames, here.total_frames);
        differences.note("total_episodes", saved.total_episodes, here.total_episodes);
        let digests = [
            (
                "episode_lengths",
                &saved.episode_lengths,
                &here.episode_lengths,
            ),
            ("the selection of frames", &saved.selection, &here.selection),
        ];
        for (what, saved, here) in digests {
            differences.note(what, saved, here);
        }
        differences
    }

    /// Where an option is another. Topologies may differ.
    pub(crate) fn of_options(saved: &OrderOptions, here: &OrderOptions) -> Self {
        let mut differences = Self::default();
        differences.note("seed", saved.seed, here.seed);
        differences.note(
            "episode_pool_size",
            saved.episode_pool_size,
            here.episode_pool_size,
        );
        differences.note("shuffle", saved.shuffle, here.shuffle);
        differences.note(
            "admission",
            admission_name(saved.admission),
            admission_name(here.admission),
        );
        differences.note(
            "shard_unit",
            shard_unit_name(saved.shard_unit),
            shard_unit_name(here.shard_unit),
        );
        differences.note(
            "max_num_shards",
            or_none(saved.max_num_shards),
            or_none(here.max_num_shards),
        );
        differences.note("drop_last", saved.drop_last, here.drop_last);
        differences.note(
            "epoch_end",
            saved.epoch_end.to_string(),
            here.epoch_end.to_string(),
        );
        differences.note(
            "canonical_consumers",
            or_none(saved.canonical_consumers),
            or_none(here.canonical_consumers),
        );
        differences
    }
}

fn admission_name(admission: Admission) -> &'static str {
    match admission {
        Admission::Shuffled => "shuffled",
        Admission::FileGrouped => "file_grouped",
    }
}

fn shard_unit_name(unit: ShardUnit) -> &'static str {
    match unit {
        ShardUnit::Episode => "episode",
        ShardUnit::File => "file",
    }
}

fn or_none(number: Option<usize>) -> String {
    number.map_or_else(|| "none".to_owned(), |number| number.to_string())
}

/// Several, in a sentence.
pub(crate) fn listed(differences: &[Difference]) -> String {
    let texts: Vec<String> = differences.iter().map(Difference::to_string).collect();
    texts.join("; ")
}
