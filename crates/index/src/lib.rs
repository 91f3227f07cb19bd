//! The aggregate tree: build, prune, merge and aggregate over columns.

mod build;
mod columns;
mod error;
mod forest;
mod hilbert;
mod key;
mod nodes;
mod order;
mod summary;
mod tree;

pub use build::ForestBuilder;
pub use error::IndexError;
pub use forest::Forest;
pub use key::{CLASS_NOWHERE, Grid, Key};
pub use order::{Merge, Merged, sort_order};
pub use summary::{FloatSum, Number, Sum, Summary};
pub use tree::{Children, FANOUT, LEAF_ROWS, Node, NodeRef, Tree, Visit, WalkStats};
