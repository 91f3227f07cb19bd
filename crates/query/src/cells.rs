//! Grids of cells on the map, and counts of events per cell.
//!
//! A node whose box lies in one cell is counted from the node. A point counts in its cell. A shape counts in
//! the cell of its box's centre, and nowhere if that centre lies outside the grid. A [`Tally`] says what is kept.

use crate::candidates::{Candidates, Run, Step, search_step};
use crate::error::QueryError;
use crate::event_list::find_ids;
use crate::parallel::{Task, add_tasks, slices, work};
use crate::scan::Scan;
use crate::tally::Tally;
use arrow_array::Array;
use meridian_index::{MERCATOR_LAT_MAX, mercator_cell};
use meridian_model::filter::Region;
use meridian_model::{Batch, Bounds, Projection};

/// Position of a box on a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellPosition {
    /// Outside the grid.
    Outside,
    /// Wholly in this cell.
    In(usize),
    /// In several cells, or partly outside the grid.
    Cut,
}

/// A grid of cells, numbered row by row from the north-west.
pub(crate) trait Cells {
    /// Number of cells.
    #[cfg(test)]
    fn len(&self) -> usize;
    /// The cell of a place in degrees.
    fn cell(&self, lon: f64, lat: f64) -> Option<usize>;
    /// Position of a box that is not nowhere.
    fn place(&self, bounds: &Bounds) -> CellPosition;
}

/// Cells of equal width and height in degrees; the east and south edges belong to the last cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DegreeCells {
    /// West, south, east, north; `west > east` crosses the antimeridian.
    bbox: [f64; 4],
    width: u32,
    height: u32,
}

impl DegreeCells {
    pub(crate) fn new(bbox: [f64; 4], width: u32, height: u32) -> DegreeCells {
        DegreeCells { bbox, width, height }
    }

    fn crosses(&self) -> bool {
        self.bbox[0] > self.bbox[2]
    }

    /// Whether a longitude lies beyond the antimeridian, as seen from the grid's west.
    fn is_far_side(&self, lon: f64) -> bool {
        self.crosses() && lon < self.bbox[0]
    }

    fn column(&self, lon: f64) -> usize {
        let [west, _, east, _] = self.bbox;
        let span = if self.crosses() { east - west + 360.0 } else { east - west };
        let lon = if self.is_far_side(lon) { lon + 360.0 } else { lon };
        part(lon - west, span, self.width)
    }

    fn row(&self, lat: f64) -> usize {
        let [_, south, _, north] = self.bbox;
        part(north - lat, north - south, self.height)
    }

    fn holds_lon(&self, lon: f64) -> bool {
        let [west, _, east, _] = self.bbox;
        if self.crosses() { lon >= west || lon <= east } else { west <= lon && lon <= east }
    }
}

/// The index of the part that contains a length, out of `count` equal parts of `span`. Rounding never exceeds the
/// last part.
fn part(length: f64, span: f64, count: u32) -> usize {
    let part = if span > 0.0 { (length / span * f64::from(count)) as usize } else { 0 };
    part.min(count as usize - 1)
}

impl Cells for DegreeCells {
    #[cfg(test)]
    fn len(&self) -> usize {
        self.width as usize * self.height as usize
    }

    fn cell(&self, lon: f64, lat: f64) -> Option<usize> {
        let [_, south, _, north] = self.bbox;
        let inside = self.holds_lon(lon) && south <= lat && lat <= north;
        inside.then(|| self.row(lat) * self.width as usize + self.column(lon))
    }

    fn place(&self, bounds: &Bounds) -> CellPosition {
        let [west, south, east, north] = self.bbox;
        let touches =
            |w: f64, e: f64| bounds.west <= e && w <= bounds.east && bounds.south <= north && south <= bounds.north;
        let touched = if self.crosses() { touches(west, 180.0) || touches(-180.0, east) } else { touches(west, east) };
        if !touched {
            return CellPosition::Outside;
        }
        // Columns ascend with longitude on each side of the antimeridian, so two corners decide for the box.
        let one_side = self.is_far_side(bounds.west) == self.is_far_side(bounds.east);
        match (self.cell(bounds.west, bounds.north), self.cell(bounds.east, bounds.south)) {
            (Some(a), Some(b)) if a == b && one_side => CellPosition::In(a),
            _ => CellPosition::Cut,
        }
    }
}

/// The cells of a map tile, `2^bits` a side, cut by [`mercator_cell`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct TileGrid {
    pub(crate) z: u8,
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) bits: u8,
}

impl TileGrid {
    fn level(&self) -> u32 {
        u32::from(self.z) + u32::from(self.bits)
    }

    /// Whether its cells are no finer than those of the pyramids.
    pub(crate) fn may_use_pyramids(&self) -> bool {
        self.level() <= u32::from(meridian_index::BASE_LEVEL)
    }
}

impl Cells for TileGrid {
    #[cfg(test)]
    fn len(&self) -> usize {
        1 << (2 * self.bits)
    }

    fn cell(&self, lon: f64, lat: f64) -> Option<usize> {
        let (x, y) = mercator_cell(lon, lat, self.level())?;
        let inside = x >> self.bits == self.x && y >> self.bits == self.y;
        let mask = (1 << self.bits) - 1;
        inside.then_some(((y & mask) as usize) << self.bits | (x & mask) as usize)
    }

    fn place(&self, bounds: &Bounds) -> CellPosition {
        // There is no cell beyond the square, but the box may still reach into it.
        let in_range = |lat: f64| lat.clamp(-MERCATOR_LAT_MAX, MERCATOR_LAT_MAX);
        let corner = |lon: f64, lat: f64| mercator_cell(lon, in_range(lat), self.level()).unwrap_or((0, 0));
        if bounds.north < -MERCATOR_LAT_MAX || bounds.south > MERCATOR_LAT_MAX {
            return CellPosition::Outside;
        }
        let ((west, north), (east, south)) = (corner(bounds.west, bounds.north), corner(bounds.east, bounds.south));
        let tile = |first: u32, last: u32, at: u32| first >> self.bits <= at && at <= last >> self.bits;
        if !tile(west, east, self.x) || !tile(north, south, self.y) {
            return CellPosition::Outside;
        }
        match (self.cell(bounds.west, bounds.north), self.cell(bounds.east, bounds.south)) {
            (Some(a), Some(b)) if a == b => CellPosition::In(a),
            _ => CellPosition::Cut,
        }
    }
}

/// Adds the matching events of a query to their cells.
pub(crate) fn count_into(
    scan: &mut Scan,
    cells: &(impl Cells + Sync),
    tally: &mut impl Tally,
) -> Result<(), QueryError> {
    let mut columns = Projection::none(&scan.layout);
    columns.add_boxes(&scan.layout);
    tally.add_columns(&scan.layout, &mut columns);
    let columns = scan.columns_with(&columns);
    if let Some(ids) = scan.predicate.ids() {
        for (part, run) in find_ids(scan, &ids)? {
            count_run(scan, part, &run, &columns, cells, tally)?;
        }
        return Ok(());
    }
    let mut tasks = Vec::new();
    for part in scan.parts() {
        add_tasks(&mut tasks, part, scan.part(part).trees(), false);
    }
    let slices = slices(scan.snapshot.rows());
    if slices == 1 {
        return tasks.iter().try_for_each(|task| count_task(scan, task, &columns, cells, tally));
    }
    // One tally per thread, merged at the end: a shared one would need an atomic for every event.
    let empty = &*tally;
    let made = work(
        scan,
        &tasks,
        slices,
        |_| empty.empty(),
        |tally, scan, task| count_task(scan, task, &columns, cells, tally),
    )?;
    made.into_iter().for_each(|part| tally.merge(part));
    Ok(())
}

/// Adds the events of one part.
pub(crate) fn count_part(
    scan: &mut Scan,
    part: u32,
    columns: &Projection,
    cells: &impl Cells,
    tally: &mut impl Tally,
) -> Result<(), QueryError> {
    let mut candidates = scan.candidates(part, 0);
    count_candidates(scan, part, &mut candidates, columns, cells, tally)
}

fn count_task(
    scan: &mut Scan,
    task: &Task,
    columns: &Projection,
    cells: &impl Cells,
    tally: &mut impl Tally,
) -> Result<(), QueryError> {
    let mut candidates = task.candidates(scan);
    count_candidates(scan, task.part, &mut candidates, columns, cells, tally)
}

fn count_candidates(
    scan: &mut Scan,
    part: u32,
    candidates: &mut Candidates,
    columns: &Projection,
    cells: &impl Cells,
    tally: &mut impl Tally,
) -> Result<(), QueryError> {
    let view = scan.part(part).clone();
    loop {
        let mut matched = 0;
        let Scan { stats, predicate, .. } = &mut *scan;
        let run = candidates.next(stats, &mut |node, whole| {
            let bounds = node.bounds();
            // Events without a place are in no cell. Their box is empty, and comparing it would prove nothing.
            if bounds.is_nowhere() {
                return Step::Skip;
            }
            let place = cells.place(&bounds);
            if place == CellPosition::Outside {
                return Step::Skip;
            }
            match (search_step(predicate, node, whole), place) {
                // Only if the snapshot shows every row: a node also summarises rows written later.
                (Step::Rows { whole: true }, CellPosition::In(cell)) if view.none_newer(node.rows()) => {
                    let rows = node.rows();
                    // Trees are never rewritten, so deleted rows still count in the node.
                    let alive = rows.len() as u64 - view.dead_rows(rows).count() as u64;
                    if !tally.add_node(cell, node, alive) {
                        return Step::Descend { whole: true };
                    }
                    matched += alive;
                    Step::Taken
                }
                // A node over several cells is split, as each child may lie in one.
                (Step::Rows { whole }, _) => Step::Descend { whole },
                (step, _) => step,
            }
        });
        stats.events_matched += matched;
        let Some(run) = run else { return Ok(()) };
        count_run(scan, part, &run, columns, cells, tally)?;
    }
}

fn count_run(
    scan: &mut Scan,
    part: u32,
    run: &Run,
    columns: &Projection,
    cells: &impl Cells,
    tally: &mut impl Tally,
) -> Result<(), QueryError> {
    let Some((rows, batch)) = scan.matching(part, run, columns)? else { return Ok(()) };
    let placed = rows.iter().filter_map(|row| {
        let row = (row - run.rows.start) as usize;
        let (lon, lat) = centre(&batch, row)?;
        Some((row, cells.cell(lon, lat)?))
    });
    tally.add_rows(&batch, placed);
    Ok(())
}

/// The place of an event, or the centre of its box; reads the columns of [`Projection::add_boxes`].
pub(crate) fn centre(batch: &Batch, row: usize) -> Option<(f64, f64)> {
    if let Some((lon, lat)) = batch.points() {
        return lon.is_valid(row).then(|| (lon.value(row), lat.value(row)));
    }
    let [west, south, east, north] = batch.sides()?;
    west.is_valid(row).then(|| ((west.value(row) + east.value(row)) * 0.5, (south.value(row) + north.value(row)) * 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(cells: &impl Cells, bounds: &Bounds) -> Result<(), TestCaseError> {
        let place = cells.place(bounds);
        for i in 0..=4 {
            for j in 0..=4 {
                let lon = (bounds.west + (bounds.east - bounds.west) * f64::from(i) / 4.0).min(bounds.east);
                let lat = (bounds.south + (bounds.north - bounds.south) * f64::from(j) / 4.0).min(bounds.north);
                let cell = cells.cell(lon, lat);
                prop_assert!(cell.is_none_or(|c| c < cells.len()));
                match place {
                    CellPosition::Outside => prop_assert_eq!(cell, None),
                    CellPosition::In(expected) => prop_assert_eq!(cell, Some(expected)),
                    CellPosition::Cut => {}
                }
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn where_a_box_lies_is_true_of_all_its_places(
            a in (-180.0..=180.0f64, -90.0..=90.0f64),
            size in (0.0..=1.0f64, 0.0..=1.0f64, 0u32..16),
            grid in (-180.0..=180.0f64, -90.0..0.0f64, -180.0..=180.0f64, 0.0..=90.0f64),
            cells in (1u32..20, 1u32..20),
            tile in (0u8..8, any::<u32>(), any::<u32>()),
        ) {
            let scale = 1.0 / f64::from(1 << size.2);
            let bounds = Bounds {
                west: a.0,
                south: a.1,
                east: a.0 + (180.0 - a.0) * size.0 * scale,
                north: a.1 + (90.0 - a.1) * size.1 * scale,
                start: 0,
                end: 0,
            };
            check(&DegreeCells::new([grid.0, grid.1, grid.2, grid.3], cells.0, cells.1), &bounds)?;
            let side = 1u32 << tile.0;
            check(&TileGrid { z: tile.0, x: tile.1 % side, y: tile.2 % side, bits: 4 }, &bounds)?;
        }
    }

    #[test]
    fn edges_belong_to_the_last_cells_and_the_antimeridian_is_crossed() {
        let grid = DegreeCells::new([170.0, -10.0, -170.0, 10.0], 4, 2);
        assert_eq!(grid.cell(170.0, 10.0), Some(0));
        assert_eq!(grid.cell(-170.0, -10.0), Some(7));
        assert_eq!(grid.cell(180.0, 5.0), Some(2));
        assert_eq!(grid.cell(-180.0, 5.0), Some(2));
        assert_eq!(grid.cell(0.0, 0.0), None);
        let point = DegreeCells::new([5.0, 5.0, 5.0, 5.0], 3, 3);
        assert_eq!(point.cell(5.0, 5.0), Some(0));
    }
}
