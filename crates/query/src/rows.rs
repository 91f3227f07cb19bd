//! The rows that match, for writers: deletion by filter.

use crate::candidates::{Run, search_step};
use crate::control::Control;
use crate::error::QueryError;
use crate::event_list::find_ids;
use crate::scan::{Matches, Scan};
use meridian_model::Invalid;
use meridian_model::filter::Predicate;
use meridian_store::{PartView, Snapshot};

/// Max rows of a result.
pub const ROWS_MAX: usize = 10_000_000;

/// The matching rows of each part, in the form that [`meridian_store::Collection::delete_rows`] accepts.
pub fn matching_rows(
    snapshot: &Snapshot,
    predicate: &Predicate,
    control: &Control,
) -> Result<Vec<(PartView, Vec<u32>)>, QueryError> {
    let mut scan = Scan::new(snapshot, predicate, control)?;
    let mut found: Vec<Vec<u32>> = vec![Vec::new(); scan.snapshot.parts.len()];
    let mut total = 0;
    let mut take = |scan: &mut Scan, part: u32, run: &Run| -> Result<(), QueryError> {
        let rows = scan.test(part, run)?;
        total += rows.len();
        if total > ROWS_MAX {
            let detail = format!("the filter matches more than {ROWS_MAX} events: narrow it");
            return Err(Invalid::field("filter", detail).into());
        }
        found[part as usize].extend(rows.iter());
        Ok(())
    };
    if let Some(ids) = predicate.ids() {
        for (part, run) in find_ids(&mut scan, &ids)? {
            take(&mut scan, part, &run)?;
        }
    } else {
        scan.weigh(Matches::Read)?;
        for part in scan.parts() {
            let mut candidates = scan.candidates(part, 0);
            while let Some(run) =
                candidates.next(&mut scan.stats, &mut |node, whole| search_step(predicate, node, whole))
            {
                take(&mut scan, part, &run)?;
            }
        }
    }
    Ok(scan.snapshot.parts.iter().cloned().zip(found).filter(|(_, rows)| !rows.is_empty()).collect())
}
