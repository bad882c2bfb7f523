//! Whole batches, made by threads.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use episode_pool::{Array, Error, LoaderEpoch, StateDict, WorkerTimes};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::normalize::Scales;
use crate::options::BatchOptions;
use crate::pool::Pool;
use crate::process::{Here, Permit};
use crate::{array, error, waiting};

/// All workers of a rank, as threads.
#[pyclass(frozen, module = "episode_pool._episode_pool")]
#[derive(Debug)]
pub(crate) struct Loader {
    loader: Mutex<Here<episode_pool::Loader>>,
    scales: Arc<Scales>,
}

#[pymethods]
impl Loader {
    #[new]
    fn new(
        pool: &Pool,
        num_workers: usize,
        options: BatchOptions,
        scales: Scales,
    ) -> PyResult<Self> {
        let options = options.into_options()?;
        for field in pool.pool.fields() {
            if let Some(scale) = scales.get(field.key()) {
                scale.check(field.key(), field.shape().iter().product())?;
            }
        }
        let loader = episode_pool::Loader::new(&pool.worker(0, num_workers)?, options);
        Ok(Self {
            loader: Mutex::new(Here::new(loader.map_err(|e| error::to_python(&e))?)),
            scales: Arc::new(scales),
        })
    }

    /// What is legal and perhaps not meant about the ends of epochs.
    fn warnings(&self) -> PyResult<Vec<String>> {
        self.with(|loader| Ok(texts(loader.warnings())))
    }

    /// The number of batches of an epoch, of this rank.
    fn num_batches(&self) -> PyResult<u64> {
        self.with(|loader| Ok(loader.num_batches()))
    }

    /// The state at the start of an epoch, as JSON.
    fn state(&self, py: Python<'_>, epoch: u64) -> PyResult<String> {
        py.detach(|| self.with(|loader| Ok(loader.state_dict(epoch).to_json())))
    }

    /// The epoch in which a saved state lies.
    fn epoch_after(&self, py: Python<'_>, state: &str, strict: bool) -> PyResult<u64> {
        py.detach(|| self.with(|loader| loader.epoch_after(&StateDict::from_json(state)?, strict)))
    }

    /// The batches of an epoch.
    fn epoch(&self, py: Python<'_>, epoch: u64) -> PyResult<BatchIter> {
        let permit = Permit::new()?;
        let batches = py.detach(|| self.with(|loader| loader.epoch(epoch)));
        Ok(BatchIter::new(batches?, permit, &self.scales))
    }

    /// The rest of the epoch in which a saved state lies.
    fn resume(&self, py: Python<'_>, state: &str, strict: bool) -> PyResult<BatchIter> {
        let permit = Permit::new()?;
        let batches = py.detach(|| {
            self.with(|loader| loader.load_state_dict(&StateDict::from_json(state)?, strict))
        });
        Ok(BatchIter::new(batches?, permit, &self.scales))
    }
}

impl Loader {
    fn with<T>(
        &self,
        use_it: impl FnOnce(&episode_pool::Loader) -> Result<T, Error>,
    ) -> PyResult<T> {
        let mut here = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
        let loader = here.get()?.expect("a loader is never taken from its place");
        use_it(loader).map_err(|error| error::to_python(&error))
    }
}

/// The rest of a rank's epoch: an iterator over dicts of whole batches.
#[pyclass(frozen, module = "episode_pool._episode_pool")]
#[derive(Debug)]
pub(crate) struct BatchIter {
    epoch: u64,
    warnings: Vec<String>,
    scales: Arc<Scales>,
    reading: Mutex<Here<Reading>>,
}

/// A batch's arrays by their names.
type Entries = Vec<(Arc<str>, Array)>;

#[derive(Debug)]
struct Reading {
    batches: LoaderEpoch,
    /// `None` once the workers have ended.
    permit: Option<Permit>,
}

impl BatchIter {
    fn new(batches: LoaderEpoch, permit: Permit, scales: &Arc<Scales>) -> Self {
        Self {
            scales: Arc::clone(scales),
            epoch: batches.epoch(),
            warnings: texts(batches.warnings()),
            reading: Mutex::new(Here::new(Reading {
                batches,
                permit: Some(permit),
            })),
        }
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Reading) -> T) -> PyResult<Option<T>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(reading.get()?.map(use_it))
    }

    /// The next batch; the outer `None` when it is still being made.
    fn ask(&self, patience: Duration) -> PyResult<Option<Option<Entries>>> {
        let next = self.with(|reading| {
            let next = reading.batches.next_within(patience);
            if !matches!(next, Ok(Some(Ok(_))) | Err(_)) {
                reading.permit = None;
            }
            next
        });
        match next? {
            None | Some(Ok(None)) => Ok(Some(None)),
            Some(Ok(Some(Ok(batch)))) => {
                let entries = batch.fields.into_entries();
                let scaled = entries.map(|(key, array)| match self.scales.get(&*key) {
                    Some(scale) => (key, scale.apply(array)),
                    None => (key, array),
                });
                Ok(Some(Some(scaled.collect())))
            }
            Some(Ok(Some(Err(error)))) => Err(error::to_python(&error)),
            Some(Err(_not_yet)) => Ok(None),
        }
    }
}

#[pymethods]
impl BatchIter {
    /// The epoch's number.
    #[getter]
    fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What loading a saved state found worth telling.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Where the run stands after the batches taken so far, as JSON; None once closed.
    fn state(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| self.with(|reading| reading.batches.state_dict().to_json()))
    }

    /// The digests of what this rank is to emit and of what its workers, those that are done, have emitted.
    fn coverage(&self, py: Python<'_>) -> PyResult<Option<(String, Vec<String>)>> {
        py.detach(|| {
            self.with(|reading| {
                let reports = reading.batches.reports().iter();
                let emitted = reports.map(|report| report.emitted.to_string());
                (reading.batches.owned().to_string(), emitted.collect())
            })
        })
    }

    /// Each worker's number, the seconds that its batches have cost it, and the seconds that they were waited for.
    fn worker_times(&self, py: Python<'_>) -> PyResult<Option<Vec<(usize, f64, f64)>>> {
        let seconds = |times: WorkerTimes| {
            let (loading, waited) = (times.loading, times.waited);
            (times.worker, loading.as_secs_f64(), waited.as_secs_f64())
        };
        py.detach(|| {
            self.with(|reading| {
                let times = reading.batches.worker_times().into_iter();
                times.map(seconds).collect()
            })
        })
    }

    /// Stops the workers at once.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            reading.take().map(drop)
        })
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        match waiting::wait_for(py, |patience| self.ask(patience))? {
            Some(batch) => array::fields(py, batch).map(Some),
            None => Ok(None),
        }
    }
}

impl Drop for BatchIter {
    fn drop(&mut self) {
        let reading = self
            .reading
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Ok(Some(reading)) = reading.take() {
            waiting::end(reading);
        }
    }
}

fn texts(warnings: &[episode_pool::Warning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}
