//! Background work on a collection: flushes, merges, the archive and retention.
//!
//! Start at `schedule.rs`, which chooses a job under the partition's lock. A job runs outside it (`merge.rs`,
//! `archive.rs`), and `install.rs` installs its outcome. `choice.rs` picks the segments to merge, `pace.rs` yields to
//! requests, `expiry.rs` expires events past the retention.

pub(crate) mod archive;
pub(crate) mod choice;
mod cursor;
pub(crate) mod expiry;
pub(crate) mod install;
pub(crate) mod job;
pub(crate) mod merge;
pub(crate) mod pace;
pub(crate) mod runs;
pub(crate) mod schedule;
