//! A dataset with its options, and a rank's place.

use std::collections::BTreeMap;

use episode_pool::pool_core::{Coverage, CoverageReport, Topology};
use episode_pool::{ElementType, EpisodePool, Error, Loader, LoaderOptions, StateDict};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::PoolOptions;
use crate::process::Permit;
use crate::samples::SampleIter;
use crate::{array, error};

/// A dataset as one rank sees it. Nothing in it has threads.
#[pyclass(frozen, module = "episode_pool._episode_pool")]
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) pool: EpisodePool,
}

/// A field's name, element type, shape in one sample, and whether it holds pictures.
type FieldTuple = (String, &'static str, Vec<usize>, bool);

#[pymethods]
impl Pool {
    #[new]
    fn new(py: Python<'_>, source: &str, options: PoolOptions) -> PyResult<Self> {
        let builder = options.builder(source)?;
        let pool = py.detach(|| builder.build()).map_err(raise)?;
        Ok(Self { pool })
    }

    /// What building found worth telling.
    fn warnings(&self) -> Vec<String> {
        self.pool
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// The text of meta/info.json.
    fn info_json(&self) -> &str {
        self.pool.metadata().info().json()
    }

    /// The text of meta/stats.json, where the dataset has it.
    fn stats_json(&self) -> Option<&str> {
        let stats = self.pool.metadata().stats()?;
        Some(stats.json())
    }

    /// The sentences by their numbers.
    fn tasks(&self) -> BTreeMap<i64, String> {
        let tasks = self.pool.metadata().tasks().iter();
        tasks
            .map(|(index, text)| (index, text.to_owned()))
            .collect()
    }

    /// Requests, retries, and bytes fetched.
    fn fetched(&self) -> (u64, u64, u64) {
        let stats = self.pool.fetch_stats();
        (stats.requests, stats.retries, stats.bytes_fetched)
    }

    #[getter]
    fn fps(&self) -> f64 {
        self.pool.metadata().info().fps()
    }

    #[getter]
    fn total_frames(&self) -> usize {
        self.pool.metadata().total_frames()
    }

    #[getter]
    fn total_episodes(&self) -> usize {
        self.pool.metadata().episodes().len()
    }

    /// Every episode's number and length.
    fn episode_lengths(&self) -> Vec<(usize, usize)> {
        let episodes = self.pool.metadata().episodes().iter();
        episodes
            .map(|episode| (episode.episode_index(), episode.length()))
            .collect()
    }

    /// The fields of a sample, in order.
    fn fields(&self) -> Vec<FieldTuple> {
        let field = |field: &episode_pool::Field| {
            (
                field.key().to_owned(),
                dtype(field.element_type()),
                field.shape().to_vec(),
                field.is_camera(),
            )
        };
        self.pool.fields().iter().map(field).collect()
    }

    #[getter]
    fn rank(&self) -> usize {
        self.pool.topology().rank()
    }

    #[getter]
    fn world_size(&self) -> usize {
        self.pool.topology().world_size()
    }

    /// The frames that all ranks emit in an epoch.
    #[getter]
    fn fleet_frames(&self) -> u64 {
        self.pool.fleet_coverage().num_frames()
    }

    /// The digest of those.
    fn fleet_coverage(&self) -> String {
        self.pool.fleet_coverage().to_string()
    }

    /// The frames that this rank emits in an epoch.
    #[getter]
    fn num_frames(&self) -> u64 {
        self.pool.num_frames()
    }

    /// The sample of one frame, by its number in the dataset.
    fn sample<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let sample = py.detach(|| self.pool.sample(index)).map_err(raise)?;
        array::fields(py, sample.fields.into_entries())
    }

    /// A worker's samples of an epoch, after the first `skip`.
    #[pyo3(signature = (epoch, worker, num_workers, skip, prefetch))]
    fn samples(
        &self,
        py: Python<'_>,
        epoch: u64,
        worker: usize,
        num_workers: usize,
        skip: u64,
        prefetch: usize,
    ) -> PyResult<SampleIter> {
        let permit = Permit::new()?;
        let pool = self.worker(worker, num_workers)?;
        let samples = py.detach(|| {
            // A worker may be idle, a rank may not.
            if pool.num_frames() == 0 && pool.worker_frames()?.iter().all(|frames| *frames == 0) {
                return Err(nothing_to_emit(&pool));
            }
            pool.epoch_from(epoch, skip)
        });
        SampleIter::start(samples.map_err(raise)?, permit, prefetch)
    }

    /// The epoch in which a saved state lies.
    #[pyo3(signature = (state, drop_last, strict, num_workers))]
    fn epoch_after(
        &self,
        py: Python<'_>,
        state: &str,
        drop_last: bool,
        strict: bool,
        num_workers: usize,
    ) -> PyResult<u64> {
        let pool = self.worker(0, num_workers)?;
        py.detach(|| {
            let state = StateDict::from_json(state)?;
            loader(&pool, &state, drop_last)?.epoch_after(&state, strict)
        })
        .map_err(raise)
    }

    /// A worker's samples of the rest of the epoch in which a saved state lies, for a DataLoader, whose worker 0 is the first in turn.
    /// None when it has no more.
    #[pyo3(signature = (state, drop_last, strict, worker, num_workers, prefetch))]
    #[expect(
        clippy::too_many_arguments,
        reason = "called from one place, in Python"
    )]
    fn samples_after(
        &self,
        py: Python<'_>,
        state: &str,
        drop_last: bool,
        strict: bool,
        worker: usize,
        num_workers: usize,
        prefetch: usize,
    ) -> PyResult<Option<SampleIter>> {
        let permit = Permit::new()?;
        let pool = self.worker(worker, num_workers)?;
        let samples = py.detach(|| {
            let state = StateDict::from_json(state)?;
            loader(&pool, &state, drop_last)?.samples_after(&state, strict, worker)
        });
        match samples.map_err(raise)? {
            Some(samples) => SampleIter::start(samples, permit, prefetch).map(Some),
            None => Ok(None),
        }
    }

    /// Compares digests of what was emitted, over all consumers, with what was selected: whether each came once, and a sentence.
    fn check_coverage(&self, emitted: Vec<String>) -> PyResult<(bool, String)> {
        let mut sum = Coverage::default();
        for text in emitted {
            let part: Coverage = text
                .parse()
                .map_err(|error| PyValueError::new_err(format!("{error}")))?;
            sum.merge(part);
        }
        let report = CoverageReport::new(self.pool.fleet_coverage(), sum);
        Ok((report.exactly_once, report.to_string()))
    }

    /// The digest of frames, by episode and frame.
    #[staticmethod]
    fn digest(frames: Vec<(usize, usize)>) -> String {
        let mut coverage = Coverage::default();
        for (episode_index, frame_index) in frames {
            coverage.record(episode_index, frame_index);
        }
        coverage.to_string()
    }
}

impl Pool {
    /// The pool as one of the rank's workers sees it.
    pub(crate) fn worker(&self, worker: usize, num_workers: usize) -> PyResult<EpisodePool> {
        let topology: Result<Topology, Error> = self
            .pool
            .topology()
            .with_worker(worker, num_workers)
            .map_err(Error::from);
        topology
            .and_then(|topology| self.pool.with_topology(topology))
            .map_err(raise)
    }
}

/// A loader that understands a state, for what comes after it.
fn loader(pool: &EpisodePool, state: &StateDict, drop_last: bool) -> Result<Loader, Error> {
    let options = LoaderOptions {
        batch_size: usize::try_from(state.batch_size()).unwrap_or(usize::MAX),
        drop_last,
        ..LoaderOptions::default()
    };
    Loader::new(pool, options)
}

fn nothing_to_emit(pool: &EpisodePool) -> Error {
    let topology = pool.topology();
    Error::NothingToEmit {
        rank: topology.rank(),
        world_size: topology.world_size(),
        worker: topology.worker(),
        num_workers: topology.num_workers(),
    }
}

fn dtype(element_type: ElementType) -> &'static str {
    match element_type {
        ElementType::Bool => "bool",
        ElementType::I8 => "int8",
        ElementType::I16 => "int16",
        ElementType::I32 => "int32",
        ElementType::I64 => "int64",
        ElementType::U8 => "uint8",
        ElementType::U16 => "uint16",
        ElementType::U32 => "uint32",
        ElementType::U64 => "uint64",
        ElementType::F32 => "float32",
        _ => "str",
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn raise(error: Error) -> PyErr {
    error::to_python(&error)
}
