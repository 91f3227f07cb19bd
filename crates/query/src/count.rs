//! The number of matching events: `numberMatched`.

use crate::candidates::{Step, search_step};
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::event_list::find_ids;
use crate::scan::Scan;
use meridian_model::filter::Predicate;
use meridian_store::Snapshot;

/// Counts the matching events exactly; nodes that match as a whole are counted without reading their events.
///
/// Gives up and returns `None` once more than `tested_max` events had to be tested one by one.
pub fn count(
    snapshot: &Snapshot,
    predicate: &Predicate,
    tested_max: u64,
    control: &Control,
) -> Result<(Option<u64>, Stats), QueryError> {
    count_within(snapshot, predicate, Limits { tested: tested_max, found: u64::MAX }, control)
}

/// Limits beyond which a count is abandoned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Max events tested one by one.
    pub(crate) tested: u64,
    /// Max events found.
    pub(crate) found: u64,
}

/// The same with an additional limit on events found.
pub(crate) fn count_within(
    snapshot: &Snapshot,
    predicate: &Predicate,
    limits: Limits,
    control: &Control,
) -> Result<(Option<u64>, Stats), QueryError> {
    let started = control.elapsed_us();
    control.check()?;
    let mut scan = Scan::new(snapshot, predicate, control)?;
    scan.expect_counts();
    let total = count_all(&mut scan, limits)?;
    scan.stats.scan_us = (control.elapsed_us() - started).max(0) as u64;
    Ok((total, scan.stats))
}

fn count_all(scan: &mut Scan, limits: Limits) -> Result<Option<u64>, QueryError> {
    if let Some(ids) = scan.predicate.ids() {
        if ids.len() as u64 > limits.tested {
            return Ok(None);
        }
        for (part, run) in find_ids(scan, &ids)? {
            scan.test(part, &run)?;
        }
        return Ok(Some(scan.stats.events_matched));
    }
    for part in scan.parts() {
        let view = scan.part(part).clone();
        let mut candidates = scan.candidates(part, 0);
        loop {
            let mut matched = 0;
            let Scan { stats, predicate, .. } = &mut *scan;
            let run = candidates.next(stats, &mut |node, whole| match search_step(predicate, node, whole) {
                Step::Rows { whole: true } if view.none_newer(node.rows()) => {
                    let rows = node.rows();
                    matched += rows.len() as u64 - view.dead_rows(rows).count() as u64;
                    Step::Taken
                }
                Step::Rows { whole } => Step::Descend { whole },
                step => step,
            });
            stats.events_matched += matched;
            if stats.events_matched > limits.found {
                return Ok(None);
            }
            let Some(run) = run else { break };
            if stats.events_tested.saturating_add(run.rows.len() as u64) > limits.tested {
                return Ok(None);
            }
            scan.test(part, &run)?;
        }
    }
    Ok(Some(scan.stats.events_matched).filter(|found| *found <= limits.found))
}
