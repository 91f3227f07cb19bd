//! Plans and runs queries over a snapshot: filter, near, nearest, sort, page, aggregate, density, tile, track.
//!
//! Every query reads one [`meridian_store::Snapshot`] and nothing else. It stops within one block's work of its
//! deadline or cancellation ([`Control`]). Its memory is bounded. Results are exact (DESIGN, rule 7), including
//! aggregates from tree nodes. The crate implements no protocol and keeps no state between queries: a page begins at
//! a [`Cursor`]. Big aggregates and densities use at most half of the processors (`parallel.rs`).
//!
//! Start reading at [`items()`], then `scan/`, which all queries share. [`partial`] runs a query over several
//! partitions.

mod aggregate;
mod averages;
pub mod browse;
mod by;
mod candidates;
mod cells;
mod control;
mod count;
mod cursor;
mod cuts;
mod density;
mod distance;
mod error;
mod event_list;
mod explain;
mod function;
mod hash;
mod items;
mod matched_rows;
mod memory;
mod mvt;
mod natural;
pub mod near;
mod nearest;
mod ordered;
mod parallel;
pub mod partial;
mod passages;
mod predicate_bounds;
mod pyramids;
mod rows;
mod scan;
mod shape;
mod simplify;
mod sketch;
mod sort;
mod tally;
mod tile;
mod token;
mod totals;
mod track;
mod windows;
pub mod wire;

#[cfg(test)]
mod tests;

pub use aggregate::{Aggregate, Aggregated, BY_FIELDS_MAX, Group, TOTALS_MAX, aggregate};
pub use by::{BY_VALUES_MAX, ByValue};
pub use control::{CancelFlag, Control, Scheduler, Stats};
pub use count::count;
pub use cursor::{Cursor, SortValue};
pub use cuts::{cuts, joined_cuts};
pub use density::{DENSITY_CELLS_MAX, Density, DensityCounts, density};
pub use error::QueryError;
pub use explain::{Explanation, explain};
pub use function::{FUNCTIONS_MAX, Function, FunctionValue, Percent};
pub use items::{Hits, Items, Order, Rows, SORTED_LIMIT_MAX, items, select};
pub use memory::{MemoryPool, Share};
pub use passages::{Passage, Passages, PassagesResult, object_of, passages};
pub use rows::{ROWS_MAX, matching_rows};
pub use sort::{SORT_KEYS_MAX, SortKey, SortTarget, TEXT_BYTES_COMPARED};
pub use tile::{
    TILE_BYTES_MAX, TILE_CELLS, TILE_EVENTS_MAX, TILE_TEXT_BYTES_MAX, Tile, TileKind, TileResult, ZOOM_MAX, id_key,
    tile,
};
pub use token::{TOKEN_CHARS_MAX, Token, question_hash, question_mark};
pub use track::{TRACK_EVENTS_MAX, Track, TrackPoint, TrackResult, of_object, track};
pub use windows::{Window, Windows};
