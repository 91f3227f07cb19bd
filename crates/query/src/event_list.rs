//! Results collected before the first event is returned: by id, or few events near a place.

use crate::candidates::{Run, search_step};
use crate::distance::{NearQuestion, geometry_columns, measure};
use crate::error::QueryError;
use crate::matched_rows::Pick;
use crate::memory::Share;
use crate::scan::Scan;
use meridian_index::Key;
use meridian_model::Seq;

/// Max candidates collected and sorted if all events near a place are requested.
const COLLECT_MAX: u64 = 1 << 17;
/// Max candidates collected and sorted per requested event; beyond that, the heap is cheaper.
const COLLECT_PER_WANTED: u64 = 32;
/// Number of candidates that is always collected.
const COLLECT_MIN: u64 = 2_048;

/// Events in result order.
pub(crate) struct EventList {
    picks: Vec<Pick>,
    distances: Vec<f64>,
    at: usize,
    /// The memory that they use.
    _share: Share,
}

impl EventList {
    /// Events, with their distances or without any.
    pub(crate) fn new(picks: Vec<Pick>, distances: Vec<f64>, share: Share) -> EventList {
        EventList { picks, distances, at: 0, _share: share }
    }

    /// Bytes of the collected events.
    pub(crate) fn held(&self) -> usize {
        self.picks.capacity() * size_of::<Pick>() + self.distances.capacity() * size_of::<f64>()
    }

    /// The next events, at most `want`.
    pub(crate) fn fill(&mut self, want: usize) -> (Vec<Pick>, Vec<f64>) {
        let given = self.at..self.picks.len().min(self.at + want);
        self.at = given.end;
        let distances = self.distances.get(given.clone()).unwrap_or_default().to_vec();
        (self.picks[given].to_vec(), distances)
    }
}

/// The events with these ids that match the whole predicate.
pub(crate) fn find_ids(scan: &mut Scan, ids: &[String]) -> Result<Vec<(u32, Run)>, QueryError> {
    let mut found = Vec::with_capacity(ids.len());
    scan.snapshot.load_keys(ids)?;
    for id in ids {
        scan.control.check()?;
        // The other conditions are tested afterwards: an id only selects candidates.
        if let Some((part, row)) = scan.find(id)? {
            found.push((part, Run { rows: row..row + 1, whole: false }));
        }
    }
    // Two spellings of a generated id are one event.
    found.sort_unstable_by_key(|(part, run)| (*part, run.rows.start));
    found.dedup();
    let wanted: Vec<_> = found.iter().map(|(part, run)| (*part as usize, run.rows.clone())).collect();
    scan.snapshot.load(&wanted, &scan.expected_columns());
    Ok(found)
}

/// Events by id, in natural order.
pub(crate) fn by_id_natural(
    scan: &mut Scan,
    ids: &[String],
    after: Option<(Key, Seq)>,
    until: Option<(Key, Seq)>,
) -> Result<EventList, QueryError> {
    let mut found = Vec::new();
    for (part, run) in find_ids(scan, ids)? {
        if scan.test(part, &run)?.is_empty() {
            continue;
        }
        let place = scan.place_of(part, run.rows.start)?;
        if after.is_none_or(|after| place > after) && until.is_none_or(|until| place <= until) {
            found.push((place, Pick { part, row: run.rows.start, seq: place.1 }));
        }
    }
    found.sort_unstable_by_key(|(place, _)| *place);
    Ok(EventList::new(found.into_iter().map(|(_, pick)| pick).collect(), Vec::new(), scan.control.share()))
}

/// Events by id, ordered by distance, and their number over all pages.
pub(crate) fn by_id_near(
    scan: &mut Scan,
    ids: &[String],
    sought: &NearQuestion,
) -> Result<(EventList, u64), QueryError> {
    let runs = find_ids(scan, ids)?;
    collect(scan, runs, sought)
}

/// All events ordered by distance, and their number over all pages, if collecting and sorting them is cheaper than a
/// heap.
pub(crate) fn near_if_few(scan: &mut Scan, sought: &NearQuestion) -> Result<Option<(EventList, u64)>, QueryError> {
    let most = match sought.limit {
        None => COLLECT_MAX,
        Some(limit) => (limit as u64).saturating_mul(COLLECT_PER_WANTED).clamp(COLLECT_MIN, COLLECT_MAX),
    };
    let before = scan.stats;
    let mut runs = Vec::new();
    let mut count = 0;
    for part in scan.parts() {
        let mut candidates = scan.candidates(part, 0).bridged();
        let from = runs.len();
        let predicate = scan.predicate.clone();
        while let Some(run) = candidates.next(&mut scan.stats, &mut |node, whole| search_step(&predicate, node, whole))
        {
            count += run.rows.len() as u64;
            runs.push((part, run));
            if count > most {
                // The nodes will be visited again, best first.
                scan.stats = before;
                return Ok(None);
            }
        }
        scan.stats.parts_pruned += u64::from(runs.len() == from);
    }
    collect(scan, runs, sought).map(Some)
}

fn collect(scan: &mut Scan, runs: Vec<(u32, Run)>, sought: &NearQuestion) -> Result<(EventList, u64), QueryError> {
    let geometry = geometry_columns(scan);
    let columns = scan.columns_with(&geometry);
    let mut found: Vec<(f64, Pick)> = Vec::new();
    let mut total = 0;
    let mut share = scan.control.share();
    for (part, run) in runs {
        // Twice the capacity: the result lists are created while the candidates still exist.
        share.reach(found.capacity() * 2 * size_of::<(f64, Pick)>())?;
        measure(scan, part, &run, &columns, sought, f64::INFINITY, |distance_m, pick| {
            total += u64::from(distance_m.is_finite());
            if sought.wants(distance_m, pick.seq) {
                found.push((distance_m, pick));
            }
        })?;
    }
    let order = |a: &(f64, Pick), b: &(f64, Pick)| a.0.total_cmp(&b.0).then(a.1.seq.cmp(&b.1.seq));
    if let Some(limit) = sought.limit
        && limit + 1 < found.len()
    {
        // One more than requested: its presence shows that there is a next page.
        found.select_nth_unstable_by(limit, order);
        found.truncate(limit + 1);
    }
    found.sort_unstable_by(order);
    let (distances, picks) = found.into_iter().unzip();
    Ok((EventList::new(picks, distances, share), total))
}
