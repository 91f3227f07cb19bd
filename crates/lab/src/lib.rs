//! The lab: what a service holds, what breaks first, what a user costs.
//!
//! The lab drives any server from outside, over public interfaces only, and answers three questions: where is the
//! edge, what will happen at a size that was not tried, and what does a satisfied user cost.
//!
//! # Words
//! A *workload* (a scenario file) says who asks what, how often, and what a sound answer is. A *trial* is one run of it
//! from idle to idle. A *KPI* is a number that a user feels: time to first result, time to last result, completeness. The
//! *mode* is how a trial went over time: flat, growing, timing out. The *breakpoint* is the largest load at which an
//! objective still holds.
//!
//! # One record, two makers
//! Everything rests on one row per request, [`record::Record`]. A real run and a simulation write the same rows into the same
//! results folder, so that analysis, comparison, cost and report know nothing of where they came from.
//!
//! # Where to start reading
//! [`record`] is that row. [`scenario`] is what a user writes, [`drive`] runs it against a target, [`results`] is the folder
//! that comes of it; [`mock`] holds servers to try all that on. [`simulate`] foretells what a size that was not tried
//! would do and [`cost`] prices it, [`stats`] says what measured numbers mean, [`compare`] holds two runs against each other and
//! [`report`] shows one.

pub mod breakpoint;
pub mod compare;
pub mod cost;
pub mod drive;
pub mod error;
pub mod generate;
pub mod mock;
pub mod picture;
pub mod record;
pub mod report;
pub mod rest;
pub mod results;
pub mod sample;
pub mod scenario;
pub mod simulate;
pub mod stats;
pub mod whole;

pub use error::LabError;
