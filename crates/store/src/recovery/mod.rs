//! Opens, checks and repairs a partition: manifest, segments, then the tail of the log.
//!
//! Start at `open.rs`; `files.rs` opens segments and sidecars. `leftovers.rs` decides which files may be removed,
//! `check.rs` reads everything, `repair/` repairs damage.

pub(crate) mod check;
mod files;
mod follow;
pub(crate) mod leftovers;
mod open;
pub(crate) mod repair;

pub(crate) use files::MADE_ANEW;
pub(crate) use follow::follow_new;
pub use open::SharedResources;
pub(crate) use open::{Common, begin, create, log_dir, make_folders, open, prepare};
