//! Background jobs on a partition: flushes, merges, archiving and rebuilds.
//!
//! Start at `schedule.rs`, which chooses a job under the partition's lock. A job runs outside it (`job.rs`,
//! `archive.rs`), and `install.rs` installs its outcome.

pub(crate) mod archive;
pub(crate) mod install;
pub(crate) mod job;
pub(crate) mod schedule;
