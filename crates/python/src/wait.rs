//! How a thread of Python waits for the engine.

use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How often a waiting thread looks for signals, such as that of Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// Waits without the lock of the interpreter, so that other threads of Python run. The future runs on this thread, and is dropped where the
/// wait ends early: with `TimeoutError` after `limit`, or with the exception of a signal.
pub fn wait<F>(py: Python<'_>, runtime: &Handle, limit: Option<Duration>, future: F) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let mut future = pin!(future);
    let began = Instant::now();
    loop {
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let turn = left.map_or(SIGNALS, |left| left.min(SIGNALS));
        let turned = py.detach(|| runtime.block_on(async { tokio::time::timeout(turn, future.as_mut()).await }));
        if let Ok(done) = turned {
            return Ok(done);
        }
        py.check_signals()?;
        if left.is_some_and(|left| left.is_zero()) {
            return Err(PyTimeoutError::new_err("the engine was silent for too long"));
        }
    }
}
