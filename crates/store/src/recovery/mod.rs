//! What opens, checks and repairs a partition: manifest, segments, then the tail of the log.
//!
//! Start at `open.rs`. `leftovers.rs` says which files may go, `check.rs` reads everything, `repair/` mends what is damaged.

pub(crate) mod check;
pub(crate) mod leftovers;
mod open;
pub(crate) mod repair;

pub(crate) use open::{Common, MADE_ANEW, create, log_dir, make_folders, open, prepare};
