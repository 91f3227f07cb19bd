//! A response, readable like a Python file.

use crate::opened::OpenFolder;
use crate::wait::wait;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use parking_lot::Mutex;
use pyo3::exceptions::{PyConnectionError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Error message for a response that ended before it was complete.
const OVER: &str = "the answer was closed, or broke off before";

/// A response. Reads wait at most for the timeout of its request.
#[pyclass(frozen, module = "meridian_engine")]
pub struct EngineResponse {
    /// HTTP status.
    #[pyo3(get)]
    status: u16,
    /// Its headers, in order.
    #[pyo3(get)]
    headers: Vec<(String, String)>,
    opened: Arc<OpenFolder>,
    limit: Option<Duration>,
    source: Mutex<Source>,
    is_closed: AtomicBool,
    closing: Notify,
}

/// The unread part of a response.
struct Source {
    /// The rest of the body; `None` at the end, after an error, and while a thread waits for it.
    body: Option<Pin<Box<Body>>>,
    /// Whether a thread waits for it.
    waits: bool,
    /// Whether the received data completes the response.
    is_complete: bool,
    chunks: VecDeque<Bytes>,
    bytes: usize,
}

impl EngineResponse {
    /// A response whose body has not been read.
    pub fn new(opened: Arc<OpenFolder>, response: Response<Body>, limit: Option<Duration>) -> EngineResponse {
        let (head, body) = response.into_parts();
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        EngineResponse {
            status: head.status.as_u16(),
            headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
            opened,
            limit,
            source: Mutex::new(Source {
                body: Some(Box::pin(body)),
                waits: false,
                is_complete: false,
                chunks: VecDeque::new(),
                bytes: 0,
            }),
            is_closed: AtomicBool::new(false),
            closing: Notify::new(),
        }
    }

    /// Waits for another chunk; returns false once the response is complete. A closed or interrupted response never
    /// counts as complete.
    fn more(&self, py: Python<'_>) -> PyResult<bool> {
        let mut body = {
            let mut source = self.source.lock();
            if source.waits {
                return Err(PyRuntimeError::new_err("another thread reads this answer"));
            }
            if source.is_complete {
                return Ok(false);
            }
            let Some(body) = source.body.take() else { return Err(PyConnectionError::new_err(OVER)) };
            source.waits = true;
            body
        };
        let read = self.opened.until_closed(async {
            // Created before the flag is read, so that no `close` is missed.
            let closing = self.closing.notified();
            if self.closed() {
                return Some(Err(OVER.to_owned()));
            }
            tokio::select! {
                biased;
                () = closing => Some(Err(OVER.to_owned())),
                chunk = chunk(&mut body) => chunk,
            }
        });
        let read = wait(py, &self.opened, self.limit, read);
        let mut source = self.source.lock();
        source.waits = false;
        match read {
            Ok(Some(Ok(chunk))) => {
                source.bytes += chunk.len();
                source.chunks.push_back(chunk);
                source.body = Some(body);
                return Ok(true);
            }
            Ok(None) => source.is_complete = true,
            _ => {}
        }
        drop(source);
        self.let_go(body);
        match read? {
            Some(Err(error)) => Err(PyConnectionError::new_err(error)),
            _ => Ok(false),
        }
    }

    /// Takes bytes that have arrived.
    fn take<'py>(&self, py: Python<'py>, bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut source = self.source.lock();
        let bytes = bytes.min(source.bytes);
        source.bytes -= bytes;
        PyBytes::new_with(py, bytes, |mut into| {
            while let Some(chunk) = source.chunks.front_mut().filter(|_| !into.is_empty()) {
                let part = chunk.split_to(chunk.len().min(into.len()));
                let (now, later) = mem::take(&mut into).split_at_mut(part.len());
                now.copy_from_slice(&part);
                into = later;
                if chunk.is_empty() {
                    source.chunks.pop_front();
                }
            }
            Ok(())
        })
    }

    fn arrived(&self) -> usize {
        self.source.lock().bytes
    }
}

#[pymethods]
impl EngineResponse {
    /// The mode, as in Python files.
    #[getter]
    fn mode(&self) -> &'static str {
        "rb"
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Reads the given number of bytes, or fewer at the end; by default all.
    #[pyo3(signature = (amt = None))]
    fn read<'py>(&self, py: Python<'py>, amt: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let wanted = wanted(amt);
        while self.arrived() < wanted && self.more(py)? {}
        self.take(py, wanted)
    }

    /// Returns at most the given number of bytes that have arrived; waits if there are none.
    #[pyo3(signature = (amt = None))]
    fn read1<'py>(&self, py: Python<'py>, amt: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let wanted = wanted(amt);
        while wanted > 0 && self.arrived() == 0 && self.more(py)? {}
        self.take(py, wanted)
    }

    /// Ends the work on it, and a wait in another thread.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
        py.detach(|| self.drop_body());
    }
}

impl EngineResponse {
    /// Drops the rest of the body, which ends the work on it.
    fn drop_body(&self) {
        let body = {
            let mut source = self.source.lock();
            (source.chunks, source.bytes) = (VecDeque::new(), 0);
            source.body.take()
        };
        body.into_iter().for_each(|body| self.let_go(body));
    }

    fn let_go(&self, body: Pin<Box<Body>>) {
        if self.opened.is_forked() {
            // Dropping it would wait for threads that do not exist in this process.
            return mem::forget(body);
        }
        let _entered = self.opened.threads().enter();
        drop(body);
    }
}

impl Drop for EngineResponse {
    fn drop(&mut self) {
        self.drop_body();
    }
}

fn wanted(amt: Option<isize>) -> usize {
    amt.and_then(|amt| usize::try_from(amt).ok()).unwrap_or(usize::MAX)
}

/// The next chunk of a body.
async fn chunk(body: &mut Pin<Box<Body>>) -> Option<Result<Bytes, String>> {
    loop {
        match poll_fn(|cx| body.as_mut().poll_frame(cx)).await? {
            Ok(frame) => match frame.into_data() {
                Ok(data) => return Some(Ok(data)),
                // Trailers, which carry no data here.
                Err(_) => continue,
            },
            Err(error) => return Some(Err(error.to_string())),
        }
    }
}
