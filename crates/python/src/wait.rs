//! How a Python thread waits for the engine.

use crate::opened::{EngineClosed, OpenFolder};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyTimeoutError};
use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// Interval at which a waiting thread checks for signals, such as Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// Waits without the interpreter lock, so that other Python threads run. The future runs on this thread, and is
/// dropped if the wait ends early. The wait ends with `TimeoutError` after `limit`, with `ConnectionError` if the
/// engine is closed, or with the exception of a signal handler.
pub fn wait<T, F>(py: Python<'_>, opened: &OpenFolder, limit: Option<Duration>, future: F) -> PyResult<T>
where
    F: Future<Output = Result<T, EngineClosed>> + Send,
    T: Send,
{
    here(opened)?;
    let _call = opened.begin().map_err(closed)?;
    let mut future = pin!(future);
    let began = Instant::now();
    loop {
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let turn = left.map_or(SIGNALS, |left| left.min(SIGNALS));
        let turned =
            py.detach(|| opened.threads().block_on(async { tokio::time::timeout(turn, future.as_mut()).await }));
        if let Ok(done) = turned {
            return done.map_err(closed);
        }
        py.check_signals()?;
        // A signal handler may have closed it.
        if opened.has_ended() {
            return Err(closed(EngineClosed));
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Err(PyTimeoutError::new_err("the engine was silent for too long"));
        }
    }
}

/// Rejects a call in a process that was forked from the one that opened the folder.
fn here(opened: &OpenFolder) -> PyResult<()> {
    match opened.is_forked() {
        false => Ok(()),
        true => Err(PyRuntimeError::new_err(
            "this process was forked from the one that opened the folder, and has none of the engine's threads: start it by \"spawn\"",
        )),
    }
}

/// The exception for a call that was interrupted by `close`.
fn closed(_: EngineClosed) -> PyErr {
    PyConnectionError::new_err("the folder is closed")
}
