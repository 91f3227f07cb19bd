//! The server from outside: real sockets, a real store in memory.

// Clippy takes only the test functions themselves for tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

mod alternatives;
mod asked;
mod asking;
mod bad_input;
mod bounds;
mod confirmed;
mod described;
mod doors;
mod events;
mod faults;
mod fences;
mod gone;
mod intake;
mod kept;
mod limits;
mod lines;
mod live;
mod metadata;
mod modes;
mod overload;
mod places;
mod readers;
mod reading;
mod saved;
mod searches;
mod snapshots;
mod sources;
mod stages;
mod streaming;
mod truth;
mod writing;
