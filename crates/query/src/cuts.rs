//! Cuts a result in natural order into parts that several readers fetch concurrently.
//!
//! A part covers the range from after one cut up to the next. Cuts are positions, not rows: each part is the same
//! whenever it is read, regardless of merges between the reads.

use crate::control::Control;
use crate::cursor::Cursor;
use crate::error::QueryError;
use crate::scan::Scan;
use meridian_index::Key;
use meridian_model::Seq;
use meridian_model::filter::Predicate;
use meridian_store::Snapshot;

/// Rows sampled per part.
const SAMPLES: u64 = 8;

/// At most `parts - 1` cuts, ascending, with about equal numbers of rows between them; fewer if there are few rows.
pub fn cuts(snapshot: &Snapshot, parts: usize, control: &Control) -> Result<Vec<Cursor>, QueryError> {
    let wanted = parts.max(1) as u64;
    // Each sample represents a step of rows of its own segment.
    let step = (snapshot.rows() / (SAMPLES * wanted)).max(1);
    let mut scan = Scan::new(snapshot, &Predicate::all(), control)?;
    let mut places: Vec<(Key, Seq)> = Vec::new();
    for part in scan.parts() {
        let rows = u64::from(scan.part(part).rows());
        let middle = step / 2;
        for row in (middle..rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            // Row numbers of a segment have 32 bits.
            places.push(scan.place_of(part, row as u32)?);
        }
    }
    Ok(quantiles(places, wanted))
}

/// Combines the cuts of all partitions of a collection: at most `parts - 1`, ascending.
pub fn joined_cuts(cuts: impl IntoIterator<Item = Cursor>, parts: usize) -> Vec<Cursor> {
    let place = |cut| if let Cursor::Natural { key, seq } = cut { Some((key, seq)) } else { None };
    quantiles(cuts.into_iter().filter_map(place).collect(), parts.max(1) as u64)
}

fn quantiles(mut places: Vec<(Key, Seq)>, parts: u64) -> Vec<Cursor> {
    places.sort_unstable();
    let at = |n: u64| places.get(usize::try_from(n * places.len() as u64 / parts).unwrap_or(usize::MAX));
    let mut chosen: Vec<(Key, Seq)> = (1..parts).filter_map(at).copied().collect();
    chosen.dedup();
    chosen.into_iter().map(|(key, seq)| Cursor::Natural { key, seq }).collect()
}
