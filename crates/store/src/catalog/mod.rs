//! The content of a collection: the manifest, and the small files that it names beside the segments.
//!
//! Start at `manifest.rs`. `sidecars.rs` keeps dead and hidden rows and lists the files of a manifest; `ranges.rs` maps
//! segments to periods of time.

pub(crate) mod disk;
pub(crate) mod lineage;
pub(crate) mod manifest;
pub(crate) mod ranges;
pub(crate) mod sidecars;
