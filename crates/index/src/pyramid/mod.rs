//! Counts of points per map cell and coarse time bin.
//!
//! A low-zoom tile covers more events than it can show. In space-time order, its cells cut nearly every leaf. The
//! pyramid stores the result itself: the number of points in each Web-Mercator cell during each time bin. It covers a
//! base level and every second level above.

mod builder;
mod file;
mod layer;

pub use builder::PyramidBuilder;

use crate::error::IndexError;
use crate::mercator::{interleave, split};
use layer::{Cell, Layer};
use meridian_model::Interval;
use std::ops::Range;

/// Finest level of cells: at level 12 a cell is 9.8 km wide at the equator.
pub const BASE_LEVEL: u8 = 12;

/// Levels between one layer and the next coarser.
const LAYER_STEP: u8 = 2;

/// Counts of points per Web-Mercator cell and time bin; immutable and cheap to share.
///
/// A bin is the grid's time unit. A collection without time, or of intervals (which may lie in several bins), has a
/// single bin and supports only queries about all of time. Points beyond [`crate::MERCATOR_LAT_MAX`] lie in no tile
/// and are not counted.
///
/// **Size.** The base layer holds at most a quarter as many cells as counted events. But 4 096 are always allowed, and
/// 524 288 are the max. Beyond that, the base level is lowered by one, from [`BASE_LEVEL`] down to 8. Then, in turn,
/// bins are made four times as wide (while there are several) and the base level is lowered further.
#[derive(Debug, Clone, PartialEq)]
pub struct CountPyramid {
    /// Microseconds of a bin; 0 if there is a single one.
    width: i64,
    total: u64,
    /// Base layer first; each next one is [`LAYER_STEP`] levels coarser.
    layers: Vec<Layer>,
}

/// The cells of a tile: `2^bits` a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileCells {
    /// Zoom of the tile.
    pub z: u8,
    /// Column of the tile, from west.
    pub x: u32,
    /// Row of the tile, from north.
    pub y: u32,
    /// Levels below the tile: 8 for 256 x 256 cells, 6 for 64 x 64.
    pub bits: u8,
}

impl TileCells {
    /// Number of cells.
    pub fn len(&self) -> usize {
        1usize.checked_shl(2 * u32::from(self.bits)).unwrap_or(usize::MAX)
    }

    /// Always `false`: there is at least one cell.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The level of the cells.
    fn level(&self) -> Option<u8> {
        self.z.checked_add(self.bits)
    }
}

impl CountPyramid {
    /// Number of counted points.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The finest level of cells.
    pub fn base_level(&self) -> u8 {
        self.layers.first().map_or(BASE_LEVEL, |layer| layer.level)
    }

    /// Microseconds of a bin; `None` if only queries about all of time are supported.
    pub fn bin_width_us(&self) -> Option<i64> {
        (self.width > 0).then_some(self.width)
    }

    /// Number of cells of the base layer.
    pub fn cells(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.cells.len())
    }

    /// Bytes used by all layers.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|l| l.cells.len() * 12 + l.bins.len() * 12).sum()
    }

    /// The largest part of an interval made up of whole bins; events in the rest must be counted otherwise.
    ///
    /// An open end stays open. `None` if no whole bin lies in the interval.
    pub fn inner(&self, interval: &Interval) -> Option<Interval> {
        if self.width == 0 {
            return (*interval == Interval::ALWAYS).then_some(Interval::ALWAYS);
        }
        let width = i128::from(self.width);
        let at = |t: i128| i64::try_from(t).ok();
        let start = match interval.start {
            i64::MIN => i64::MIN,
            start => at(-(-i128::from(start)).div_euclid(width) * width)?,
        };
        let end = match interval.end {
            i64::MAX => i64::MAX,
            end => at((i128::from(end) + 1).div_euclid(width) * width - 1)?,
        };
        (start <= end).then_some(Interval { start, end })
    }

    /// Adds the counts of a tile's cells, row by row from the north-west, over the bins wholly inside `interval`.
    ///
    /// Adds nothing and returns false in three cases. The cells are finer than [`CountPyramid::base_level`], the tile
    /// does not exist, or `counts` does not have one entry per cell.
    pub fn add_counts(&self, tile: &TileCells, interval: &Interval, counts: &mut [u64]) -> bool {
        let Some(level) = tile.level().filter(|&level| level <= self.base_level()) else { return false };
        let tiles = 1u32 << tile.z;
        if tile.x >= tiles || tile.y >= tiles || counts.len() != tile.len() {
            return false;
        }
        // The coarsest layer that still separates the cells; without layers there is nothing to add.
        let Some(layer) = self.layers.iter().rev().find(|layer| layer.level >= level) else { return true };
        let Some(interval) = self.inner(interval) else { return true };
        let below_tile = 2 * u32::from(layer.level - tile.z);
        let below_cell = 2 * u32::from(layer.level - level);
        let first = interleave(tile.x, tile.y) << below_tile;
        let last = first | ((1u32 << below_tile) - 1);
        for bin in self.bins(layer, &interval) {
            let cells = layer.firsts[bin] as usize..layer.firsts[bin + 1] as usize;
            let begin = cells.start + layer.cells[cells.clone()].partition_point(|&cell| cell < first);
            for at in begin..cells.end {
                let cell = layer.cells[at];
                if cell > last {
                    break;
                }
                let (x, y) = split((cell - first) >> below_cell);
                let count = &mut counts[((y as usize) << tile.bits) + x as usize];
                *count = count.saturating_add(layer.counts[at]);
            }
        }
        true
    }

    /// Indexes in `layer.bins` of the bins inside an interval returned by [`CountPyramid::inner`].
    fn bins(&self, layer: &Layer, interval: &Interval) -> Range<usize> {
        if self.width == 0 {
            return 0..layer.bins.len();
        }
        let (first, last) = (interval.start.div_euclid(self.width), interval.end.div_euclid(self.width));
        let first = layer.bins.partition_point(|&bin| bin < first);
        first..layer.bins.partition_point(|&bin| bin <= last).max(first)
    }

    /// Merges several pyramids, at the coarsest level and widest bins of any of them.
    ///
    /// All must belong to one collection: different time units, or a mix with and without bins, are rejected.
    pub fn merge(pyramids: &[&CountPyramid]) -> Result<CountPyramid, IndexError> {
        let Some(first) = pyramids.first() else { return Err(IndexError::Unfit("no pyramids to merge".to_owned())) };
        let width = pyramids.iter().map(|p| p.width).max().unwrap_or(0);
        let level = pyramids.iter().map(|p| p.base_level()).min().unwrap_or(BASE_LEVEL);
        if pyramids.iter().any(|p| (p.width == 0) != (first.width == 0) || p.width > 0 && width % p.width != 0) {
            return Err(IndexError::Unfit("pyramids of different time units".to_owned()));
        }
        let mut builder = PyramidBuilder { width, level, ..PyramidBuilder::empty() };
        for pyramid in pyramids {
            builder.total = builder.total.saturating_add(pyramid.total);
            let Some(base) = pyramid.layers.first() else { continue };
            for cell in base.all() {
                // Read again for each cell: the builder may have become coarser meanwhile.
                let (wider, coarser) =
                    ((builder.width / pyramid.width.max(1)).max(1), 2 * (base.level - builder.level));
                builder.add(Cell { bin: cell.bin.div_euclid(wider), cell: cell.cell >> coarser, ..cell });
            }
        }
        Ok(builder.finish())
    }
}
