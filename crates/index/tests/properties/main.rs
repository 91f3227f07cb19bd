//! Every result of the index, compared with naive scans over random events.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod bytes;
mod events;
mod order;
mod pyramid;
mod trees;
