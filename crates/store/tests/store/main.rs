//! The store from outside: through its public face, over disks that crash, tear, fill up and rot.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail a test")]

mod backup;
mod basics;
mod compaction;
mod concurrency;
mod damage;
mod faults;
mod files;
mod fixtures;
mod latest;
mod listeners;
mod model;
mod objects;
mod pages;
mod retention;
mod sim;
mod since;
mod upkeep;
mod world;
