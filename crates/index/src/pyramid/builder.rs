//! Counts points into a pyramid.

use super::layer::{Cell, Layer, join_equal};
use super::{BASE_LEVEL, CountPyramid, LAYER_STEP};
use crate::columns::{BoxColumns, Boxes};
use crate::key::Grid;
use crate::mercator::{interleave, mercator_cell};
use meridian_model::{Batch, Schema, TimeRole};

/// Min base level before time bins are widened: 256 x 256 cells of the whole world.
const BASE_LEVEL_LOW: u8 = 8;

/// Max cells of the base layer.
const CELLS_MAX: usize = 1 << 19;

/// Cells of the base layer that are always allowed, however few the events.
const CELLS_MIN: usize = 1 << 12;

/// Min mean number of events per cell, for cells beyond [`CELLS_MIN`].
const EVENTS_PER_CELL: u64 = 4;

/// Min cells collected before they are sorted in.
const PENDING_MIN: usize = 1 << 15;

/// Counts points into a [`CountPyramid`], in memory bounded by the pyramid's max size.
pub struct PyramidBuilder {
    pub(super) width: i64,
    pub(super) level: u8,
    pub(super) total: u64,
    /// In order of bin and cell, without duplicates.
    pub(super) sorted: Vec<Cell>,
    /// Unordered.
    pub(super) pending: Vec<Cell>,
}

impl PyramidBuilder {
    /// A builder for the points of a collection.
    pub fn new(schema: &Schema) -> PyramidBuilder {
        let width = if matches!(schema.time, TimeRole::Instant(_)) { Grid::of(schema).unit_us() } else { 0 };
        PyramidBuilder { width, ..PyramidBuilder::empty() }
    }

    pub(super) fn empty() -> PyramidBuilder {
        PyramidBuilder { width: 0, level: BASE_LEVEL, total: 0, sorted: Vec::new(), pending: Vec::new() }
    }

    /// Counts the points of a batch; events without geometry, and shapes, are skipped.
    ///
    /// Reads the columns of `Projection::add_boxes` and `add_time`.
    pub fn push(&mut self, batch: &Batch) {
        if batch.points().is_none() {
            return;
        }
        let boxes = Boxes::of(batch);
        let BoxColumns::Boxes { west, south, nulls, .. } = &boxes.place else { return };
        for row in 0..batch.rows() {
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                self.push_point(west[row], south[row], boxes.interval(row).0);
            }
        }
    }

    /// Counts one point at an instant in microseconds.
    pub fn push_point(&mut self, lon: f64, lat: f64, time: i64) {
        // Positions beyond the square's edge are in no tile, and so in no total.
        let Some((x, y)) = mercator_cell(lon, lat, self.level.into()) else { return };
        let bin = if self.width == 0 { 0 } else { time.div_euclid(self.width) };
        self.total += 1;
        self.add(Cell { bin, cell: interleave(x, y), count: 1 });
    }

    pub(super) fn add(&mut self, new: Cell) {
        match self.pending.last_mut() {
            // Rows come in curve order: neighbours are often in one cell, and need no separate entry.
            Some(last) if (last.bin, last.cell) == (new.bin, new.cell) => {
                last.count = last.count.saturating_add(new.count);
            }
            _ => self.pending.push(new),
        }
        // Sorting in only once the pending ones are half as many keeps the total work within n log n.
        if self.pending.len() >= PENDING_MIN.max(self.sorted.len() / 2) {
            self.sort_in();
            self.shrink_to(CELLS_MAX);
        }
    }

    fn sort_in(&mut self) {
        self.pending.sort_unstable_by_key(|c| (c.bin, c.cell));
        self.sorted.append(&mut self.pending);
        // The stable sort detects the two ascending runs and merges them.
        self.sorted.sort_by_key(|c| (c.bin, c.cell));
        join_equal(&mut self.sorted);
    }

    /// Makes cells and bins coarser until there are at most `most`.
    fn shrink_to(&mut self, most: usize) {
        let mut widened = false;
        while self.sorted.len() > most {
            let one_bin = self.sorted.first().map(|c| c.bin) == self.sorted.last().map(|c| c.bin);
            let can_widen = !one_bin && self.width > 0 && self.width <= i64::MAX / 4;
            // Alternating, once cells are as coarse as low-zoom tiles: finer bins serve time filters, finer cells
            // maps.
            if can_widen && (self.level == 0 || self.level <= BASE_LEVEL_LOW && !widened) {
                self.width *= 4;
                self.sorted.iter_mut().for_each(|c| c.bin = c.bin.div_euclid(4));
                self.sorted.sort_by_key(|c| (c.bin, c.cell));
                widened = true;
            } else if self.level > 0 {
                self.level -= 1;
                self.sorted.iter_mut().for_each(|c| c.cell >>= 2);
                widened = false;
            } else {
                // One cell in a handful of the widest bins: fewer than any limit here.
                return;
            }
            join_equal(&mut self.sorted);
        }
    }

    /// Sums the coarser layers and returns the pyramid.
    pub fn finish(mut self) -> CountPyramid {
        self.sort_in();
        let most = usize::try_from(self.total / EVENTS_PER_CELL).unwrap_or(usize::MAX);
        self.shrink_to(most.clamp(CELLS_MIN, CELLS_MAX));
        let mut layers = vec![Layer::of(self.level, &self.sorted)];
        let mut level = self.level;
        while level >= LAYER_STEP {
            level -= LAYER_STEP;
            self.sorted.iter_mut().for_each(|c| c.cell >>= 2 * LAYER_STEP);
            join_equal(&mut self.sorted);
            layers.push(Layer::of(level, &self.sorted));
        }
        CountPyramid { width: self.width, total: self.total, layers }
    }
}
