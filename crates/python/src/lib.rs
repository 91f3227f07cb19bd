//! The engine as a Python module, `meridian_engine`: a data folder without a server.
//!
//! The Python package `meridian` (`clients/python`) sends it the same requests as a server. So every response equals
//! the server's, and this crate needs no knowledge of them:
//! - `opened.rs`: an open folder, its threads, and their shutdown;
//! - `engine.rs`: a request;
//! - `answer.rs`: a response, readable like a Python file;
//! - `wait.rs`: how a Python thread waits.

// The macros of pyo3 generate unsafe code; this crate has none of its own.
#![allow(unsafe_code)]

mod answer;
mod engine;
mod opened;
mod wait;

use answer::EngineResponse;
use engine::Engine;
use pyo3::prelude::*;

/// The engine of Meridian in this process. Programs use it through `meridian.open`.
#[pymodule]
fn meridian_engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Engine>()?;
    module.add_class::<EngineResponse>()
}
