//! The interface between the crates that serve clients (`api`, `saved`, `federation`) and the crates that store and
//! query (`store`, `query`).
//!
//! [`Backend`] is a server's collections, [`Collection`] is one of them: each a small trait over a few others, by idea.
//! Callers hold them as trait objects and know
//! neither a data folder nor the parts of a snapshot. So collections on other machines can be served through the same
//! calls. [`Embedded`] keeps them in this process. A collection of several partitions is assembled from these
//! (`partitioned/`). The contents of a cluster's bucket are in [`cluster`].
//!
//! # Contract
//! - Calls block, as the store's do, unless their documentation says that they return at once. Each has a deadline or
//!   a [`Control`](meridian_query::Control).
//! - A query reads one snapshot, which the [`Head`] of its result names. [`ReadPoint`] selects the same one again.
//! - Results are batches of columns. Encoding them for a client is the work of the crates above.
//! - Errors are values that tell whether the query, the data or the disk was at fault.
//!
//! Start reading at `backend.rs` and `collection.rs`.

mod audit;
mod backend;
pub mod cluster;
mod collection;
mod embedded;
mod history;
mod lookups;
pub mod measured;
mod operation;
mod partitioned;
mod queries;
mod read;
mod receipts;
mod records;
mod scheduler;
mod view;
mod writes;

pub use audit::AuditLog;
pub use backend::Backend;
pub use collection::{Collection, Part};
pub use embedded::Embedded;
pub use history::History;
pub use lookups::Lookups;
pub use operation::{HeldPartition, Metric, MetricKind, MetricSource, Operation};
pub use partitioned::Partitioned;
pub use queries::Queries;
pub use read::{Changes, Eventual, Head, Near, PriorEvents, ReadPoint, ReadResult, RowSink, Rows};
pub use receipts::{DeleteReceipt, Files, WriteReceipt};
pub use records::{BackupOptions, RecordSource, Records};
pub use scheduler::PermitScheduler;
pub use view::View;
pub use writes::{Append, DeleteFault, PartialDelete, Writes};

// The types used by this interface. They belong to the crates below; callers need nothing else from those.
pub use meridian_store::seams::{Clock, Disk, OpenMode, Random, Seams, read_named_text};
pub use meridian_store::{
    Act, AuditPage, Backup, BackupKey, BackupScope, CollectionStats, Damaged, Definition, Durability, Flusher,
    ImportOrigin, KEEPS_NAME, KEY_BYTES_MAX, OnConflict, PARTITIONS_MAX, Problem, RecordedAct, Retyped, Settings,
    SettingsChange, SnapshotGone, StoreError, Write, WriteError, store_panics, without_waits,
};
