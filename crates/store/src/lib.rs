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
//! | folder | holds |
//! |---|---|
//! | `store/` | the data folder: its collections, its lock, its threads |
//! | `collection/` | a collection, as its callers use it |
//! | `ingest/` | writes: queue, stage, commit |
//! | `log/` | the write-ahead log, which makes a write durable |
//! | `part/` | stored data: memory trees, segments, dead rows, keys |
//! | `catalog/` | the content of a collection: manifest and sidecars |
//! | `maintenance/` | background work: flushes, merges, archiving, retention |
//! | `snapshot/` | reads |
//! | `recovery/` | opens, checks and repairs partitions |
//! | `backup/` | backups of a live store, and restores |
//! | `audit/` | the log of administrative acts |
//! | `bucket/` | collections in a bucket shared by processes, and the lease of their owner |
//! | `stream/` | the log of such collections in streams instead of the bucket |
//! | `seams/` | disk, clock and randomness |
//!
//! `docs/format.md` has the byte layout of every file.

mod audit;
mod backup;
pub mod bucket;
mod catalog;
mod codec;
mod collection;
mod error;
mod extents;
mod ingest;
mod log;
mod maintenance;
mod options;
mod part;
mod recovery;
pub mod seams;
mod snapshot;
mod store;
pub mod stream;

pub use audit::{Act, AuditLog, AuditPage, Audited, SharedAudit};
pub use backup::{Backup, BackupFolder, BackupKey, BackupScope, Flusher, Received, Restore, Saved};
pub use bucket::{Bucket, ControlPlane, InFolder, Lease, Moved, SharedRecords, Standing, Statement, Term, Terms};
pub use catalog::manifest::{Imported, Manifest};
pub use collection::stats::CollectionStats;
pub use collection::{Collection, Deleted, KEY_BYTES_MAX, OnConflict, Work, Write, Written};
pub use error::{Gone, Problem, StoreError, WriteError};
pub use extents::ExtentStats;
pub use ingest::pending::{Pending, Turn};
pub use maintenance::archive::Files;
pub use maintenance::expiry::Expired;
pub use options::{Durability, Options, PARTITIONS_MAX, Settings, SettingsChange};
pub use part::opened::TreeStats;
pub use part::{CHUNK_ROWS, PartView, TimeOrder};
pub use recovery::SharedResources;
pub use recovery::repair::Repair;
pub use snapshot::prior::PriorEventReader;
pub use snapshot::since::Since;
pub use snapshot::{Seen, Snapshot};
pub use store::candidate::Candidate;
pub use store::damaged::Damaged;
pub use store::partitions::Partitions;
pub use store::records::Records;
pub use store::{KEEPS_NAME, Store};
pub use stream::SharedLog;
