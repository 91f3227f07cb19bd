//! Opens and checks a partition: manifest, segments, then the tail of the log.
//!
//! Start at `open.rs`; `files.rs` opens segments and sidecars. `leftovers.rs` decides which files may be removed,
//! `follow.rs` opens what another process has written since, and `check.rs` reads everything.

pub(crate) mod check;
mod files;
mod follow;
pub(crate) mod leftovers;
mod open;

pub(crate) use follow::follow_new;
pub use open::SharedResources;
pub(crate) use open::{Common, begin, create, log_dir, make_folders, open, prepare};
