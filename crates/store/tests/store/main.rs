//! The store from outside: through its public interface, over disks that crash, tear, fill up and rot.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail a test")]
#![allow(clippy::disallowed_methods, reason = "tests read files and clocks as they are")]

mod backup;
mod basics;
mod bucket;
mod compaction;
mod concurrency;
mod contract;
mod damage;
mod dropped;
mod faults;
mod files;
mod fixtures;
mod harm;
mod latest;
mod listeners;
mod lost;
mod model;
mod moves;
mod naming;
mod objects;
mod once;
mod pages;
mod partitions;
mod pipes;
mod renaming;
mod repair;
mod retention;
mod retyping;
mod reused;
mod rights;
mod salvage;
mod sim;
mod since;
mod stream;
mod tail;
mod unwritten;
mod upkeep;
mod world;
