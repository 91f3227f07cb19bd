//! Count pyramids of large parts, made when a tile first needs one and kept for the next.
//!
//! An order in space and time together has nearly every leaf cut by the cells of a tile of low zoom, so
//! that such a tile would read every event. A part never changes, so its [`CountPyramid`] is made once, and
//! rows that have died since are taken off each answer. The pyramids kept are bounded by
//! [`PYRAMID_BYTES_MAX`]; the ones unused for longest go first.

use crate::cells::{Cells, TileGrid, centre, count_part};
use crate::error::QueryError;
use crate::scan::{Scan, chunk_end};
use meridian_index::{CountPyramid, PyramidBuilder, TileCells};
use meridian_model::filter::Predicate;
use meridian_model::{GeometryType, Interval, Projection};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Most bytes of pyramids kept by the process.
pub const PYRAMID_BYTES_MAX: usize = 128 << 20;
/// Rows from which on a part gets a pyramid; fewer are read faster than it is made.
const ROWS_MIN: u32 = 1 << 16;
/// Dead rows beyond which taking them off costs more than the pyramid saves.
const DEAD_MAX: usize = 1 << 17;

#[derive(Default)]
struct Pyramids {
    state: Mutex<State>,
    made: Condvar,
}

#[derive(Default)]
struct State {
    /// By [`meridian_store::PartView::number`], with the time of the last use.
    kept: HashMap<u64, (Arc<CountPyramid>, u64)>,
    making: HashSet<u64>,
    bytes: usize,
    uses: u64,
}

static PYRAMIDS: LazyLock<Pyramids> = LazyLock::new(Pyramids::default);

/// Takes a part off the list of those being made, however that ends.
struct Making(u64);

impl Drop for Making {
    fn drop(&mut self) {
        PYRAMIDS.state.lock().unwrap_or_else(PoisonError::into_inner).making.remove(&self.0);
        PYRAMIDS.made.notify_all();
    }
}

impl State {
    fn get(&mut self, number: u64) -> Option<Arc<CountPyramid>> {
        self.uses += 1;
        let (pyramid, used) = self.kept.get_mut(&number)?;
        *used = self.uses;
        Some(pyramid.clone())
    }

    fn keep(&mut self, number: u64, pyramid: Arc<CountPyramid>) {
        self.bytes += pyramid.bytes();
        self.kept.insert(number, (pyramid, self.uses));
        while self.bytes > PYRAMID_BYTES_MAX {
            let oldest = self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(number, _)| *number);
            let Some((pyramid, _)) = oldest.and_then(|number| self.kept.remove(&number)) else { break };
            self.bytes -= pyramid.bytes();
        }
    }
}

/// The pyramid of a part; whoever asks while another makes it waits for that one.
fn pyramid_of(scan: &mut Scan, part: u32) -> Result<Arc<CountPyramid>, QueryError> {
    let number = scan.part(part).number();
    let mut state = PYRAMIDS.state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(pyramid) = state.get(number) {
            return Ok(pyramid);
        }
        if state.making.insert(number) {
            break;
        }
        scan.control.check()?;
        // Short, so that a deadline on another clock than the system's is noticed.
        let wait = PYRAMIDS.made.wait_timeout(state, Duration::from_millis(20));
        state = wait.unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(state);
    let making = Making(number);
    let mut builder = PyramidBuilder::new(scan.schema());
    let (rows, columns) = (scan.part(part).rows(), scan.key_columns().clone());
    let mut row = 0;
    while row < rows {
        let end = chunk_end(row).min(rows);
        builder.push(&scan.read(part, row..end, &columns)?);
        row = end;
    }
    let pyramid = Arc::new(builder.finish());
    PYRAMIDS.state.lock().unwrap_or_else(PoisonError::into_inner).keep(number, pyramid.clone());
    drop(making);
    Ok(pyramid)
}

/// Adds the events of one part and an interval of time to the counts of a tile, from a pyramid.
///
/// `false`, with nothing added, where a pyramid does not help: few rows, shapes, cells too fine, an interval
/// shorter than its bins, or rows newer than the snapshot.
pub(crate) fn count_tile(
    scan: &mut Scan,
    part: u32,
    grid: &TileGrid,
    interval: &Interval,
    counts: &mut [u64],
) -> Result<bool, QueryError> {
    let view = scan.part(part).clone();
    let rows = 0..view.rows();
    if scan.schema().geometry != Some(GeometryType::Point)
        || view.rows() < ROWS_MIN
        || u32::from(grid.z) + u32::from(grid.bits) > u32::from(meridian_index::BASE_LEVEL)
        || !view.none_newer(rows.clone())
    {
        return Ok(false);
    }
    let dead: Vec<u32> = view.dead_rows(rows).take(DEAD_MAX + 1).collect();
    if dead.len() > DEAD_MAX {
        return Ok(false);
    }
    let pyramid = pyramid_of(scan, part)?;
    let Some(inner) = pyramid.inner(interval) else { return Ok(false) };
    let cells = TileCells { z: grid.z, x: grid.x, y: grid.y, bits: grid.bits };
    let mut found = vec![0; counts.len()];
    if !pyramid.add_counts(&cells, &inner, &mut found) {
        return Ok(false);
    }
    let columns = scan.key_columns().clone();
    for run in dead.chunk_by(|a, b| chunk_end(*a) == chunk_end(*b)) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
        let batch = scan.read(part, first..last + 1, &columns)?;
        for row in run.iter().map(|row| (row - first) as usize) {
            let (time, _) = batch.interval(row);
            if inner.start <= time
                && time <= inner.end
                && let Some((lon, lat)) = centre(&batch, row)
                && let Some(cell) = grid.cell(lon, lat)
            {
                found[cell] -= 1;
            }
        }
    }
    scan.stats.events_matched += found.iter().sum::<u64>();
    counts.iter_mut().zip(&found).for_each(|(count, more)| *count += more);
    // What the bins leave over at both ends.
    let before = (inner.start > interval.start).then(|| Interval { start: interval.start, end: inner.start - 1 });
    let after = (inner.end < interval.end).then(|| Interval { start: inner.end + 1, end: interval.end });
    for rest in [before, after].into_iter().flatten() {
        let mut edge = Scan::new(&scan.snapshot, &Predicate::interval(rest), &scan.control);
        edge.stats.parts = 0;
        let mut boxes = Projection::none(&edge.layout);
        boxes.add_boxes(&edge.layout);
        let columns = edge.columns_with(&boxes);
        count_part(&mut edge, part, &columns, grid, counts)?;
        scan.stats.merge(&edge.stats);
    }
    Ok(true)
}
