//! Load on any server, from outside, over public interfaces only.
//!
//! A *scenario* is written by the user: the targets, the populations, their requests, and the definition of a sound
//! response. A *trial* is one run of it from idle to idle.
//!
//! # Where to start reading
//! [`scenario`] is the file, and [`generate`] makes its requests. [`driver`] runs it against targets over the
//! [`protocol`]s and writes a results folder. [`check`] decides which responses are sound, and [`sample`] monitors
//! processes meanwhile. [`mock`] has servers to try all that on.
#![allow(clippy::disallowed_methods, reason = "the lab works from outside, with the clocks and files of its machine")]

mod check;
mod clock;
pub mod driver;
#[doc(hidden)]
pub mod fuzzed;
pub mod generate;
pub mod mock;
mod protocol;
mod rest;
pub mod sample;
pub mod scenario;
