//! The versions of a manifest, and the small files that it names beside the segments.
//!
//! `disk.rs` is the catalog of a data folder. `lineage.rs` commits the successors of one manifest. `sidecars.rs` reads
//! dead and hidden rows and lists the files of a manifest.

pub(crate) mod disk;
pub(crate) mod lineage;
pub(crate) mod sidecars;
