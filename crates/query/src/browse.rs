//! Rows of a snapshot without a query: a page of all of them, or a random one.

use crate::control::Control;
use crate::error::QueryError;
use meridian_store::seams::Random;
use meridian_store::{CHUNK_ROWS, Snapshot};

/// Max draws before the first visible row is used instead.
const DRAWS_MAX: usize = 64;

/// A page of all events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Total number of events.
    pub total: u64,
    /// Part and row of each event of the page.
    pub rows: Vec<(usize, u32)>,
}

/// Up to `limit` events from the `skip`-th on, in order of part and row; whole parts are skipped by their counts. The
/// snapshot must be open: see [`Snapshot::open_all`].
pub fn page(snapshot: &Snapshot, skip: u64, limit: usize, control: &Control) -> Result<Page, QueryError> {
    let mut order: Vec<usize> = (0..snapshot.parts.len()).collect();
    order.sort_unstable_by_key(|&part| snapshot.parts[part].number());
    let mut page = Page { total: 0, rows: Vec::new() };
    for part in order {
        let view = &snapshot.parts[part];
        let mut start = 0;
        while start < view.rows() {
            control.check()?;
            let end = view.rows().min(start + CHUNK_ROWS);
            let visible = if view.all_visible(start..end) { None } else { Some(view.visible(start..end)?) };
            let count = visible.as_ref().map_or(u64::from(end - start), |v| v.count_set_bits() as u64);
            if page.total + count > skip && page.rows.len() < limit {
                let seen = (start..end).filter(|row| visible.as_ref().is_none_or(|v| v.value((row - start) as usize)));
                let before = skip.saturating_sub(page.total) as usize;
                let room = limit - page.rows.len();
                page.rows.extend(seen.skip(before).take(room).map(|row| (part, row)));
            }
            page.total += count;
            start = end;
        }
    }
    Ok(page)
}

/// Part and row of a random event; `None` if there is none. The snapshot must be open: see [`Snapshot::open_all`].
pub fn sample(snapshot: &Snapshot, random: &dyn Random, control: &Control) -> Result<Option<(usize, u32)>, QueryError> {
    for _ in 0..DRAWS_MAX {
        let Some(mut at) = random.next_u64().checked_rem(snapshot.rows()) else { break };
        for (part, view) in snapshot.parts.iter().enumerate() {
            match u32::try_from(at).ok().filter(|row| *row < view.rows()) {
                Some(row) if view.visible(row..row + 1)?.value(0) => return Ok(Some((part, row))),
                // The row is dead: draw again.
                Some(_) => break,
                None => at -= u64::from(view.rows()),
            }
        }
    }
    Ok(page(snapshot, 0, 1, control)?.rows.first().copied())
}
