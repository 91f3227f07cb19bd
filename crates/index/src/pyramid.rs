//! Counts of points per cell of the map and coarse bin of time.
//!
//! A tile of low zoom covers more events than it can show, and in an order by space and time together nearly
//! every leaf is cut by the query. The pyramid has the answer itself: the number of points in each Web-Mercator
//! cell during each bin of time, at a base level and at every second level above.

use crate::codec::{Reader, write_array, write_u32};
use crate::columns::{BoxColumns, Boxes};
use crate::error::IndexError;
use crate::key::Grid;
use crate::mercator::{interleave, mercator_cell, split};
use arrow_buffer::{Buffer, ScalarBuffer};
use meridian_model::{Batch, Interval, Schema, TimeRole};
use std::ops::Range;

/// Finest level of cells: at level 12 a cell is 9.8 km wide at the equator.
pub const BASE_LEVEL: u8 = 12;
/// The base level is lowered to this before bins of time are widened: 256 x 256 cells of the whole world.
const BASE_LEVEL_LOW: u8 = 8;
/// Levels between one layer and the next coarser.
const LAYER_STEP: u8 = 2;
/// Most cells of the base layer, and the most that no number of events lowers.
const CELLS_MAX: usize = 1 << 19;
const CELLS_MIN: usize = 1 << 12;
/// Min mean number of events a cell, for cells beyond [`CELLS_MIN`].
const EVENTS_PER_CELL: u64 = 4;
/// Cells collected before they are sorted in.
const PENDING_MIN: usize = 1 << 15;
/// First bytes and version of an encoded pyramid.
const MAGIC: [u8; 4] = *b"MPYR";
const VERSION: u8 = 1;

/// Counts of points per Web-Mercator cell and bin of time; immutable and cheap to share.
///
/// A bin is the grid's time unit. A collection without time, or of intervals (which may lie in several
/// bins), has a single bin and answers questions about all of time only. Points beyond
/// [`crate::MERCATOR_LAT_MAX`] lie in no tile and are not counted.
///
/// **Size.** The base layer holds at most a quarter as many cells as events counted, but 4 096 are always
/// allowed and 524 288 never passed. When there are more, the base level is lowered by one, from
/// [`BASE_LEVEL`] down to 8; then, in turn, bins are made four times as wide (while there are several) and
/// the base level is lowered further.
#[derive(Debug, Clone, PartialEq)]
pub struct CountPyramid {
    /// Microseconds of a bin; 0 if there is but one.
    width: i64,
    total: u64,
    /// Base layer first; each next one is [`LAYER_STEP`] levels coarser.
    layers: Vec<Layer>,
}

/// Counts at one level, in order of bin and interleaved cell.
#[derive(Debug, Clone, PartialEq)]
struct Layer {
    level: u8,
    /// Numbers of the bins that hold anything, ascending.
    bins: ScalarBuffer<i64>,
    /// Where each bin's cells begin, then the number of cells.
    firsts: ScalarBuffer<u32>,
    cells: ScalarBuffer<u32>,
    counts: ScalarBuffer<u64>,
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
    /// Points counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The finest level of cells held.
    pub fn base_level(&self) -> u8 {
        self.layers.first().map_or(BASE_LEVEL, |layer| layer.level)
    }

    /// Microseconds of a bin; `None` if only questions about all of time are answered.
    pub fn bin_width_us(&self) -> Option<i64> {
        (self.width > 0).then_some(self.width)
    }

    /// Cells of the base layer.
    pub fn cells(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.cells.len())
    }

    /// Bytes that all layers take.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|l| l.cells.len() * 12 + l.bins.len() * 12).sum()
    }

    /// The longest part of an interval that whole bins make up; events in the rest must be counted otherwise.
    ///
    /// An end that is open stays open. `None` if no whole bin lies in the interval.
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
    /// `false`, with nothing added, if the cells are finer than [`CountPyramid::base_level`], the tile does
    /// not exist, or `counts` has not one place for each cell.
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

    /// Places in `layer.bins` of the bins inside an interval that [`CountPyramid::inner`] gave.
    fn bins(&self, layer: &Layer, interval: &Interval) -> Range<usize> {
        if self.width == 0 {
            return 0..layer.bins.len();
        }
        let (first, last) = (interval.start.div_euclid(self.width), interval.end.div_euclid(self.width));
        let first = layer.bins.partition_point(|&bin| bin < first);
        first..layer.bins.partition_point(|&bin| bin <= last).max(first)
    }

    /// The pyramid of all events of several, at the coarsest level and widest bins of any of them.
    ///
    /// Pyramids of one collection only: of different time units, or with and without bins, they are refused.
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

    /// Writes the pyramid. `docs/format.md` has the layout, under "Counts per map cell".
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes() + 4096);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, 0, 0, 0]);
        bytes.extend_from_slice(&self.width.to_le_bytes());
        bytes.extend_from_slice(&self.total.to_le_bytes());
        write_u32(&mut bytes, self.layers.len() as u32);
        for layer in &self.layers {
            write_u32(&mut bytes, layer.level.into());
            write_u32(&mut bytes, layer.bins.len() as u32);
            write_u32(&mut bytes, layer.cells.len() as u32);
        }
        for layer in &self.layers {
            write_array(&mut bytes, &layer.bins);
            write_array(&mut bytes, &layer.firsts);
            write_array(&mut bytes, &layer.cells);
            write_array(&mut bytes, &layer.counts);
        }
        bytes
    }

    /// Reads what [`CountPyramid::encode`] wrote, copying it once.
    pub fn decode(bytes: &[u8]) -> Result<CountPyramid, IndexError> {
        CountPyramid::decode_shared(&Buffer::from_slice_ref(bytes))
    }

    /// Reads what [`CountPyramid::encode`] wrote without copying, if the buffer starts at a multiple of 8 bytes in memory.
    pub fn decode_shared(bytes: &Buffer) -> Result<CountPyramid, IndexError> {
        let mut reader = Reader::open("count pyramid", bytes, MAGIC, VERSION)?;
        let (width, total) = (reader.u64()? as i64, reader.u64()?);
        let count = reader.u32()?;
        if width < 0 || count > u32::from(BASE_LEVEL / LAYER_STEP) + 1 {
            return Err(reader.damaged(format!("bins of {width} µs and {count} layers")));
        }
        let heads =
            (0..count).map(|_| Ok([reader.u32()?, reader.u32()?, reader.u32()?])).collect::<Result<Vec<_>, _>>()?;
        let mut layers: Vec<Layer> = Vec::with_capacity(heads.len());
        for [level, bins, cells] in heads {
            let layer = Layer {
                level: level.min(255) as u8,
                bins: reader.array(bins as usize)?,
                firsts: reader.array(bins as usize + 1)?,
                cells: reader.array(cells as usize)?,
                counts: reader.array(cells as usize)?,
            };
            let expected = layers.last().map_or(layer.level, |last| last.level.wrapping_sub(LAYER_STEP));
            if layer.level > BASE_LEVEL || layer.level != expected {
                return Err(reader.damaged(format!("a layer of level {level}")));
            }
            layer.check().map_err(|detail| reader.damaged(detail))?;
            layers.push(layer);
        }
        reader.finish()?;
        Ok(CountPyramid { width, total, layers })
    }
}

impl Layer {
    /// The layer of cells that are in order and differ from each other.
    fn of(level: u8, sorted: &[Cell]) -> Layer {
        let (mut bins, mut firsts) = (Vec::new(), Vec::new());
        for (at, cell) in sorted.iter().enumerate() {
            if bins.last() != Some(&cell.bin) {
                bins.push(cell.bin);
                firsts.push(at as u32);
            }
        }
        firsts.push(sorted.len() as u32);
        Layer {
            level,
            bins: bins.into(),
            firsts: firsts.into(),
            cells: sorted.iter().map(|c| c.cell).collect::<Vec<_>>().into(),
            counts: sorted.iter().map(|c| c.count).collect::<Vec<_>>().into(),
        }
    }

    fn all(&self) -> impl Iterator<Item = Cell> + '_ {
        self.bins.iter().enumerate().flat_map(move |(i, &bin)| {
            let cells = self.firsts[i] as usize..self.firsts[i + 1] as usize;
            cells.map(move |at| Cell { bin, cell: self.cells[at], count: self.counts[at] })
        })
    }

    /// Checks that bins and cells are in order and within range.
    fn check(&self) -> Result<(), &'static str> {
        let ascending = |values: &[u32]| values.windows(2).all(|pair| pair[0] < pair[1]);
        if !self.bins.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err("the bins are not in order");
        }
        let ends = self.firsts.first().zip(self.firsts.last());
        if ends != Some((&0, &(self.cells.len() as u32))) || !ascending(&self.firsts) {
            return Err("the bins' cells do not follow each other");
        }
        for bin in self.firsts.windows(2) {
            let cells = &self.cells[bin[0] as usize..bin[1] as usize];
            if !ascending(cells) || cells.last().is_some_and(|&cell| cell >> (2 * self.level) != 0) {
                return Err("the cells are not in order or beyond their level");
            }
        }
        Ok(())
    }
}

/// Count of one cell during one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    bin: i64,
    cell: u32,
    count: u64,
}

/// Counts points into a [`CountPyramid`], in memory bounded by the pyramid's max size.
pub struct PyramidBuilder {
    width: i64,
    level: u8,
    total: u64,
    /// In order of bin and cell, each once.
    sorted: Vec<Cell>,
    /// In any order.
    pending: Vec<Cell>,
}

impl PyramidBuilder {
    /// A builder for the points of a collection.
    pub fn new(schema: &Schema) -> PyramidBuilder {
        let width = if matches!(schema.time, TimeRole::Instant(_)) { Grid::of(schema).unit_us() } else { 0 };
        PyramidBuilder { width, ..PyramidBuilder::empty() }
    }

    fn empty() -> PyramidBuilder {
        PyramidBuilder { width: 0, level: BASE_LEVEL, total: 0, sorted: Vec::new(), pending: Vec::new() }
    }

    /// Counts the points of a batch; events without geometry, and shapes, are not counted.
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
        let Some((x, y)) = mercator_cell(lon, lat, self.level.into()) else { return };
        let bin = if self.width == 0 { 0 } else { time.div_euclid(self.width) };
        self.total += 1;
        self.add(Cell { bin, cell: interleave(x, y), count: 1 });
    }

    fn add(&mut self, new: Cell) {
        match self.pending.last_mut() {
            Some(last) if (last.bin, last.cell) == (new.bin, new.cell) => {
                last.count = last.count.saturating_add(new.count);
            }
            _ => self.pending.push(new),
        }
        // Sorting in only once the pending ones are half as many keeps the whole work within n log n.
        if self.pending.len() >= PENDING_MIN.max(self.sorted.len() / 2) {
            self.sort_in();
            self.shrink_to(CELLS_MAX);
        }
    }

    fn sort_in(&mut self) {
        self.pending.sort_unstable_by_key(|c| (c.bin, c.cell));
        self.sorted.append(&mut self.pending);
        // The stable sort finds the two ascending runs and merges them.
        self.sorted.sort_by_key(|c| (c.bin, c.cell));
        join_equal(&mut self.sorted);
    }

    /// Makes cells and bins coarser until there are no more than `most`.
    fn shrink_to(&mut self, most: usize) {
        let mut widened = false;
        while self.sorted.len() > most {
            let one_bin = self.sorted.first().map(|c| c.bin) == self.sorted.last().map(|c| c.bin);
            let can_widen = !one_bin && self.width > 0 && self.width <= i64::MAX / 4;
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

    /// Sums the coarser layers and gives the pyramid.
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

/// Sums neighbours of the same bin and cell.
fn join_equal(sorted: &mut Vec<Cell>) {
    sorted.dedup_by(|next, kept| {
        let same = (next.bin, next.cell) == (kept.bin, kept.cell);
        if same {
            kept.count = kept.count.saturating_add(next.count);
        }
        same
    });
}
