//! Collects rows that partitions pass to a sink one by one, and passes them on.

use super::shape;
use crate::collection::Part;
use crate::read::{Near, RowSink};
use meridian_model::{Batch, Invalid, Layout, Projection, Schema, Seq};
use meridian_query::{Control, QueryError};
use meridian_store::StoreError;
use meridian_store::seams::Random;
use std::sync::Arc;

/// Max nearest events gathered from a partition: a page may begin at any row, and each takes about a kilobyte.
const NEAREST_MAX: usize = 1 << 14;

/// One event: a batch of it alone, its number if ids are made from it, and its distance in an order by distance.
type Row = (Batch, Option<Seq>, Option<f64>);

/// Rows of one partition with all columns, since the caller's sink names the columns it wants only once all rows are
/// known.
#[derive(Default)]
struct GatheredRows {
    total: u64,
    rows: Vec<Row>,
}

impl RowSink for GatheredRows {
    fn begin(&mut self, _: &Schema, layout: &Layout, total: u64, _: usize) -> Projection {
        self.total = total;
        Projection::all(layout)
    }

    fn row(&mut self, batch: &Batch, row: usize, seq: Option<Seq>, distance_m: Option<f64>) {
        // Copied: a slice would keep the whole block of each row alive.
        self.rows.push((batch.take(&[row as u32]), seq, distance_m));
    }
}

/// Passes on rows of several partitions, with the schema that the first had before they were queried.
fn pass(
    rows: Vec<Row>,
    total: u64,
    (schema, layout): &(Arc<Schema>, Arc<Layout>),
    sink: &mut dyn RowSink,
) -> Result<(), StoreError> {
    sink.begin(schema, layout, total, rows.len());
    for (batch, seq, distance_m) in rows {
        sink.row(&batch.within(schema, layout)?, 0, seq, distance_m);
    }
    Ok(())
}

/// Passes the events in a circle, nearest first; at equal distances those of the lower partition first.
///
/// # Errors
/// [`StoreError::Invalid`] for a page beyond the first [`NEAREST_MAX`] events.
pub(super) fn near(
    parts: &[Arc<dyn Part>],
    question: &Near,
    rows_max: Option<usize>,
    sink: &mut dyn RowSink,
) -> Result<bool, StoreError> {
    let Some(first) = parts.first() else { return Ok(false) };
    let shape = shape(first.schema());
    let (mut total, mut rows) = (0u64, Vec::new());
    // Any of a partition's nearest may be among the nearest of all.
    let wanted = question.skip.saturating_add(question.limit);
    let each = Near { skip: 0, limit: wanted.min(NEAREST_MAX), ..*question };
    for part in parts {
        let mut gathered = GatheredRows::default();
        if !part.near(&each, rows_max.map(|max| max / parts.len()), &mut gathered)? {
            return Ok(false);
        }
        total = total.saturating_add(gathered.total);
        rows.append(&mut gathered.rows);
        // A stable sort keeps equal distances in the order of their partitions.
        rows.sort_by(|a, b| a.2.unwrap_or(f64::INFINITY).total_cmp(&b.2.unwrap_or(f64::INFINITY)));
        rows.truncate(each.limit);
    }
    if wanted > NEAREST_MAX && total > NEAREST_MAX as u64 {
        let detail = format!(
            "a page behind the first {NEAREST_MAX} events, of a collection of {} partitions: name a smaller radius",
            parts.len()
        );
        return Err(Invalid::new(detail).into());
    }
    rows.drain(..question.skip.min(rows.len()));
    pass(rows, total, &shape, sink)?;
    Ok(true)
}

/// Passes a page of all events, one partition after another.
pub(super) fn page(
    parts: &[Arc<dyn Part>],
    (skip, limit): (u64, usize),
    control: &Control,
    sink: &mut dyn RowSink,
) -> Result<(), QueryError> {
    let first = parts.first().ok_or(StoreError::Closed)?;
    let shape = shape(first.schema());
    let (mut total, mut rows) = (0u64, Vec::new());
    for part in parts {
        let mut gathered = GatheredRows::default();
        part.page(skip.saturating_sub(total), limit.saturating_sub(rows.len()), control, &mut gathered)?;
        total = total.saturating_add(gathered.total);
        rows.append(&mut gathered.rows);
    }
    Ok(pass(rows, total, &shape, sink)?)
}

/// Passes a random event, from a partition drawn by its number of events.
pub(super) fn sample(
    parts: &[Arc<dyn Part>],
    random: &dyn Random,
    control: &Control,
    sink: &mut dyn RowSink,
) -> Result<bool, QueryError> {
    let events: Vec<u64> = parts.iter().map(|part| part.stats().events).collect();
    let mut at = random.next_u64().checked_rem(events.iter().sum()).unwrap_or(0);
    let mut drawn = 0;
    while let Some(count) = events.get(drawn).filter(|count| at >= **count) {
        at -= count;
        drawn += 1;
    }
    // The others follow, since it may have become empty meanwhile.
    for part in parts.iter().cycle().skip(drawn).take(parts.len()) {
        let mut gathered = GatheredRows::default();
        if part.sample(random, control, &mut gathered)? {
            let (schema, total) = (shape(part.schema()), gathered.total);
            pass(gathered.rows, total, &schema, sink)?;
            return Ok(true);
        }
    }
    Ok(false)
}
