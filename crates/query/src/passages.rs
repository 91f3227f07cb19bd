//! Passages: the objects of all matching events, and when each was first and last seen.
//!
//! Objects come in order of their names (integers in numeric order), a page at a time. A page is computed from all
//! matching events but keeps no more objects than it returns, however many there are.

use crate::by::ByValue;
use crate::candidates::{Run, search_step};
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::event_list::find_ids;
use crate::scan::Scan;
use arrow_array::Array;
use meridian_model::filter::Predicate;
use meridian_model::{FieldColumn, FieldType, Invalid, Projection, Schema};
use meridian_store::Snapshot;
use std::collections::BTreeMap;

/// A query for the objects of events.
#[derive(Debug, Clone)]
pub struct Passages {
    /// The filter of events.
    pub predicate: Predicate,
    /// Only objects after this one, see [`object_of`].
    pub after: Option<ByValue>,
    /// Max objects.
    pub limit: usize,
}

/// One object and its matching events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The object.
    pub object: ByValue,
    /// Number of its matching events.
    pub count: u64,
    /// Start of the first event, in microseconds since 1970; `i64::MIN` if open, `i64::MAX` if no event has a time.
    pub first: i64,
    /// End of the last event; `i64::MAX` if open, `i64::MIN` if no event has a time.
    pub last: i64,
}

/// A page of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassagesResult {
    /// Objects in order.
    pub passages: Vec<Passage>,
    /// Whether further objects follow.
    pub more: bool,
    /// The cost of the query.
    pub stats: Stats,
}

/// The first objects of one partition: one more than requested, each with count, start and end.
///
/// An object among the first of all partitions is among the first of each partition that has it. So the merged
/// objects are complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialPassages {
    pub(crate) found: BTreeMap<ByValue, (u64, i64, i64)>,
    pub(crate) stats: Stats,
}

/// First and last of events without a time, which change no other.
pub(crate) const NO_TIME: (i64, i64) = (i64::MAX, i64::MIN);

/// Parses an object name as a value of the collection's object field; errors name `parameter`.
pub fn object_of(schema: &Schema, text: &str, parameter: &str) -> Result<ByValue, Invalid> {
    let field = &schema.fields[object_field(schema, parameter)?];
    match field.kind {
        FieldType::Int => text
            .parse()
            .map(ByValue::Int)
            .map_err(|_| Invalid::field(parameter, format!("{text:?} is not an integer, which {:?} is", field.name))),
        _ => Ok(ByValue::Text(text.to_owned())),
    }
}

/// The field that names the objects.
pub(crate) fn object_field(schema: &Schema, parameter: &str) -> Result<usize, Invalid> {
    let missing = || Invalid::field(parameter, "this collection names no object field (x-meridian-object)");
    schema.object.filter(|&field| field < schema.fields.len()).ok_or_else(missing)
}

/// Runs a query for objects. Events without an object are omitted.
pub fn passages(snapshot: &Snapshot, question: &Passages, control: &Control) -> Result<PassagesResult, QueryError> {
    Ok(PartialPassages::of(snapshot, question, control)?.finish(question))
}

impl PartialPassages {
    /// The first objects of the events of a snapshot.
    pub fn of(snapshot: &Snapshot, question: &Passages, control: &Control) -> Result<PartialPassages, QueryError> {
        let started = control.elapsed_us();
        control.check()?;
        let field = object_field(&snapshot.schema, "tracks")?;
        if !snapshot.schema.has_time() {
            return Err(Invalid::field("tracks", "this collection has no time").into());
        }
        let mut scan = Scan::new(snapshot, &question.predicate, control)?;
        let mut columns = Projection::none(&scan.layout);
        columns.add(scan.layout.field(field));
        columns.add_time(&scan.layout, scan.schema());
        let mut page = Page { field, columns: scan.columns_with(&columns), question, found: BTreeMap::new() };
        match question.predicate.ids() {
            Some(ids) => {
                for (part, run) in find_ids(&mut scan, &ids)? {
                    page.add(&mut scan, part, &run)?;
                }
            }
            None => {
                for part in scan.parts() {
                    let mut candidates = scan.candidates(part, 0);
                    loop {
                        let Scan { stats, predicate, .. } = &mut scan;
                        let run = candidates.next(stats, &mut |node, whole| search_step(predicate, node, whole));
                        let Some(run) = run else { break };
                        page.add(&mut scan, part, &run)?;
                    }
                }
            }
        }
        scan.stats.scan_us = (control.elapsed_us() - started).max(0) as u64;
        Ok(PartialPassages { found: page.found, stats: scan.stats })
    }

    /// Finishes the result.
    pub fn finish(self, question: &Passages) -> PassagesResult {
        let more = self.found.len() > question.limit;
        let given = self.found.into_iter().take(question.limit);
        let passages = given.map(|(object, (count, first, last))| Passage { object, count, first, last }).collect();
        PassagesResult { passages, more, stats: self.stats }
    }
}

/// A page under construction: the first objects so far, one more than it will return.
struct Page<'a> {
    field: usize,
    columns: Projection,
    question: &'a Passages,
    found: BTreeMap<ByValue, (u64, i64, i64)>,
}

impl Page<'_> {
    fn add(&mut self, scan: &mut Scan, part: u32, run: &Run) -> Result<(), QueryError> {
        let Some((rows, batch)) = scan.matching(part, run, &self.columns)? else { return Ok(()) };
        let Some(objects) = batch.field(self.field) else { return Ok(()) };
        for row in rows.iter().map(|row| (row - run.rows.start) as usize) {
            let object = match &objects {
                FieldColumn::Text(a) if a.is_valid(row) => ByValue::Text(a.value(row).to_owned()),
                FieldColumn::Int(a) if a.is_valid(row) => ByValue::Int(a.value(row)),
                _ => continue,
            };
            self.see(object, batch.interval(row));
        }
        Ok(())
    }

    fn see(&mut self, object: ByValue, (start, end): (i64, i64)) {
        // One more than the limit is kept: it shows whether there is a next page.
        let full = self.found.len() > self.question.limit;
        let beyond = |last: &ByValue| full && object > *last;
        if self.question.after.as_ref().is_some_and(|after| object <= *after)
            || self.found.last_key_value().is_some_and(|(last, _)| beyond(last))
        {
            return;
        }
        // An event with neither start nor end has no time, rather than all of it.
        let (start, end) = if (start, end) == (i64::MIN, i64::MAX) { NO_TIME } else { (start, end) };
        let seen = self.found.entry(object).or_insert((0, NO_TIME.0, NO_TIME.1));
        *seen = (seen.0 + 1, seen.1.min(start), seen.2.max(end));
        // A dropped object was greater than all that are kept, so it never comes back with part of its events.
        if self.found.len() > self.question.limit + 1 {
            self.found.pop_last();
        }
    }
}
