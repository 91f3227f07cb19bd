//! Partial results: the contribution of one partition to a query.
//!
//! A query runs on each partition (`of`). The partial results travel as Arrow record batches (`to_arrow`,
//! `from_arrow`), are merged in partition order (`merge`), and are finished once (`finish`). Only that step computes
//! averages, empty windows, simplified lines and drawn tiles. A single snapshot counts as one partition, so there is
//! one code path.
//!
//! Aggregates, grids, tiles, tracks and passages define and finish their partial results beside their queries. This
//! module merges and encodes them.
//!
//! Merged counts, mins, maxes and integer sums are exact, float sums within 1e-12 of the sum of magnitudes. Rows come
//! with their [`Cursor`](crate::Cursor)s, are merged by these ([`MergedRows`]), and are paged like the rows of one
//! snapshot.
//!
//! Every record batch names its kind and version. Another version is rejected, and all other content is validated:
//! hostile bytes lead to a [`WireError`](crate::wire::WireError), never to a panic.

mod any;
mod averages;
mod count;
mod envelope;
mod grid;
mod groups;
mod merge;
mod near;
mod passages;
mod rows;
mod tile;
mod track;

pub use any::Partial;
pub use count::PartialCount;
pub use merge::{MergedRows, RowStream};
pub use near::PartialNear;
pub use rows::{PartRows, PartialRows, RowsSummary};

pub use crate::aggregate::PartialGroups;
pub use crate::averages::PartialAverages;
pub use crate::density::PartialGrid;
pub use crate::passages::PartialPassages;
pub use crate::tile::{Drawing, PartialTile};
pub use crate::track::PartialTrack;
