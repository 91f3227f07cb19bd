//! The seam between what clients reach (`api`, `federation`) and what keeps and answers (`store`, `query`).
//!
//! [`Backend`] is a server's collections, [`Collection`] is one of them. Callers hold them as trait objects and know
//! neither a data folder nor a snapshot's parts, so that collections on other machines can stand behind the same calls.
//! [`Embedded`] keeps them in this process.
//!
//! # Contract
//! - Calls block, as the store's do, unless they say that they return at once. Each has a deadline or a
//!   [`Control`](meridian_query::Control).
//! - A question reads one snapshot, which the [`Head`] of its answer names. [`At`] asks for the same one again.
//! - Answers travel as batches of columns. Whoever encodes them for a client stands above this crate.
//! - Errors are values that say whose fault it was: the question's, the data's or the disk's.
//!
//! Start reading at `backend.rs` and `collection.rs`.

mod backend;
mod collection;
mod embedded;
mod read;
mod records;

pub use backend::Backend;
pub use collection::{Append, Collection, DeleteFault, PartialDelete};
pub use embedded::Embedded;
pub use read::{At, Changes, Head, Near, PriorEvents, Read, RowSink, Rows};
pub use records::Records;

// The values that cross the seam. They belong to the crates below, and callers need no more of these.
pub use meridian_store::seams::{Clock, Random, Seams};
pub use meridian_store::{
    Backup, CollectionStats, Damaged, Deleted, Durability, Files, Gone, KEY_BYTES_MAX, OnConflict, Problem, Settings,
    SettingsChange, StoreError, Write, WriteError, Written,
};
