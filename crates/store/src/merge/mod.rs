//! Merges: which parts to merge, and how their rows become one part or several segments.
//!
//! Start at `choice.rs`, the rules. `cursor.rs` reads the rows of several parts in order, `segments.rs` writes them to
//! segments, and `runs.rs` merges memory trees in memory.

pub(crate) mod choice;
mod cursor;
pub(crate) mod runs;
pub(crate) mod segments;
