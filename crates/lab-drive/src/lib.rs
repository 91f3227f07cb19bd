//! Load on any server, from outside, over public interfaces only.
//!
//! A *scenario* is what a user writes: the targets, the populations, their requests and what a sound answer is. A *trial* is
//! one run of it from idle to idle.
//!
//! # Where to start reading
//! [`scenario`] is the file, and [`generate`] makes its requests. [`driver`] runs it against targets over the
//! [`protocol`]s and leaves a results folder. [`check`] says which answers are sound, and [`sample`] watches
//! processes meanwhile. [`mock`] holds servers to try all that on.
#![allow(clippy::disallowed_methods, reason = "the lab works from outside, with the clocks and files of its machine")]

mod check;
mod clock;
pub mod driver;
pub mod generate;
pub mod mock;
mod protocol;
mod rest;
pub mod sample;
pub mod scenario;
