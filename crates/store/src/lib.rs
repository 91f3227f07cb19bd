//! Collections: log, memory trees, segments, catalog, snapshots and recovery.
//!
//! A [`Store`] is a folder of collections that one process holds locked. Their data may be in a bucket instead
//! ([`bucket`]). [`Collection::write`] returns once a batch is durable and visible. [`Collection::snapshot`] returns a
//! state that never changes. A snapshot consists of [`PartView`]s, one for each memory tree and segment file, which the
//! query crate walks.
//!
//! # What it promises
//! - An acknowledged batch survives completely: a process kill, or a power loss that takes every byte not yet synced.
//! - A batch becomes visible as a whole; readers never wait for writers.
//! - A batch sent twice under one idempotency key is stored once, for a day, across restarts.
//! - Damage is detected by checksums, reported by file, and contained; intact data stays served.
//! - Memory is bounded: when flushes lag behind, writes wait and are then refused.
//! - Disk, time and randomness are used through [`seams`] only.
//!
//! It knows nothing of queries, formats, HTTP or async: calls block, and each wait has a deadline.
//!
//! # Where to start reading
//! Each folder's `mod.rs` describes its purpose. `ingest/partition/` is the state machine that commits a group of
//! writes.
//!
//! | from the top down | holds |
//! |---|---|
//! | `backup/` | backups of a live store, and restores |
//! | `repair/`, `bucket_check.rs` | repairs a data folder, reports damage of a bucket |
//! | `control.rs` | records and the audit log that the processes of a cluster share |
//! | `store/` | the data folder: its collections, its lock, its threads |
//! | `recovery/` | opens and checks partitions |
//! | `collection/` | a collection, as its callers use it |
//! | `maintenance/` | background jobs: flushes, merges, archiving |
//! | `ingest/` | writes: queue, stage, commit |
//! | `merge/`, `expiry.rs` | which parts to merge and how; which events are past the retention |
//! | `state/` | what the partition, its readers and its jobs share |
//! | `snapshot/` | reads |
//! | `audit/` | the log of administrative acts |
//! | `bucket/` | collections in a bucket shared by processes, and the lease of their owner |
//! | `stream/` | the log of such collections in streams instead of the bucket |
//! | `disk_storage.rs` | collections in a data folder |
//! | `catalog/` | the manifest's versions and the files beside segments |
//! | `log/` | the write-ahead log, which makes a write durable |
//! | `extents/` | the cache of objects in a bucket |
//! | `waits.rs` | reads that must not wait |
//! | `panics.rs` | background work that panics: contained, counted, tried again later |
//! | `part/` | stored data: memory trees, segments, dead rows, keys |
//! | `seams/` | disk, clock, randomness and bucket; log, catalog and objects of a partition |
//! | `manifest/` | the content of a partition |
//!
//! Each folder and file imports those below it only (`tests/circles.py`).
//!
//! `docs/format.md` has the byte layout of every file.

mod audit;
mod backup;
pub mod bucket;
mod bucket_check;
mod catalog;
mod codec;
mod collection;
mod control;
mod disk_storage;
mod error;
mod expiry;
mod extents;
mod ingest;
mod log;
mod maintenance;
mod manifest;
mod merge;
mod options;
mod pace;
mod panics;
mod part;
mod paths;
mod recovery;
mod repair;
pub mod seams;
mod snapshot;
mod state;
mod stats;
mod store;
pub mod stream;
mod waits;

pub use audit::{Act, AuditLog, AuditPage, RecordedAct, SharedAudit};
pub use backup::{Backup, BackupFolder, BackupKey, BackupOutcome, BackupScope, Flusher, Restore, SavedPartition};
pub use bucket::{Lease, LeaseState, SharedRecords, Statement, Term, Terms};
pub use bucket_check::{CheckReport, check_bucket};
pub use collection::pending::{PendingWrite, WriteStep};
pub use collection::prior::PriorEventReader;
pub use collection::since::EventsSince;
pub use collection::{Collection, DeleteReceipt, KEY_BYTES_MAX, OnConflict, Work, Write, WriteReceipt};
pub use control::{ControlPlane, FolderRecords, MoveOutcome};
pub use disk_storage::DiskStorage;
pub use error::{Damaged, Problem, SnapshotGone, StoreError, WriteError};
pub use expiry::ExpiryOutcome;
pub use maintenance::archive::Files;
pub use manifest::{ImportOrigin, Manifest};
pub use options::{Definition, Durability, Options, PARTITIONS_MAX, Settings, SettingsChange};
pub use panics::store_panics;
pub use part::ipc::expect_buffers_within;
pub use part::open_parts::TreeStats;
pub use part::{CHUNK_ROWS, PartView, TimeOrder};
pub use paths::partition_dir;
pub use recovery::SharedResources;
pub use repair::Repair;
pub use seams::Bucket;
pub use snapshot::{Snapshot, SnapshotView};
pub use stats::{CollectionStats, ExtentStats};
pub use store::candidate::Candidate;
pub use store::folder::ANSWERS;
pub use store::partitions::Partitions;
pub use store::records::Records;
pub use store::{KEEPS_NAME, Retyped, Store};
pub use stream::SharedLog;
pub use waits::without_waits;
