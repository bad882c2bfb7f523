//! One consumer's samples, made ahead by a thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use episode_pool::{Epoch, Error, Sample};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::process::{Here, Permit};
use crate::{array, error, waiting};

/// The rest of one consumer's epoch: an iterator over dicts.
#[pyclass(frozen, module = "episode_pool._episode_pool")]
#[derive(Debug)]
pub(crate) struct SampleIter {
    epoch: u64,
    remaining: u64,
    reading: Mutex<Here<Reading>>,
}

/// A thread that makes samples, and where they come out.
#[derive(Debug)]
struct Reading {
    samples: Option<Receiver<Result<Sample, Error>>>,
    interrupter: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _permit: Permit,
}

impl SampleIter {
    /// Starts the thread, which is at most `prefetch` samples ahead of who takes them.
    pub(crate) fn start(epoch: Epoch, permit: Permit, prefetch: usize) -> PyResult<Self> {
        let (number, remaining) = (epoch.epoch(), epoch.remaining());
        let interrupter = epoch.interrupter();
        let (sender, samples) = sync_channel(prefetch);
        let run = move || {
            for sample in epoch {
                if sender.send(sample).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("episode-pool".to_owned())
            .spawn(run)
            .map_err(|error| {
                PyRuntimeError::new_err(format!("cannot start a thread to read with: {error}"))
            })?;
        Ok(Self {
            epoch: number,
            remaining,
            reading: Mutex::new(Here::new(Reading {
                samples: Some(samples),
                interrupter,
                thread: Some(thread),
                _permit: permit,
            })),
        })
    }

    fn ask(&self, patience: Duration) -> PyResult<Option<Option<Sample>>> {
        let mut here = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Reading {
            samples: Some(samples),
            ..
        }) = here.get()?
        else {
            return Ok(Some(None));
        };
        match samples.recv_timeout(patience) {
            Ok(sample) => sample
                .map(|sample| Some(Some(sample)))
                .map_err(|error| error::to_python(&error)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let thread = here.take()?.and_then(|mut reading| reading.thread.take());
                if thread.is_some_and(|thread| thread.join().is_err()) {
                    let message = "the thread that reads ended unexpectedly";
                    return Err(PyRuntimeError::new_err(message));
                }
                Ok(Some(None))
            }
        }
    }
}

#[pymethods]
impl SampleIter {
    /// The epoch's number.
    #[getter]
    fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of samples that were to come when it began.
    #[getter]
    fn num_samples(&self) -> u64 {
        self.remaining
    }

    /// Stops the thread at once.
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
            Some(sample) => array::fields(py, sample.fields.into_entries()).map(Some),
            None => Ok(None),
        }
    }
}

impl Drop for SampleIter {
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

impl Drop for Reading {
    fn drop(&mut self) {
        self.interrupter.store(true, Ordering::Relaxed);
        self.samples = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, nobody waits for its samples any more.
            let _ = thread.join();
        }
    }
}
