//! Plans from measurements: the breakpoint of a server, its behaviour at a size that was not tried, the cost of a user.
//!
//! [`breakpoint`] drives a target up to the largest load at which its objectives hold. [`simulate`] predicts a size that was not
//! tried, by the mechanisms that a server is made of. [`cost`] prices what either has shown.
#![allow(clippy::disallowed_methods, reason = "the lab works from outside, with the clocks and files of its machine")]

pub mod breakpoint;
pub mod cost;
pub mod simulate;
