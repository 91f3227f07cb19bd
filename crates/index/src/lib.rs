//! The aggregate tree: build, prune, merge and aggregate over columns.
//!
//! A collection's events lie in one order, that of their [`Key`]s on a fixed world grid. Each sorted run of events
//! has a [`Forest`]: one packed R-tree per size class. Its nodes hold the box in longitude, latitude and time of the
//! events below and, per numeric field, their count, sum, min and max. A query is a function from node to
//! [`Relation`]. Nodes without a match are pruned, and nodes that match entirely are evaluated from their summary.
//! Only the leaves in between are tested row by row.
//!
//! Guarantees:
//! - It only computes: no I/O, no clock, no randomness. Big builds and sorts use rayon's threads.
//! - [`Tree::walk`] followed by an exact test of the rows in partial leaves finds what a scan finds.
//! - Counts, min, max and integer sums are exact; float sums are within 1e-12 of the sum of magnitudes, as are sums
//!   of summaries.
//! - Building takes rows batch by batch and keeps only nodes, so a merge needs little memory.
//! - Decoding damaged bytes yields an error or a tree with wrong values, never a panic or an allocation larger than
//!   the bytes call for.
//!
//! Start reading at [`Grid`] (the order), then [`Tree`] (the queries), then [`ForestBuilder`]. [`CountPyramid`]
//! computes what a space-time order cannot: the number of points in each cell of a low-zoom map tile.
//!
//! ```
//! use meridian_index::{ForestBuilder, Grid, Number, Summary, sort_order};
//! use meridian_model::builder::Value;
//! use meridian_model::filter::{Region, Relation};
//! use meridian_model::{BatchBuilder, Bounds, Field, FieldType, GeometryType, Schema, TimeRole};
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//!
//! let field = |name: &str, kind| Field { name: name.into(), kind, required: true, title: None };
//! let schema = Arc::new(Schema {
//!     fields: vec![field("at", FieldType::Time), field("magnitude", FieldType::Float)],
//!     geometry: Some(GeometryType::Point),
//!     time: TimeRole::Instant(0),
//!     ..Schema::default()
//! });
//!
//! let mut events = BatchBuilder::new(schema.clone());
//! for i in 0..1000 {
//!     events.set_point(f64::from(i % 100), f64::from(i / 100))?;
//!     events.set(0, Value::Time(i64::from(i) * 1_000_000))?;
//!     events.set(1, Value::Float(f64::from(i % 7)))?;
//!     events.end_event()?;
//! }
//! let batch = events.finish()?;
//!
//! // Put the rows in order, then build.
//! let keys = Grid::of(&schema).keys(&batch);
//! let order = sort_order(&keys, &(0..1000).collect::<Vec<u64>>());
//! let batch = batch.take(&order);
//! let keys: Vec<_> = order.iter().map(|&row| keys[row as usize]).collect();
//! let mut builder = ForestBuilder::new(&schema);
//! builder.push(&batch, &keys)?;
//! let forest = builder.finish();
//!
//! // The average magnitude west of 50° E.
//! let west = Bounds { east: 50.0, ..Bounds::WORLD };
//! let mut total = Summary::FLOAT;
//! for tree in &forest.trees {
//!     tree.walk(
//!         &mut |node| match node.bounds() {
//!             bounds if west.holds_in_space(&bounds) => Relation::All,
//!             bounds if west.touches_in_space(&bounds) => Relation::Some,
//!             _ => Relation::None,
//!         },
//!         &mut |visit| {
//!             if visit.whole {
//!                 total.merge(&tree.summary(visit.node, 0));
//!             } else {
//!                 for row in visit.rows {
//!                     let row = row as usize;
//!                     if let Some(meridian_model::FieldColumn::Float(values)) = batch.field(1)
//!                         && west.touches_in_space(&batch.bounds(row))
//!                     {
//!                         total.add(Number::Float(values.value(row)));
//!                     }
//!                 }
//!             }
//!             ControlFlow::Continue(())
//!         },
//!     );
//! }
//! assert_eq!(total.count, 510);
//! assert_eq!(total.max, Some(Number::Float(6.0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Relation`]: meridian_model::filter::Relation

mod build;
mod codec;
mod columns;
mod cover;
mod error;
mod fold;
mod forest;
mod hilbert;
mod key;
mod mercator;
mod nodes;
mod order;
mod pieces;
mod pyramid;
mod summary;
mod tree;

pub use build::ForestBuilder;
pub use cover::Cover;
pub use error::IndexError;
pub use forest::Forest;
pub use key::{CLASS_NOWHERE, Grid, Key};
pub use mercator::{MERCATOR_LAT_MAX, mercator_cell};
pub use order::{Merge, MergedEvent, sort_order};
pub use pieces::{PIECE_EDGES, Pieces};
pub use pyramid::{BASE_LEVEL, CountPyramid, PyramidBuilder, TileCells};
pub use summary::{FloatSum, Number, Sum, Summary};
pub use tree::{Children, FANOUT, LEAF_ROWS, Node, NodeRef, Places, Tree, Visit, WalkStats};
