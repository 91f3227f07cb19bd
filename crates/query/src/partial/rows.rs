//! Events of one partition in the order of a query, each with its cursor.

use super::envelope::{Envelope, Kind, Opened};
use crate::control::{Control, Stats};
use crate::cursor::{Cursor, SortValue};
use crate::error::QueryError;
use crate::items::{BATCH_BYTES, EventFinder, FEW_ROWS, Items, Order, Page, PendingRows};
use crate::natural::ENOUGH;
use crate::sort::{SortKey, SortTarget};
use crate::wire::WireError;
use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, UInt64Array};
use meridian_index::Key;
use meridian_model::{Batch, FieldType, IdRole, Layout, Schema, Seq};
use meridian_store::Snapshot;
use std::sync::Arc;

const KIND: Kind = Kind { name: "rows", version: 1 };
const END: Kind = Kind { name: "rows end", version: 1 };

// Physical columns of a collection begin with one `@`.
const SEQ: &str = "@@seq";
const KEY: &str = "@@key";
const DISTANCE: &str = "@@distance";

/// Events of a later batch.
const BATCH_ROWS: usize = 2048;

/// Some events of one partition, in the order of the query.
#[derive(Debug, Clone)]
pub struct PartialRows {
    /// The events, with the requested columns.
    pub batch: Batch,
    /// A cursor for each event. The merge adds the number of preceding events.
    pub cursors: Vec<Cursor>,
}

/// The summary of a partition after its last row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowsSummary {
    /// Total number of matches over all pages, if it came for free.
    pub matched: Option<u64>,
    /// The cost of the query.
    pub stats: Stats,
}

/// The events of one snapshot for a merge: an iterator that blocks.
///
/// It returns one event more than the query's limit, if any: the merge needs it to know whether a next page begins.
pub struct PartRows {
    found: EventFinder,
    /// Events that may still be found.
    left: usize,
    ahead: PendingRows,
    is_first: bool,
    /// Max number of events of the next batch.
    at_once: usize,
    /// The same for large events.
    few: usize,
}

impl PartRows {
    /// Plans a query, like [`crate::items()`].
    pub fn of(snapshot: &Snapshot, question: &Items, control: &Control) -> Result<PartRows, QueryError> {
        let found = EventFinder::new(snapshot, question, control)?;
        let left = Page::of(question).room_and_next();
        let ahead = PendingRows::default();
        Ok(PartRows { found, left, ahead, is_first: true, at_once: BATCH_ROWS, few: FEW_ROWS })
    }

    /// The summary beside the rows; complete when they have ended.
    pub fn summary(&self) -> RowsSummary {
        RowsSummary { matched: self.found.number_matched(), stats: self.found.stats() }
    }

    /// Limits later batches to `events` events, for callers whose events are large.
    pub fn at_most(&mut self, events: usize) {
        self.at_once = events.clamp(1, BATCH_ROWS);
    }

    /// Drops everything that can be read again, before a wait of unknown length. Returns the bytes still held.
    pub fn rest(&mut self) -> usize {
        self.found.rest() + self.ahead.held()
    }

    fn batch(&mut self) -> Result<Option<PartialRows>, QueryError> {
        if self.ahead.picks.is_empty() {
            let want = self.left.min(if self.is_first { ENOUGH.min(self.at_once) } else { self.at_once });
            if want == 0 {
                return Ok(None);
            }
            let (picks, distances) = self.found.fill(want)?;
            self.is_first = false;
            // A short batch is the end, as with the finished rows.
            self.left = if picks.len() < want.min(ENOUGH) { 0 } else { self.left - picks.len() };
            self.ahead = PendingRows { picks, distances };
        }
        // The merge holds a batch of each partition.
        let large = self.found.has_large(&self.ahead.picks);
        let PendingRows { picks, distances } = self.ahead.take(if large { self.few } else { usize::MAX });
        if picks.is_empty() {
            return Ok(None);
        }
        let cursors = self.found.cursors_of(&picks, &distances)?;
        let batch = self.found.read(&picks)?;
        if large {
            // Grow slowly and shrink at once: the next events may be larger.
            let fit = BATCH_BYTES * picks.len() / batch.bytes().max(1);
            self.few = fit.clamp(1, 4 * picks.len()).min(BATCH_ROWS);
        }
        Ok(Some(PartialRows { batch, cursors }))
    }
}

impl Iterator for PartRows {
    type Item = Result<PartialRows, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let started = self.found.wake();
        let result = self.batch().transpose();
        self.found.worked_since(started);
        // After an error no row may follow: the merge would take the rest for complete.
        if !matches!(result, Some(Ok(_))) {
            (self.left, self.ahead) = (0, PendingRows::default());
        }
        result
    }
}

impl PartialRows {
    /// Encodes as an Arrow record batch: the columns of the events by their physical names, and those of their
    /// cursors.
    pub fn to_arrow(&self, order: &Order) -> Result<RecordBatch, WireError> {
        let mut envelope = KIND.seal(&Stats::default());
        self.write(&mut envelope, order)?;
        envelope.finish(self.cursors.len())
    }

    /// Decodes the output of [`PartialRows::to_arrow`] for events of a schema.
    pub fn from_arrow(batch: &RecordBatch, order: &Order, schema: &Arc<Schema>) -> Result<PartialRows, WireError> {
        PartialRows::read(&KIND.open(batch)?, order, schema)
    }

    pub(super) fn write(&self, envelope: &mut Envelope, order: &Order) -> Result<(), WireError> {
        let seqs: UInt64Array = self.cursors.iter().map(|cursor| cursor.seq().0).collect();
        envelope.column(SEQ, Arc::new(seqs));
        match order {
            Order::Natural => {
                let mut keys = FixedSizeBinaryBuilder::with_capacity(self.cursors.len(), 16);
                for cursor in &self.cursors {
                    let Cursor::Natural { key, .. } = cursor else { return Err(other_order()) };
                    // Big-endian, so that a reader in any language can compare keys as bytes.
                    keys.append_value(key.0.to_be_bytes()).map_err(|e| KIND.malformed(e.to_string()))?;
                }
                envelope.column(KEY, Arc::new(keys.finish()));
            }
            Order::Near { .. } => {
                let distance = |cursor: &Cursor| match cursor {
                    Cursor::Near { distance_m, .. } => Ok(*distance_m),
                    _ => Err(other_order()),
                };
                let distances = self.cursors.iter().map(distance).collect::<Result<Vec<f64>, _>>()?;
                envelope.column(DISTANCE, Arc::new(Float64Array::from(distances)));
            }
            Order::Fields(keys) => {
                for (i, key) in keys.iter().enumerate() {
                    let values = self.cursors.iter().map(|cursor| sort_value(cursor, i));
                    let values = values.collect::<Result<Vec<&SortValue>, _>>()?;
                    envelope.column(sort_name(i), sort_column(key, self.batch.schema(), &values));
                }
            }
        }
        let columns = self.batch.columns().iter().zip(&self.batch.layout().columns);
        for (column, field) in columns.filter_map(|(column, field)| Some((column.as_ref()?, field))) {
            envelope.column(field.name(), column.clone());
        }
        Ok(())
    }

    pub(super) fn read(opened: &Opened<'_>, order: &Order, schema: &Arc<Schema>) -> Result<PartialRows, WireError> {
        let cursors = read_cursors(opened, order, schema)?;
        let layout = Arc::new(Layout::of(schema));
        let columns = layout.columns.iter().map(|field| opened.any(field.name()).ok().cloned()).collect();
        let batch =
            Batch::new(schema.clone(), layout, opened.rows(), columns).map_err(|e| opened.malformed(e.detail))?;
        // Readers of a batch rely on its writer's invariants; over the wire these have to be checked.
        batch.check_nulls().map_err(|e| opened.malformed(e.to_string()))?;
        Ok(PartialRows { batch, cursors })
    }
}

impl RowsSummary {
    /// Encodes as an Arrow record batch without rows: the summary after the last batch.
    pub fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let mut envelope = END.seal(&self.stats);
        if let Some(matched) = self.matched {
            envelope.says("meridian.matched", matched);
        }
        envelope.finish(0)
    }

    /// Decodes the output of [`RowsSummary::to_arrow`].
    pub fn from_arrow(batch: &RecordBatch) -> Result<RowsSummary, WireError> {
        let opened = END.open(batch)?;
        Ok(RowsSummary { matched: opened.may_say("meridian.matched")?, stats: opened.stats()? })
    }
}

fn other_order() -> WireError {
    KIND.malformed("the cursors are of another order")
}

fn sort_name(key: usize) -> String {
    format!("@@sort{key}")
}

fn sort_value(cursor: &Cursor, key: usize) -> Result<&SortValue, WireError> {
    match cursor {
        Cursor::Fields { values, .. } => values.get(key).ok_or_else(other_order),
        _ => Err(other_order()),
    }
}

/// Encoding of the values of a sort key.
enum SortType {
    Int,
    Float,
    Bool,
    /// Bytes: text may be cut within a character.
    Text,
}

fn sort_type(key: &SortKey, schema: &Schema) -> SortType {
    match key.target {
        SortTarget::Id if schema.id == IdRole::Made => SortType::Int,
        SortTarget::Id => SortType::Text,
        SortTarget::Field(field) => match schema.fields.get(field).map(|f| f.kind) {
            Some(FieldType::Int | FieldType::Time | FieldType::Date) => SortType::Int,
            Some(FieldType::Float) => SortType::Float,
            Some(FieldType::Bool) => SortType::Bool,
            _ => SortType::Text,
        },
    }
}

fn sort_column(key: &SortKey, schema: &Schema, values: &[&SortValue]) -> ArrayRef {
    let values = values.iter();
    match sort_type(key, schema) {
        SortType::Int => {
            Arc::new(values.map(|v| if let SortValue::Int(n) = v { Some(*n) } else { None }).collect::<Int64Array>())
        }
        SortType::Float => Arc::new(
            values.map(|v| if let SortValue::Float(x) = v { Some(*x) } else { None }).collect::<Float64Array>(),
        ),
        SortType::Bool => {
            Arc::new(values.map(|v| if let SortValue::Bool(b) = v { Some(*b) } else { None }).collect::<BooleanArray>())
        }
        SortType::Text => {
            let mut texts = BinaryBuilder::new();
            values.for_each(|v| texts.append_option(if let SortValue::Text(text) = v { Some(text) } else { None }));
            Arc::new(texts.finish())
        }
    }
}

fn read_cursors(opened: &Opened<'_>, order: &Order, schema: &Schema) -> Result<Vec<Cursor>, WireError> {
    let seqs = opened.numbers::<UInt64Type>(SEQ)?;
    let seqs = seqs.values().iter().map(|&seq| Seq(seq));
    Ok(match order {
        Order::Natural => {
            let keys = opened.sixteens(KEY)?;
            let key = |row: usize| keys.value(row).try_into().map(|bytes| Key(u128::from_be_bytes(bytes)));
            let keys = (0..opened.rows()).map(|row| key(row).unwrap_or_default());
            keys.zip(seqs).map(|(key, seq)| Cursor::Natural { key, seq }).collect()
        }
        Order::Near { .. } => {
            let distances = opened.numbers::<Float64Type>(DISTANCE)?.values();
            // A NaN has no place in an order: it would break the merge's heap.
            if distances.iter().any(|d| d.is_nan()) {
                return Err(opened.malformed("a distance is not a number"));
            }
            distances.iter().zip(seqs).map(|(&distance_m, seq)| Cursor::Near { distance_m, seq, given: 0 }).collect()
        }
        Order::Fields(keys) => {
            let mut rows: Vec<Vec<SortValue>> = vec![Vec::with_capacity(keys.len()); opened.rows()];
            for (i, key) in keys.iter().enumerate() {
                read_sort_column(opened, &sort_name(i), &sort_type(key, schema), &mut rows)?;
            }
            rows.into_iter().zip(seqs).map(|(values, seq)| Cursor::Fields { values, seq }).collect()
        }
    })
}

/// Adds the values of one sort key to those of each row.
fn read_sort_column(
    opened: &Opened<'_>,
    name: &str,
    kind: &SortType,
    rows: &mut [Vec<SortValue>],
) -> Result<(), WireError> {
    let mut push = |nulls: &dyn Array, value: &dyn Fn(usize) -> SortValue| {
        for (row, values) in rows.iter_mut().enumerate() {
            values.push(if nulls.is_valid(row) { value(row) } else { SortValue::Null });
        }
    };
    match kind {
        SortType::Int => {
            let column = opened.nullable::<Int64Type>(name)?;
            push(column, &|row| SortValue::Int(column.value(row)));
        }
        SortType::Float => {
            let column = opened.nullable::<Float64Type>(name)?;
            if column.iter().flatten().any(f64::is_nan) {
                return Err(opened.malformed("a sort value is not a number"));
            }
            push(column, &|row| SortValue::Float(column.value(row)));
        }
        SortType::Bool => {
            let column = opened.column(name, true, |column| column.as_boolean_opt())?;
            push(column, &|row| SortValue::Bool(column.value(row)));
        }
        SortType::Text => {
            let column = opened.column(name, true, |column| column.as_binary_opt::<i32>())?;
            push(column, &|row| SortValue::Text(column.value(row).to_vec()));
        }
    }
    Ok(())
}
