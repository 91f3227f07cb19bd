//! Distances of events from a place.

use crate::candidates::Run;
use crate::error::QueryError;
use crate::matched_rows::Pick;
use crate::scan::Scan;
use meridian_model::filter::box_around;
use meridian_model::sphere::distance_m;
use meridian_model::{Projection, Seq};

/// A query by distance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NearQuestion {
    pub(crate) lon: f64,
    pub(crate) lat: f64,
    pub(crate) after: Option<(f64, Seq)>,
    /// Max number of events, if limited.
    pub(crate) limit: Option<usize>,
}

impl NearQuestion {
    /// Whether an event at this distance comes after the cursor. False for events without geometry.
    pub(crate) fn wants(&self, distance_m: f64, seq: Seq) -> bool {
        distance_m.is_finite()
            && self.after.is_none_or(|(after_m, after)| distance_m > after_m || distance_m == after_m && seq > after)
    }
}

/// The columns for distances.
pub(crate) fn geometry_columns(scan: &Scan) -> Projection {
    let mut columns = Projection::none(&scan.layout);
    columns.add_geometry(&scan.layout);
    columns
}

/// Calls `take` with each matching event of a run and its distance; events farther than `most` metres may be omitted.
/// `columns` are those of the predicate and the geometry.
pub(crate) fn measure(
    scan: &mut Scan,
    part: u32,
    run: &Run,
    columns: &Projection,
    sought: &NearQuestion,
    most: f64,
    mut take: impl FnMut(f64, Pick),
) -> Result<(), QueryError> {
    let (rows, batch) = scan.test_with(part, run, columns)?;
    if rows.is_empty() {
        return Ok(());
    }
    let span = rows.span();
    let seqs = scan.part(part).seqs(span.clone())?;
    let batch = match batch {
        Some(batch) => batch.slice((span.start - run.rows.start) as usize, span.len()),
        None => scan.read(part, span.clone(), columns)?,
    };
    let mut each = |row: u32, distance_m: f64| {
        take(distance_m, Pick { part, row, seq: Seq(seqs[(row - span.start) as usize]) });
    };
    match batch.points() {
        // Points need no list of distances, and a box excludes points that are certainly too far.
        Some((lon, lat)) => {
            use arrow_array::Array;
            let [west, south, east, north] = box_around(sought.lon, sought.lat, most);
            for row in rows.iter() {
                let i = (row - span.start) as usize;
                let (x, y) = (lon.value(i), lat.value(i));
                // Without short circuits: four comparisons cost less than a mispredicted branch.
                let boxed = (west <= x) & (x <= east) & (south <= y) & (y <= north);
                if boxed && lon.is_valid(i) {
                    each(row, distance_m(sought.lon, sought.lat, x, y));
                }
            }
        }
        None => {
            let picked = rows.select(&batch, span.start);
            let distances = meridian_model::filter::distances_m(&picked, sought.lon, sought.lat);
            rows.iter().zip(distances).for_each(|(row, distance_m)| each(row, distance_m));
        }
    }
    Ok(())
}
