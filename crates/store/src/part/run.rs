//! Memory trees: sorted runs of events in memory.

use crate::error::StoreError;
use crate::part::keys::{Filter, KeyRows};
use crate::part::objects::{ObjectEntry, ObjectRows};
use crate::part::rows::{CHUNK_ROWS, KeyRule};
use crate::waits;
use arrow_array::UInt32Array;
use meridian_index::{CountPyramid, Forest, ForestBuilder, Key, PyramidBuilder};
use meridian_model::{Batch, FieldColumn, GeometryType, IdRole, Projection, Schema, TimeRole};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Min rows of a run with a filter in front of its sorted keys.
const FILTER_ROWS_MIN: usize = 1024;
/// Min rows of a run with an order of time; smaller ones are read as fast as they are sorted.
const TIME_ROWS_MIN: usize = 1 << 14;
/// Min rows of a run with counts per map cell.
const PYRAMID_ROWS_MIN: usize = 1 << 16;

/// The content of a memory tree.
#[derive(Debug)]
pub(crate) struct Run {
    /// All columns, in order of (key, seq).
    pub(crate) batch: Batch,
    pub(crate) keys: Vec<Key>,
    pub(crate) seqs: Vec<u64>,
    /// Bytes of the columns, keys and numbers, and of the indexes built later.
    pub(crate) bytes: u64,
    /// Built by the first query, as are the next three.
    index: OnceLock<RunIndex>,
    by_time: OnceLock<Option<RunTime>>,
    pyramid: OnceLock<Arc<CountPyramid>>,
    objects: OnceLock<ObjectRows>,
}

/// The order of time of a memory tree.
#[derive(Debug)]
pub(crate) struct RunTime {
    /// The tree over time; its rows are places in `rows`.
    pub(crate) forest: Forest,
    /// The rows of the run, by time.
    pub(crate) rows: UInt32Array,
}

#[derive(Debug)]
pub(crate) struct RunIndex {
    filter: Option<Filter>,
    rows: KeyRows,
}

impl RunIndex {
    /// Returns the filter of its keys, if it is large.
    pub(crate) fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    pub(crate) fn rows_of(&self, key: u64) -> Vec<u32> {
        if self.filter.as_ref().is_some_and(|f| !f.may_hold(key)) {
            return Vec::new();
        }
        self.rows.rows_of(key).to_vec()
    }
}

impl Run {
    /// Creates a run from rows that are already in order of (key, seq).
    pub(crate) fn new(batch: Batch, keys: Vec<Key>, seqs: Vec<u64>) -> Run {
        // The index takes some 14 bytes per row, including the filter.
        let bytes = batch.bytes() as u64 + batch.rows() as u64 * (16 + 8 + 14 + made_later(batch.schema()));
        Run {
            batch,
            keys,
            seqs,
            bytes,
            index: OnceLock::new(),
            by_time: OnceLock::new(),
            pyramid: OnceLock::new(),
            objects: OnceLock::new(),
        }
    }

    /// Fails if a reader must not wait for the index of ids.
    ///
    /// # Errors
    /// [`StoreError::MustNotWait`].
    pub(crate) fn check_index(&self) -> Result<(), StoreError> {
        if self.index.get().is_some() { Ok(()) } else { waits::check() }
    }

    /// Returns the keys of the rows, for finding events by id.
    pub(crate) fn index(&self, rule: KeyRule) -> &RunIndex {
        self.index.get_or_init(|| {
            let rows = match (rule.role, self.batch.ids()) {
                (IdRole::Given, Some(ids)) => {
                    KeyRows::of(ids.iter().map(|id| crate::codec::hash(rule.seed, id.unwrap_or("").as_bytes())))
                }
                _ => KeyRows::of(self.seqs.iter().copied()),
            };
            // Generated ids need no filter: their range of numbers decides.
            let filter = (rule.role == IdRole::Given && rows.keys.len() >= FILTER_ROWS_MIN)
                .then(|| Filter::of(rows.keys.iter().copied()));
            RunIndex { filter, rows }
        })
    }

    /// Fails if a reader must not wait for the index of objects.
    ///
    /// # Errors
    /// [`StoreError::MustNotWait`].
    pub(crate) fn check_objects(&self) -> Result<(), StoreError> {
        if self.objects.get().is_some() { Ok(()) } else { waits::check() }
    }

    /// Returns the objects of the rows.
    pub(crate) fn objects(&self, rule: KeyRule) -> &ObjectRows {
        self.objects.get_or_init(|| ObjectRows::of(rule.seed, &self.batch, &self.seqs, 0))
    }

    /// Returns the rows in order of time. `None` unless there are many rows, with instants, in another order.
    pub(crate) fn by_time(&self) -> Option<&RunTime> {
        let schema = self.batch.schema();
        let TimeRole::Instant(field) = schema.time else { return None };
        if schema.geometry.is_none() || self.batch.rows() < TIME_ROWS_MIN {
            return None;
        }
        if self.by_time.get().is_none() && waits::refused() {
            return None;
        }
        self.by_time.get_or_init(|| self.sort_by_time(field)).as_ref()
    }

    fn sort_by_time(&self, field: usize) -> Option<RunTime> {
        let Some(FieldColumn::Time(times)) = self.batch.field(field) else { return None };
        let mut order: Vec<(i64, u32)> = times.values().iter().copied().zip(0..).collect();
        // The row breaks ties, so the order is the same in every build.
        order.sort_unstable();
        let rows = UInt32Array::from_iter_values(order.into_iter().map(|(_, row)| row));
        let mut builder = ForestBuilder::over_time(self.batch.schema());
        for chunk in rows.values().chunks(CHUNK_ROWS as usize) {
            builder.push_ordered(&self.numbers().take(chunk)).ok()?;
        }
        Some(RunTime { forest: builder.finish(), rows })
    }

    /// Returns the time and the numeric fields.
    fn numbers(&self) -> Batch {
        let (schema, layout) = (self.batch.schema(), self.batch.layout());
        let mut columns = Projection::none(layout);
        columns.add_time(layout, schema);
        schema.numeric_fields().into_iter().for_each(|field| columns.add(layout.field(field)));
        self.batch.project(&columns)
    }

    /// Returns the wanted ones of these columns at some places of the order of time.
    pub(crate) fn time_columns(&self, places: Range<u32>, wanted: &Projection) -> Option<Batch> {
        let rows = self.time_rows(places)?;
        Some(self.numbers().project(wanted).take(rows.values()))
    }

    /// Returns the rows at some places of the order of time.
    pub(crate) fn time_rows(&self, places: Range<u32>) -> Option<UInt32Array> {
        let rows = &self.by_time()?.rows;
        let end = (places.end as usize).min(rows.len());
        let start = (places.start as usize).min(end);
        Some(rows.slice(start, end - start))
    }

    /// Returns counts per map cell, if the rows are points and many.
    pub(crate) fn pyramid(&self) -> Option<Arc<CountPyramid>> {
        let schema = self.batch.schema();
        if schema.geometry != Some(GeometryType::Point) || self.batch.rows() < PYRAMID_ROWS_MIN {
            return None;
        }
        if self.pyramid.get().is_none() && waits::refused() {
            return None;
        }
        let pyramid = self.pyramid.get_or_init(|| {
            let mut builder = PyramidBuilder::new(schema);
            builder.push(&self.batch);
            Arc::new(builder.finish())
        });
        Some(pyramid.clone())
    }
}

/// Returns the max bytes per row of the indexes built later. These are the order of time (a number and its share of a
/// node), the objects and the counts per map cell.
fn made_later(schema: &Schema) -> u64 {
    let time = if matches!(schema.time, TimeRole::Instant(_)) { 6 } else { 0 };
    let objects = if schema.object.is_some() { size_of::<ObjectEntry>() as u64 } else { 0 };
    let cells = if schema.geometry == Some(GeometryType::Point) { 5 } else { 0 };
    time + objects + cells
}
