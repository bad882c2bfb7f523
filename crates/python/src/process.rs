//! Threads belong to one process: what a fork does to them is found here, and refused.

use std::process;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyErr, PyResult};

/// The process that iterates; 0 before the first time.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// How many iterators it has under way.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// The right to have threads in this process, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Permit {
    process: u32,
}

impl Permit {
    /// Refused in a process that was forked off while its parent had threads at work: they are not here, and what they had locked
    /// would stay locked for ever.
    pub(crate) fn new() -> PyResult<Self> {
        let process = process::id();
        if OWNER.load(Ordering::SeqCst) != process {
            let running = RUNNING.load(Ordering::SeqCst);
            if running > 0 {
                return Err(PyRuntimeError::new_err(format!(
                    "this process was forked while its parent was reading from {running} of episode_pool's iterators, and cannot \
                     read itself; drop or close them before the fork, or start workers with multiprocessing_context=\"spawn\" or \
                     \"forkserver\""
                )));
            }
            OWNER.store(process, Ordering::SeqCst);
        }
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Ok(Self { process })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.process == process::id() {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A value with threads: a process that was forked off neither uses nor ends them, for it does not have them.
#[derive(Debug)]
pub(crate) struct Here<T> {
    process: u32,
    value: Option<T>,
}

impl<T> Here<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            process: process::id(),
            value: Some(value),
        }
    }

    /// The value; `None` after [`take`](Self::take).
    pub(crate) fn get(&mut self) -> PyResult<Option<&mut T>> {
        self.check()?;
        Ok(self.value.as_mut())
    }

    /// The value, to end its threads.
    pub(crate) fn take(&mut self) -> PyResult<Option<T>> {
        self.check()?;
        Ok(self.value.take())
    }

    fn check(&self) -> PyResult<()> {
        if self.process == process::id() {
            Ok(())
        } else {
            Err(of_another_process())
        }
    }
}

impl<T> Drop for Here<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

pub(crate) fn of_another_process() -> PyErr {
    PyRuntimeError::new_err(
        "this iterator or loader was made before the process was forked, and its threads are in the parent; make another one here",
    )
}
