//! Waiting for a thread without keeping Python from its own: the interpreter goes on, and Ctrl-C is heard.

use std::time::Duration;

use pyo3::prelude::*;

/// How long Ctrl-C may go unheard.
const PATIENCE: Duration = Duration::from_millis(20);

/// Asks again and again until there is an answer; between, Python's signal handlers run, and may raise.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    mut ask: impl FnMut(Duration) -> PyResult<Option<T>> + Send,
) -> PyResult<T> {
    loop {
        py.check_signals()?;
        if let Some(answer) = py.detach(|| ask(PATIENCE))? {
            return Ok(answer);
        }
    }
}

/// Ends something while other threads of Python's go on; at the interpreter's own end, there are none.
pub(crate) fn end<T: Send>(value: T) {
    let mut value = Some(value);
    Python::try_attach(|py| py.detach(|| drop(value.take())));
    drop(value);
}
