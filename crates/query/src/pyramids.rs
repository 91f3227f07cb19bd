//! Tiles of low zoom from the count pyramids that parts keep.
//!
//! In space-time order, the cells of a low-zoom tile cut nearly every leaf, so such a tile would read every event.
//! The pyramid counts all rows of its part. Rows that have died since are subtracted each time. Rows outside its time
//! bins, at both ends, are counted from the tree.

use crate::candidates::chunk_end;
use crate::cells::{Cells, TileGrid, centre, count_part};
use crate::error::QueryError;
use crate::scan::Scan;
use meridian_index::TileCells;
use meridian_model::filter::Predicate;
use meridian_model::{Interval, Projection};

/// Max dead rows: beyond that, subtracting them costs more than the pyramid saves.
const DEAD_MAX: usize = 1 << 17;

/// Adds the events of one part and a time interval to the counts of a tile, from a pyramid.
///
/// Returns false, having added nothing, if there is no pyramid or it does not help. Reasons: cells too fine, an
/// interval shorter than its bins, or rows newer than the snapshot.
pub(crate) fn count_tile(
    scan: &mut Scan,
    part: u32,
    grid: &TileGrid,
    interval: &Interval,
    counts: &mut Vec<u64>,
) -> Result<bool, QueryError> {
    let view = scan.part(part).clone();
    let rows = 0..view.rows();
    if !grid.may_use_pyramids() || !view.none_newer(rows.clone()) {
        return Ok(false);
    }
    let dead: Vec<u32> = view.dead_rows(rows).take(DEAD_MAX + 1).collect();
    if dead.len() > DEAD_MAX {
        return Ok(false);
    }
    let Some(pyramid) = view.pyramid()? else { return Ok(false) };
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
    // The remainder outside the bins at both ends.
    let before = (inner.start > interval.start).then(|| Interval { start: interval.start, end: inner.start - 1 });
    let after = (inner.end < interval.end).then(|| Interval { start: inner.end + 1, end: interval.end });
    for rest in [before, after].into_iter().flatten() {
        let mut edge = Scan::new(&scan.snapshot, &Predicate::interval(rest), &scan.control)?;
        edge.stats.parts = 0;
        edge.look_ahead_only(part);
        let mut boxes = Projection::none(&edge.layout);
        boxes.add_boxes(&edge.layout);
        let columns = edge.columns_with(&boxes);
        count_part(&mut edge, part, &columns, grid, counts)?;
        scan.stats.merge(&edge.stats);
    }
    Ok(true)
}
