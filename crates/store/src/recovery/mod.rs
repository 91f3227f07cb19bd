//! What opens, checks and repairs a partition: manifest, segments, then the tail of the log.
//!
//! Start at `open.rs`; `files.rs` opens segments and sidecars. `leftovers.rs` says which files may go, `check.rs` reads everything, `repair/` mends what is damaged.

pub(crate) mod check;
mod files;
pub(crate) mod leftovers;
mod open;
pub(crate) mod repair;

pub(crate) use files::MADE_ANEW;
pub(crate) use open::{Common, create, log_dir, make_folders, open, prepare};
