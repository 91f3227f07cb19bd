//! Results collected before the first event is returned: by id, or few events near a place.

use crate::candidates::{Candidates, Run, search_step};
use crate::error::QueryError;
use crate::items::NearQuestion;
use crate::matched::Pick;
use crate::memory::Share;
use crate::scan::Scan;
use meridian_index::Key;
use meridian_model::filter::box_around;
use meridian_model::sphere::distance_m;
use meridian_model::{Projection, Seq};

/// Max candidates collected and sorted if all events near a place are requested.
const COLLECT_MAX: u64 = 1 << 17;
/// Max candidates collected and sorted per requested event; beyond that, the heap is cheaper.
const COLLECT_PER_WANTED: u64 = 32;
/// Number of candidates that is always collected.
const COLLECT_MIN: u64 = 2_048;

/// Events in result order.
pub(crate) struct Listed {
    picks: Vec<Pick>,
    distances: Vec<f64>,
    at: usize,
    /// The memory that they use.
    _share: Share,
}

impl Listed {
    /// Events, with their distances or without any.
    pub(crate) fn new(picks: Vec<Pick>, distances: Vec<f64>, share: Share) -> Listed {
        Listed { picks, distances, at: 0, _share: share }
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
) -> Result<Listed, QueryError> {
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
    Ok(Listed::new(found.into_iter().map(|(_, pick)| pick).collect(), Vec::new(), scan.control.share()))
}

/// Events by id, ordered by distance, and their number over all pages.
pub(crate) fn by_id_near(scan: &mut Scan, ids: &[String], sought: &NearQuestion) -> Result<(Listed, u64), QueryError> {
    let runs = find_ids(scan, ids)?;
    collect(scan, runs, sought)
}

/// All events ordered by distance, and their number over all pages, if collecting and sorting them is cheaper than a
/// heap.
pub(crate) fn near_if_few(scan: &mut Scan, sought: &NearQuestion) -> Result<Option<(Listed, u64)>, QueryError> {
    let most = match sought.limit {
        None => COLLECT_MAX,
        Some(limit) => (limit as u64).saturating_mul(COLLECT_PER_WANTED).clamp(COLLECT_MIN, COLLECT_MAX),
    };
    let before = scan.stats;
    let mut runs = Vec::new();
    let mut count = 0;
    for part in scan.parts() {
        let mut candidates = Candidates::of(scan, part, 0).bridged();
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

fn collect(scan: &mut Scan, runs: Vec<(u32, Run)>, sought: &NearQuestion) -> Result<(Listed, u64), QueryError> {
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
    Ok((Listed::new(picks, distances, share), total))
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
