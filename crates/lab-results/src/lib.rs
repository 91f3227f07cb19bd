//! Results of load: the measurements, their statistics and their display.
//!
//! # One record, two makers
//! All analysis rests on one row per request, [`record::Record`]. A real run and a simulation write the same rows into
//! the same results folder. So analysis, comparison, cost and report are independent of their origin.
//!
//! # Words
//! A *trial* is one run of a workload from idle to idle. A *KPI* is a number that a user feels: time to first result,
//! time to last result, completeness. The *mode* is the course of a trial over time: flat, growing, timing out.
//!
//! # Where to start reading
//! [`record`] is the row, and [`folder`] writes and reads rows. [`stats`] has the statistics, and [`compare`] compares
//! two runs. [`report`] shows one, with the plots of [`picture`].
#![allow(clippy::disallowed_methods, reason = "the lab works from outside, with the clocks and files of its machine")]

pub mod atomic;
pub mod compare;
pub mod error;
pub mod folder;
pub mod picture;
pub mod random;
pub mod record;
pub mod report;
pub mod stats;

pub use error::LabError;
