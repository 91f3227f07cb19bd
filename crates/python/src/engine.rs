//! An open folder, as a Python object.

use crate::answer::EngineResponse;
use crate::opened::{Fault, OpenFolder};
use crate::wait::wait;
use axum::body::{Body, Bytes};
use axum::http::{Request, header};
use meridian_store::StoreError;
use pyo3::exceptions::{PyBlockingIOError, PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A data folder that this process has open.
#[pyclass(frozen, module = "meridian_engine")]
pub struct Engine(Arc<OpenFolder>);

#[pymethods]
impl Engine {
    /// Opens a folder; `None` keeps everything in memory. Raises `BlockingIOError` if another process has it open.
    #[new]
    #[allow(clippy::disallowed_methods, reason = "the folder of the caller, before a store opens it")]
    fn new(py: Python<'_>, folder: Option<PathBuf>, create: bool, saved_searches: bool) -> PyResult<Engine> {
        if let Some(folder) = folder.as_deref().filter(|folder| !create && !folder.is_dir()) {
            return Err(PyFileNotFoundError::new_err(format!("there is no data folder {}", folder.display())));
        }
        let opened = py.detach(|| OpenFolder::open(folder, saved_searches)).map_err(refusal)?;
        Ok(Engine(Arc::new(opened)))
    }

    /// Sends a request and returns the response once its headers are there. Raises `TimeoutError` after `timeout`
    /// seconds, and `ConnectionError` if the engine is closed.
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        target: &str,
        headers: Vec<(PyBackedStr, PyBackedStr)>,
        body: Option<PyBackedBytes>,
        timeout: Option<f64>,
    ) -> PyResult<EngineResponse> {
        // Not copied: the body borrows the memory of Python's bytes.
        let body = body.map_or_else(Body::empty, |body| Body::from(Bytes::from_owner(body)));
        let mut request = Request::builder().method(method).uri(target).header(header::HOST, "localhost");
        for (name, value) in &headers {
            request = request.header(&**name, &**value);
        }
        let request = request.body(body).map_err(|e| PyValueError::new_err(format!("no request: {e}")))?;
        let limit = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let response = wait(py, &self.0, limit, self.0.answer(request))?;
        Ok(EngineResponse::new(self.0.clone(), response, limit))
    }

    /// Ends running work and closes the folder. Does nothing if called again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.close()).map_err(|e| refusal(Fault::Store(e)))
    }
}

/// The exception for a folder that could not be opened or closed cleanly.
fn refusal(fault: Fault) -> PyErr {
    match fault {
        Fault::Store(StoreError::InUse { path }) => PyBlockingIOError::new_err(in_use(&path)),
        Fault::Store(other) => PyOSError::new_err(other.to_string()),
        Fault::Other(what) => PyOSError::new_err(what),
    }
}

fn in_use(folder: &Path) -> String {
    format!(
        "the data folder {} is in use by another process: stop that one; if it is a server, use meridian.connect(URL) with its address",
        folder.display()
    )
}
