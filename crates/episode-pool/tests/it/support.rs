//! What several of these tests need.

use std::collections::BTreeMap;
use std::path::Path;

use episode_pool::pool_core::Topology;
use episode_pool::{Array, ArrayData, Builder, EpisodePool, Sample};
use serde_json::Value;

pub(crate) fn builder(root: &Path) -> Builder {
    EpisodePool::builder(root.to_str().unwrap())
}

pub(crate) fn fixture(name: &str) -> Builder {
    builder(&testkit::fixtures::dataset(name))
}

/// Windows of the given seconds for the given keys.
pub(crate) fn windows(entries: &[(&str, &[f64])]) -> BTreeMap<String, Vec<f64>> {
    entries
        .iter()
        .map(|(key, deltas)| ((*key).to_owned(), deltas.to_vec()))
        .collect()
}

/// Every consumer of a fleet.
pub(crate) fn fleet(world_size: usize, num_workers: usize) -> Vec<Topology> {
    (0..world_size)
        .flat_map(|rank| (0..num_workers.max(1)).map(move |worker| (rank, worker)))
        .map(|(rank, worker)| Topology::new(rank, world_size, worker, num_workers).unwrap())
        .collect()
}

/// All samples of an epoch.
pub(crate) fn samples(pool: &EpisodePool, epoch: u64) -> Vec<Sample> {
    pool.epoch(epoch)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// The (episode, frame) of every sample of an epoch.
pub(crate) fn order(pool: &EpisodePool, epoch: u64) -> Vec<(usize, usize)> {
    samples(pool, epoch)
        .iter()
        .map(|sample| (sample.episode_index, sample.frame_index))
        .collect()
}

/// An array as nested JSON lists, as `truth.json` has it: single precision widened to double.
pub(crate) fn json(array: &Array) -> Value {
    let elements: Vec<Value> = match array.data() {
        ArrayData::Bool(values) => values.iter().map(|&v| v.into()).collect(),
        ArrayData::I64(values) => values.iter().map(|&v| v.into()).collect(),
        ArrayData::F32(values) => values.iter().map(|&v| f64::from(v).into()).collect(),
        ArrayData::Str(values) => values.iter().map(|v| v.as_str().into()).collect(),
        other => panic!("no fixture has a feature of {:?}", other.element_type()),
    };
    nest(array.shape(), &mut elements.into_iter())
}

fn nest(shape: &[usize], elements: &mut impl Iterator<Item = Value>) -> Value {
    match shape.split_first() {
        None => elements.next().unwrap(),
        Some((&len, inner)) => (0..len).map(|_| nest(inner, elements)).collect(),
    }
}
