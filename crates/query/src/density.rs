//! Counts of events on a grid in degrees: heat maps.

use crate::cells::{DegreeCells, count_into};
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::parallel::slices;
use crate::scan::{Matches, Scan};
use meridian_model::Invalid;
use meridian_model::filter::Predicate;
use meridian_store::Snapshot;

/// Max number of cells of a query.
pub const DENSITY_CELLS_MAX: u64 = 1 << 20;

/// A query for counts on a grid.
///
/// An event counts in the cell of its place, a shape in that of the centre of its box. The counts add up to the
/// number of matching events whose place lies in the box, edges included.
#[derive(Debug, Clone)]
pub struct Density {
    /// The filter of events.
    pub predicate: Predicate,
    /// West, south, east and north in degrees; `west > east` crosses the antimeridian.
    pub bbox: [f64; 4],
    /// Cells from west to east.
    pub width: u32,
    /// Cells from north to south.
    pub height: u32,
}

/// Counts row by row from the north-west, and the cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DensityCounts {
    /// `width * height` counts.
    pub counts: Vec<u64>,
    /// The cost of the query.
    pub stats: Stats,
}

/// Counts of one partition on a grid, row by row from the north-west.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialGrid {
    /// A count for each cell.
    pub counts: Vec<u64>,
    /// The cost of the query.
    pub stats: Stats,
}

/// Runs a query for counts on a grid.
pub fn density(snapshot: &Snapshot, question: &Density, control: &Control) -> Result<DensityCounts, QueryError> {
    Ok(PartialGrid::of(snapshot, question, control)?.finish())
}

impl Density {
    /// Number of cells of the grid; validates the grid.
    pub fn cells(&self) -> Result<usize, Invalid> {
        let [west, south, east, north] = self.bbox;
        for (lon, lat) in [(west, south), (east, north)] {
            meridian_model::geometry::validate_position(lon, lat)
                .map_err(|e| Invalid { field: Some("bbox".to_owned()), ..e })?;
        }
        if south > north {
            return Err(Invalid::field("bbox", "the south of the box lies north of its north"));
        }
        let cells = u64::from(self.width) * u64::from(self.height);
        if cells == 0 || cells > DENSITY_CELLS_MAX {
            let detail = format!(
                "a grid of {} by {} cells: expected at least 1 and at most {DENSITY_CELLS_MAX} cells",
                self.width, self.height
            );
            return Err(Invalid::field("width", detail));
        }
        Ok(cells as usize)
    }
}

impl PartialGrid {
    /// The counts of the events of a snapshot.
    pub fn of(snapshot: &Snapshot, question: &Density, control: &Control) -> Result<PartialGrid, QueryError> {
        let started = control.elapsed_us();
        control.check()?;
        let cells = question.cells()?;
        // One grid for each possible thread, plus the result.
        let mut share = control.share();
        share.reach(cells * size_of::<u64>() * (slices(snapshot.rows()) + 1))?;
        let mut counts = vec![0; cells];
        let mut scan = Scan::new(snapshot, &question.predicate, control)?;
        scan.weigh(Matches::Counted)?;
        count_into(&mut scan, &DegreeCells::new(question.bbox, question.width, question.height), &mut counts)?;
        scan.stats.scan_us = (control.elapsed_us() - started).max(0) as u64;
        Ok(PartialGrid { counts, stats: scan.stats })
    }

    /// Finishes the result.
    pub fn finish(self) -> DensityCounts {
        DensityCounts { counts: self.counts, stats: self.stats }
    }
}
