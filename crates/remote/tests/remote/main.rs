//! A gateway's backend against the owner's, over a real socket.

// Clippy treats only the test functions themselves as tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "tests read clocks as they are")]

mod equal;
mod errors;
mod groups;
mod links;
mod proxy;
mod refusals;
mod reluctant;
mod scans;
mod subscribers;
mod world;
mod writes;
