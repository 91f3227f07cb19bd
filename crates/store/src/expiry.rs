//! Retention: expires events older than their collection keeps.
//!
//! Events expire by a cutoff in time. All events that ended before it die together, as one write of the log
//! (`Kind::Expire`). So readers, restarts and snapshots agree on which events are gone. For retention by age the cutoff
//! is now minus the age. For retention by size it is where enough of the oldest events lie before it. Parts without
//! live rows are dropped without being read, once no snapshot needs them. Dead rows of other parts are dropped as
//! deleted ones are.

use crate::error::StoreError;
use crate::options::Settings;
use crate::part::dead::DeadRows;
use crate::part::{CHUNK_ROWS, Context, Part, PartView};
use meridian_index::Tree;
use meridian_model::{Invalid, Projection, Schema, Seq};
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::sync::Arc;

/// Microseconds between two retention checks.
pub(crate) const EXPIRY_EVERY_US: i64 = 10_000_000;

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiryOutcome {
    /// Events that ended before this instant have expired, in microseconds since 1970.
    pub before: i64,
    /// Their number.
    pub expired: u64,
    /// Position of the change in the log.
    pub position: u64,
}

/// Events to expire.
#[derive(Debug)]
pub(crate) struct Expiry {
    pub(crate) before: i64,
    /// Rows found before the commit, by part number. Later parts are searched during the commit.
    pub(crate) found: HashMap<u64, RoaringBitmap>,
}

/// Checks that the settings suit a collection of this schema.
pub(crate) fn check(settings: &Settings, schema: &Schema) -> Result<(), Invalid> {
    let named = [("retention", settings.retention.is_some()), ("retention_bytes", settings.retention_bytes.is_some())];
    match named.iter().find(|(_, given)| *given) {
        Some((name, _)) if !schema.has_time() => Err(Invalid::field(
            *name,
            "the collection's events have no time, so none of them is older than another: expected a schema with a primary instant or interval",
        )),
        _ => Ok(()),
    }
}

/// Returns the cutoff before which events expire, if any can.
pub(crate) fn line(settings: &Settings, views: &[PartView], now: i64) -> Option<i64> {
    let by_age = settings.retention.map(|age| now.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)));
    let by_size = settings.retention_bytes_each().and_then(|bytes| line_by_size(views, bytes));
    by_age.max(by_size)
}

/// Returns the live rows of a part that ended before the cutoff.
pub(crate) fn expired_rows(
    context: &Arc<Context>,
    part: &Arc<Part>,
    dead: &DeadRows,
    before: i64,
) -> Result<RoaringBitmap, StoreError> {
    let (mut rows, mut unsure) = (RoaringBitmap::new(), RoaringBitmap::new());
    // Expired parts wait for snapshots to end before they are removed; until then each pass skips them here.
    if dead.all_dead(part.rows, Seq(u64::MAX)) {
        return Ok(rows);
    }
    for tree in &part.forest.trees {
        let mut open: Vec<_> = tree.root().into_iter().collect();
        while let Some(node) = open.pop() {
            let bounds = tree.bounds(node);
            if bounds.end < before {
                rows.insert_range(tree.rows(node));
            // Only leaves that straddle the cutoff need their rows read; bounds decide whole nodes.
            } else if bounds.start < before && tree.is_leaf(node) {
                unsure.insert_range(tree.rows(node));
            } else if bounds.start < before {
                open.extend(tree.children(node));
            }
        }
    }
    let unsure = dead.alive_of(unsure);
    let view = PartView {
        part: part.clone(),
        dead: Arc::new(DeadRows::default()),
        seq: Seq(u64::MAX),
        context: context.clone(),
    };
    let mut times = Projection::none(&context.layout);
    times.add_time(&context.layout, &context.schema);
    let mut from = unsure.min();
    while let Some(first) = from {
        // To the end of the chunk: it is decoded as a whole anyway.
        let end = (first / CHUNK_ROWS + 1).saturating_mul(CHUNK_ROWS).min(part.rows);
        let batch = view.read_for_merge(first..end, &times)?;
        let ended = |row: &u32| batch.interval((row - first) as usize).1 < before;
        rows.extend(unsure.range(first..end).filter(ended));
        from = unsure.range(end..).next();
    }
    Ok(dead.alive_of(rows))
}

/// Live bytes below a node of some thousand rows, and their period.
struct Stretch {
    start: i64,
    end: i64,
    bytes: f64,
}

/// Returns the earliest cutoff after which the events fit into `limit` bytes; `None` if all of them do.
///
/// A part's bytes are spread evenly over its live rows, and those of a small node evenly over its time.
fn line_by_size(views: &[PartView], limit: u64) -> Option<i64> {
    let mut stretches = Vec::new();
    for view in views {
        let per_row = view.part.bytes() as f64 / f64::from(view.rows().max(1));
        for tree in view.trees() {
            stretches.extend(stretches_of(tree, view, per_row));
        }
    }
    let total: f64 = stretches.iter().map(|s| s.bytes).sum();
    let excess = total - limit as f64;
    if excess <= 0.0 {
        return None;
    }
    let before = |line: i64| -> f64 {
        let share = |s: &Stretch| match () {
            () if s.end < line => 1.0,
            () if s.start >= line => 0.0,
            () => (line as f64 - s.start as f64) / (s.end as f64 - s.start as f64 + 1.0),
        };
        stretches.iter().map(|s| s.bytes * share(s)).sum()
    };
    // Events without an end never expire, however many there are.
    let (mut low, mut high) = (
        stretches.iter().map(|s| s.start).min()?,
        stretches.iter().map(|s| s.end).filter(|end| *end < i64::MAX).max()?.saturating_add(1),
    );
    // Bisection over instants needs no sorted copy of the stretches and ends after 64 steps.
    while low < high {
        let middle = low + ((i128::from(high) - i128::from(low)) / 2) as i64;
        if before(middle) < excess {
            low = middle.saturating_add(1);
        } else {
            high = middle;
        }
    }
    Some(high)
}

fn stretches_of(tree: &Tree, view: &PartView, per_row: f64) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut open: Vec<_> = tree.root().into_iter().collect();
    while let Some(node) = open.pop() {
        let rows = tree.rows(node);
        // Nodes of about a chunk are fine enough: below them the estimate would cost more than the cut is worth.
        if rows.len() > CHUNK_ROWS as usize && !tree.is_leaf(node) {
            open.extend(tree.children(node));
            continue;
        }
        let alive = rows.len() - view.dead_rows(rows).count();
        let bounds = tree.bounds(node);
        if alive > 0 {
            found.push(Stretch { start: bounds.start, end: bounds.end, bytes: alive as f64 * per_row });
        }
    }
    found
}
