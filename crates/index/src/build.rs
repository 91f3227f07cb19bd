//! Builds trees from sorted rows, all at once or batch by batch.

use crate::columns::{BoxColumns, Boxes, Time};
use crate::error::IndexError;
use crate::forest::Forest;
use crate::key::{Grid, Key};
use crate::nodes::{NodesBuilder, Numbers, NumericField};
use crate::pieces::PiecesBuilder;
use crate::tree::{FANOUT, LEAF_ROWS, Tree, levels};
use meridian_model::{Batch, GeometryType, Schema};
use std::ops::Range;
use std::sync::Arc;

/// Builds a [`Forest`] from rows in order of their keys.
///
/// It keeps only the nodes and none of the rows, so a merge that pushes batch after batch needs memory for the trees
/// only. Each 60 rows take 48 bytes, 36 for each integer field and 28 for each float field. Each piece of a long line
/// takes 72 bytes. The division of rows into batches does not affect the boxes, counts, min and max values or integer
/// sums.
///
/// After an error some rows of that push may have been added: discard the builder.
pub struct ForestBuilder {
    fields: Arc<[NumericField]>,
    over_time: bool,
    has_geometry: bool,
    last_key: Option<Key>,
    rows: u32,
    done: Vec<Tree>,
    open: Option<OpenTree>,
    /// Present only if there may be lines.
    pieces: Option<PiecesBuilder>,
    /// Whether some row has no time, and the first and last instant of the others.
    lacks_time: bool,
    times: (i64, i64),
}

/// The tree to which rows are being added; so far it has only leaves.
struct OpenTree {
    class: u8,
    first_row: u32,
    rows: u32,
    nodes: NodesBuilder,
}

impl ForestBuilder {
    /// A builder of one tree per size class.
    pub fn new(schema: &Arc<Schema>) -> ForestBuilder {
        // Boxes of points and polygons fit their shapes well enough; only lines leave most of theirs empty.
        let lines = matches!(schema.geometry, Some(GeometryType::Line | GeometryType::MultiLine | GeometryType::Any));
        ForestBuilder {
            fields: NumericField::all(schema).into(),
            over_time: false,
            has_geometry: schema.geometry.is_some(),
            last_key: None,
            rows: 0,
            done: Vec::new(),
            open: None,
            pieces: lines.then(|| PiecesBuilder::new(Grid::of(schema))),
            lacks_time: false,
            times: (i64::MAX, i64::MIN),
        }
    }

    /// A builder of a single tree over time, for rows pushed in time order.
    ///
    /// It ignores geometry. If the schema has one, every node's place is the whole world and [`Tree::knows_place`]
    /// returns false. So a spatial query never takes a node whole.
    pub fn over_time(schema: &Arc<Schema>) -> ForestBuilder {
        ForestBuilder { over_time: true, pieces: None, ..ForestBuilder::new(schema) }
    }

    /// Number of rows pushed so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Adds rows with their keys, which must not descend, within and across pushes.
    ///
    /// Reads the columns of `Projection::add_boxes`, `add_time` and all numeric fields. Also reads the whole
    /// geometry, if present, for the pieces of long lines ([`crate::Pieces`]).
    pub fn push(&mut self, batch: &Batch, keys: &[Key]) -> Result<(), IndexError> {
        if keys.len() != batch.rows() {
            return Err(IndexError::Unfit(format!("{} keys for {} rows", keys.len(), batch.rows())));
        }
        if !keys.is_sorted() || self.last_key.zip(keys.first()).is_some_and(|(last, &first)| first < last) {
            return Err(IndexError::Unfit("the keys are not in order".to_owned()));
        }
        self.last_key = keys.last().copied().or(self.last_key);
        let mut first = 0;
        // The class is the high part of a key, so the rows of a class are contiguous and each tree gets one range of
        // rows.
        for run in keys.chunk_by(|a, b| a.class() == b.class()) {
            self.push_run(batch, run[0].class(), first..first + run.len())?;
            first += run.len();
        }
        Ok(())
    }

    /// Adds rows in time order to a builder created by [`ForestBuilder::over_time`].
    ///
    /// Reads the columns of `Projection::add_time` and all numeric fields. The order is not checked: a tree of
    /// unordered rows is slower to search, but not wrong.
    pub fn push_ordered(&mut self, batch: &Batch) -> Result<(), IndexError> {
        self.push_run(batch, 0, 0..batch.rows())
    }

    fn push_run(&mut self, batch: &Batch, class: u8, rows: Range<usize>) -> Result<(), IndexError> {
        if rows.is_empty() {
            return Ok(());
        }
        let count = u32::try_from(rows.len()).map_err(|_| IndexError::TooManyRows)?;
        // Before anything is added: a failed builder must not hold half a batch.
        let total = self.rows.checked_add(count).ok_or(IndexError::TooManyRows)?;
        let boxes = self.boxes(batch)?;
        let numbers = Numbers::of(batch, &self.fields)?;
        if matches!(boxes.time, Time::Interval { .. }) {
            for (start, end) in rows.clone().map(|row| boxes.interval(row)) {
                let has_time = (start, end) != (i64::MIN, i64::MAX);
                self.lacks_time |= !has_time;
                if has_time {
                    self.times = (self.times.0.min(start), self.times.1.max(end));
                }
            }
        }
        if self.open.as_ref().is_some_and(|open| open.class != class) {
            self.close();
        }
        let tree = self.open.get_or_insert_with(|| OpenTree {
            class,
            first_row: self.rows,
            rows: 0,
            nodes: NodesBuilder::new(&self.fields),
        });
        tree.push(&boxes, &numbers, rows.clone())?;
        if let Some(pieces) = &mut self.pieces {
            pieces.push(batch, rows, self.rows);
        }
        self.rows = total;
        Ok(())
    }

    fn boxes<'a>(&self, batch: &'a Batch) -> Result<Boxes<'a>, IndexError> {
        let mut boxes = Boxes::of(batch);
        if self.over_time {
            // "Nowhere" would exclude the events from every spatial query; "unknown" keeps them and has each row
            // tested.
            boxes.place = if self.has_geometry { BoxColumns::Unknown } else { BoxColumns::Nowhere };
        } else if self.has_geometry && matches!(boxes.place, BoxColumns::Nowhere) {
            return Err(IndexError::Unfit("the batch was read without its places".to_owned()));
        }
        Ok(boxes)
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let place_known = !(self.over_time && self.has_geometry);
            self.done.push(open.finish(place_known, &self.fields));
        }
    }

    /// Builds the levels above the leaves and returns the trees.
    pub fn finish(mut self) -> Forest {
        self.close();
        let pieces = self.pieces.and_then(|pieces| pieces.finish(self.rows));
        Forest { fields: self.fields, trees: self.done, pieces, times: self.lacks_time.then_some(self.times) }
    }
}

impl OpenTree {
    /// Fills the last leaf, then adds leaves.
    fn push(&mut self, boxes: &Boxes<'_>, numbers: &[Numbers<'_>], rows: Range<usize>) -> Result<(), IndexError> {
        // A batch may end inside a leaf. The next batch completes that leaf, so the tree does not depend on the
        // batches.
        let filled = self.rows as usize % LEAF_ROWS;
        let mut first = rows.start;
        if filled > 0 {
            let end = rows.end.min(first + LEAF_ROWS - filled);
            self.nodes.append_leaves(boxes, numbers, std::slice::from_ref(&(first..end)))?;
            // The leaf grows by merging, since its first rows are no longer in memory.
            self.nodes.join_last_two();
            first = end;
        }
        let leaves: Vec<Range<usize>> =
            (first..rows.end).step_by(LEAF_ROWS).map(|row| row..rows.end.min(row + LEAF_ROWS)).collect();
        if !leaves.is_empty() {
            self.nodes.append_leaves(boxes, numbers, &leaves)?;
        }
        self.rows += rows.len() as u32;
        Ok(())
    }

    fn finish(mut self, place_known: bool, fields: &Arc<[NumericField]>) -> Tree {
        let mut below = 0;
        for level in levels(self.rows).windows(2).skip(1) {
            debug_assert_eq!(self.nodes.len(), level[0] as usize);
            self.nodes.append_parents(below..level[0] as usize, FANOUT);
            below = level[0] as usize;
        }
        Tree::new(
            self.class,
            self.first_row..self.first_row + self.rows,
            place_known,
            fields.clone(),
            self.nodes.finish(),
        )
    }
}
