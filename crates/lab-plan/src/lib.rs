//! Plans from measurements: the breakpoint of a server, its behaviour at an untested size, and the cost of a user.
//!
//! [`breakpoint`] drives a target up to the largest load at which its objectives hold. [`simulate`] predicts an
//! untested size from the mechanisms of a server. [`cost`] prices the results of either.
#![allow(clippy::disallowed_methods, reason = "the lab works from outside, with the clocks and files of its machine")]

pub mod breakpoint;
pub mod cost;
pub mod simulate;
