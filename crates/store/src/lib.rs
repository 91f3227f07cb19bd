//! Collections: log, memory trees, segments, catalog, snapshots and recovery.
//!
//! A [`Store`] is a folder that one process holds locked; in it are collections. [`Collection::write`] returns once a
//! batch is durable and visible, [`Collection::snapshot`] gives a reader something that never changes, and a snapshot
//! consists of [`PartView`]s, one for each memory tree and segment file, which the query crate walks.
//!
//! # What it promises
//! - An acknowledged batch survives whole: a process kill, a power loss that takes every byte not yet synced.
//! - A batch becomes visible whole; readers never wait for writers.
//! - A batch sent twice under one idempotency key is stored once, for a day, across restarts.
//! - Damage is detected by checksums, named by file, and contained; what is good stays served.
//! - Memory is bounded: when flushes lag behind, writes wait and are then refused.
//! - Disk, time and randomness are met through [`seams`] only.
//!
//! It knows nothing of queries, formats, HTTP or async: calls block, and each wait has a deadline.
//!
//! # Where to start reading
//! `partition.rs` is the state machine: how a group of writes is committed. `stage.rs` works a group out (`latest.rs` for mode `latest`), `log/` makes
//! it durable, `run.rs` and `segment/` hold events, `part.rs` is what readers see of both, `maintenance.rs` (with `choice.rs`, `pace.rs` and `install.rs`) moves
//! events from memory to disk and keeps the number of segments small, `opening.rs` and `recovery.rs` open what is there, `leftovers.rs` says which files may go, `repair/` mends what is damaged or lost its
//! manifest, `backup/`
//! copies it out of a live store and makes a folder of the copy. `listeners.rs` tells others of what was written, `since.rs` those who
//! were away; `records.rs` keeps small things for them.
//! `docs/format.md` has the byte layout of every file.

mod backup;
mod bodies;
mod cache;
mod check;
mod choice;
mod codec;
mod collection;
mod columns;
mod damaged;
mod dead;
mod digest;
mod error;
mod expiry;
mod files;
mod finding;
mod folder;
mod former;
mod full;
mod idempotency;
mod install;
mod ipc;
mod keys;
mod latest;
mod leftovers;
mod listeners;
mod log;
mod maintenance;
mod manifest;
mod merge;
mod naming;
mod objects;
mod opening;
mod options;
mod pace;
mod part;
mod partition;
mod pending;
mod queue;
mod ranges;
mod records;
mod recovery;
mod repair;
mod run;
pub mod seams;
mod segment;
mod sidecars;
mod since;
mod snapshot;
mod stage;
mod stats;
mod store;

pub use backup::{Backup, BackupFolder, Received, Saved, restore};
pub use collection::{Collection, Deleted, KEY_BYTES_MAX, OnConflict, Work, Write, Written};
pub use damaged::Damaged;
pub use error::{Gone, Problem, StoreError, WriteError};
pub use expiry::Expired;
pub use files::Files;
pub use former::Formers;
pub use options::{Durability, Options, Settings, SettingsChange};
pub use part::{CHUNK_ROWS, PartView, TimeOrder};
pub use pending::{Pending, Turn};
pub use records::Records;
pub use repair::Repair;
pub use since::Since;
pub use snapshot::Snapshot;
pub use stats::CollectionStats;
pub use store::Store;
