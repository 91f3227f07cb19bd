//! The engine as a module of Python, `meridian_engine`: a data folder without a server.
//!
//! The Python package `meridian` (`clients/python`) sends the requests that it would send to a server. So every answer is the one of the
//! server, and this crate knows none of them:
//! - `opened.rs`: a folder that is open, its threads, and the end of both;
//! - `engine.rs`: a request;
//! - `answer.rs`: an answer, read as a file of Python is;
//! - `wait.rs`: how a thread of Python waits.

// The macros of pyo3 write unsafe code; this crate has none of its own.
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
