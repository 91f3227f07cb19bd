//! A part's rows in time order, and its dead rows, which that order still contains.

use crate::candidates::chunk_end;
use crate::error::QueryError;
use crate::scan::Scan;
use meridian_index::Tree;
use meridian_model::{Batch, Bounds, Projection, TimeRole};
use meridian_store::{PartView, StoreError, TimeOrder};
use std::ops::Range;

/// A part's rows in time order. Their numbers are called places, to distinguish them from rows of the part.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ordered<'a> {
    /// The projection that the part keeps in that order.
    Projection(TimeOrder<'a>, &'a PartView),
    /// The rows themselves: rows of instants without geometry have no other order.
    Rows(&'a PartView),
}

impl<'a> Ordered<'a> {
    /// The time order of a part, if it has one.
    pub(crate) fn of(view: &'a PartView) -> Option<Ordered<'a>> {
        let schema = view.schema();
        match view.time_order() {
            Some(order) => Some(Ordered::Projection(order, view)),
            None if schema.geometry.is_none() && matches!(schema.time, TimeRole::Instant(_)) => {
                Some(Ordered::Rows(view))
            }
            None => None,
        }
    }

    /// The tree over the places: one, or none for an empty part.
    pub(crate) fn trees(&self) -> Result<Vec<Tree>, StoreError> {
        match self {
            Ordered::Projection(order, _) => order.trees(),
            Ordered::Rows(view) => Ok(view.trees().to_vec()),
        }
    }

    /// The time and numeric fields at some places, as far as requested.
    pub(crate) fn read(&self, places: Range<u32>, wanted: &Projection) -> Result<Batch, StoreError> {
        match self {
            Ordered::Projection(order, _) => order.read(places, wanted),
            Ordered::Rows(view) => view.read(places, wanted),
        }
    }

    /// The rows at some places.
    pub(crate) fn rows(&self, places: Range<u32>) -> Result<Vec<u32>, StoreError> {
        match self {
            Ordered::Projection(order, _) => Ok(order.rows(places)?.values().to_vec()),
            Ordered::Rows(_) => Ok(places.collect()),
        }
    }

    /// Whether reads gather values one by one, so that reading more than needed is expensive.
    pub(crate) fn is_gathered(&self) -> bool {
        matches!(self, Ordered::Projection(_, view) if view.in_memory())
    }
}

/// Dead rows of a part with a time order.
#[derive(Debug, Default)]
pub(crate) struct DeadRowsByTime {
    /// In row order.
    pub(crate) rows: Vec<u32>,
    /// Their times, in time order.
    times: Vec<i64>,
}

/// Max dead rows of a part whose time order is used.
pub(crate) const DEAD_MAX: usize = 1 << 16;

impl DeadRowsByTime {
    pub(crate) fn of(scan: &mut Scan, part: u32, rows: Vec<u32>) -> Result<DeadRowsByTime, QueryError> {
        let mut columns = Projection::none(&scan.layout);
        columns.add_time(&scan.layout, scan.schema());
        let mut times = Vec::with_capacity(rows.len());
        for run in rows.chunk_by(|a, b| chunk_end(*a) == chunk_end(*b)) {
            let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
            let batch = scan.read(part, first..last + 1, &columns)?;
            times.extend(run.iter().map(|row| batch.interval((row - first) as usize).0));
        }
        // Sorted separately from the rows: nodes are checked by time, rows by number.
        times.sort_unstable();
        Ok(DeadRowsByTime { rows, times })
    }

    /// The first time at or after an instant that a dead row has.
    pub(crate) fn first_from(&self, time: i64) -> Option<i64> {
        self.times.get(self.times.partition_point(|&t| t < time)).copied()
    }

    /// Whether the time of a box may include a dead row.
    pub(crate) fn some_in(&self, bounds: &Bounds) -> bool {
        self.first_from(bounds.start).is_some_and(|time| time <= bounds.end)
    }

    pub(crate) fn holds(&self, row: u32) -> bool {
        self.rows.binary_search(&row).is_ok()
    }
}
