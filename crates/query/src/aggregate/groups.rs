//! The groups of an aggregate under construction.

use super::question::{Aggregate, Group};
use crate::by::{ByValue, Keys};
use crate::control::Control;
use crate::error::QueryError;
use crate::function::{Function, FunctionValue};
use crate::hash::NumberMap;
use crate::memory::Share;
use crate::sketch::{Kind, Sketch};
use crate::totals::Totals;
use crate::windows::{Finder, Window};
use arrow_array::{Array, TimestampMicrosecondArray};
use meridian_index::{NodeRef, Summary};
use meridian_model::{Batch, FieldColumn, FieldType, Invalid, Schema};
use std::ops::Range;

/// Max number of running totals of a query: one per group, and one per group and numeric field.
pub const TOTALS_MAX: usize = 2_000_000;

/// The group that all events below a node share.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    pub(crate) window: Option<Window>,
    /// The values of the `by` fields.
    pub(crate) by: Vec<ByValue>,
}

/// The sketches of one field for a function.
pub(crate) struct FieldSketches {
    pub(crate) field: usize,
    pub(crate) type_: FieldType,
    pub(crate) kind: Kind,
    /// By group number.
    pub(crate) sketches: Vec<Sketch>,
}

/// One numeric field of the query.
pub(crate) struct FieldTotals {
    pub(crate) field: usize,
    /// Index among the schema's numeric fields.
    ordinal: usize,
    pub(crate) totals: Totals,
}

/// All groups of a query.
pub(crate) struct Groups {
    /// Group of a window (its start) and a key (its number).
    of: NumberMap<(i64, u32)>,
    /// Group of a window by the window's number, if there is no `by` field.
    numbered: Vec<u32>,
    pub(crate) windows: Vec<Option<Window>>,
    /// Number of each group's key: its values of the `by` fields.
    pub(crate) values: Vec<u32>,
    pub(crate) counts: Vec<u64>,
    pub(crate) fields: Vec<FieldTotals>,
    pub(crate) sketched: Vec<FieldSketches>,
    /// Bytes of sketches reserved so far.
    sketch_bytes: usize,
    pub(crate) by: Option<Keys>,
    pub(crate) by_kinds: Vec<FieldType>,
    /// The group of the last lookup, which is usually the next one too.
    last: Option<((i64, u32), u32)>,
    /// Scratch: group of each row of a batch.
    scratch: Vec<u32>,
    /// Memory of the groups and of their result.
    share: Share,
}

/// Estimated bytes of a group, most of them in the result.
const GROUP_BYTES: usize = 256;
/// Estimated bytes of a group for each numeric field.
const FIELD_BYTES: usize = 128;
/// Estimated bytes of an empty sketch of a group.
const SKETCH_BYTES: usize = 128;

/// Represents the window of events without one.
const NO_WINDOW: i64 = i64::MIN;
/// Represents a group not created yet.
const NO_GROUP: u32 = u32::MAX;

impl Groups {
    /// An empty set of groups for a query, which must fit the schema.
    pub(crate) fn of(question: &Aggregate, schema: &Schema, control: &Control) -> Result<Groups, Invalid> {
        question.check(schema)?;
        let numeric = schema.numeric_fields();
        let fields = question.fields().into_iter().filter_map(|field| {
            let ordinal = numeric.iter().position(|&n| n == field)?;
            Some(FieldTotals { field, ordinal, totals: Totals::of(schema.fields[field].kind) })
        });
        let by_kinds: Vec<FieldType> = question.by.iter().map(|&by| schema.fields[by].kind).collect();
        let sketched = question.sketches().into_iter().map(|(field, kind)| {
            let type_ = schema.fields[field].kind;
            FieldSketches { field, type_, kind, sketches: Vec::new() }
        });
        Ok(Groups {
            of: NumberMap::default(),
            numbered: Vec::new(),
            windows: Vec::new(),
            values: Vec::new(),
            counts: Vec::new(),
            fields: fields.collect(),
            sketched: sketched.collect(),
            sketch_bytes: 0,
            by: (!by_kinds.is_empty()).then(|| Keys::none(by_kinds.len())),
            by_kinds,
            last: None,
            scratch: Vec::new(),
            share: control.share(),
        })
    }

    /// Counts all events below a node.
    pub(crate) fn add_node(&mut self, members: &Members, node: &NodeRef<'_>) -> Result<(), QueryError> {
        let value = match &mut self.by {
            Some(keys) => keys.number_of(&members.by)?,
            None => 0,
        };
        let group = self.group(members.window, value)?;
        self.add_all(group, node.rows().len() as u64, |_, ordinal| node.summary(ordinal));
        Ok(())
    }

    /// Whether summaries know all sums that the query needs. `summary` takes the ordinal of a numeric field.
    pub(crate) fn knows_sums(&self, summary: impl Fn(usize) -> Summary) -> bool {
        // A summary holds no individual values.
        self.sketched.is_empty() && self.fields.iter().all(|field| summary(field.ordinal).sum.is_known())
    }

    /// Counts events of one group, given their number and a summary per numeric field. `summary` takes the field's
    /// index and its ordinal among the numeric fields.
    pub(crate) fn add_all(&mut self, group: u32, count: u64, summary: impl Fn(usize, usize) -> Summary) {
        self.counts[group as usize] += count;
        for field in &mut self.fields {
            field.totals.add_all(group, &summary(field.field, field.ordinal));
        }
    }

    /// Counts rows of one group in a block of at most 64: rows whose bit is set, lowest bit first.
    pub(crate) fn add_block(&mut self, group: u32, batch: &Batch, block: Range<usize>, bits: u64) {
        // A full block is summed column by column, which the compiler vectorises; picking rows by bits is several
        // times slower.
        if bits == u64::MAX >> (64 - block.len()) {
            return self.add_all(group, block.len() as u64, |field, _| {
                batch.field(field).map_or(Summary::INT, |column| Summary::of_rows(&column, block.clone()))
            });
        }
        self.counts[group as usize] += u64::from(bits.count_ones());
        for field in &mut self.fields {
            if let Some(column) = batch.field(field.field) {
                field.totals.add_block(group, &column, &block, bits);
            }
        }
    }

    /// Counts rows of a batch.
    pub(crate) fn add_rows(
        &mut self,
        rows: &[u32],
        batch: &Batch,
        mut windows: Option<(&mut Finder, &TimestampMicrosecondArray)>,
        by: &[Option<FieldColumn<'_>>],
    ) -> Result<(), QueryError> {
        let mut groups = std::mem::take(&mut self.scratch);
        groups.clear();
        match &mut windows {
            // The common case, grouped by time alone, without a null test per row.
            Some((finder, starts)) if self.by.is_none() && starts.null_count() == 0 => {
                let starts = starts.values();
                for &row in rows {
                    groups.push(self.group_at(finder, starts[row as usize])?);
                }
            }
            windows => {
                for row in rows.iter().map(|&row| row as usize) {
                    let window = match windows {
                        Some((finder, starts)) if starts.is_valid(row) => Some(finder.find(starts.value(row))),
                        _ => None,
                    };
                    let value = match &mut self.by {
                        Some(keys) => keys.number_at(by, row)?,
                        None => 0,
                    };
                    groups.push(self.group(window, value)?);
                }
            }
        }
        groups.iter().for_each(|&group| self.counts[group as usize] += 1);
        for field in &mut self.fields {
            if let Some(column) = batch.field(field.field) {
                field.totals.add_rows(rows, &groups, &column);
            }
        }
        let sketched = self.add_to_sketches(rows, &groups, batch);
        // Returned, so that the next batch reuses its memory.
        self.scratch = groups;
        sketched
    }

    fn add_to_sketches(&mut self, rows: &[u32], groups: &[u32], batch: &Batch) -> Result<(), QueryError> {
        for of in &mut self.sketched {
            let Some(column) = batch.field(of.field) else { continue };
            for (&row, &group) in rows.iter().zip(groups) {
                let sketch = &mut of.sketches[group as usize];
                let before = sketch.bytes();
                sketch.add(&column, row as usize);
                // It shrinks when it becomes an estimate. Its memory stays reserved until the query ends.
                self.sketch_bytes += sketch.bytes().saturating_sub(before);
            }
        }
        self.reserve()
    }

    /// Adds a summary to that of a group.
    pub(crate) fn merge_sketch(&mut self, at: usize, group: u32, other: &Sketch) -> Result<(), QueryError> {
        let sketch = &mut self.sketched[at].sketches[group as usize];
        let before = sketch.bytes();
        sketch.merge(other);
        self.sketch_bytes += sketch.bytes().saturating_sub(before);
        self.reserve()
    }

    /// Reserves the memory of groups and sketches.
    fn reserve(&mut self) -> Result<(), QueryError> {
        let keys = self.by.as_ref().map_or(0, Keys::bytes);
        let group = GROUP_BYTES + FIELD_BYTES * self.fields.len() + SKETCH_BYTES * self.sketched.len();
        self.share.reach(self.counts.len() * group + keys + self.sketch_bytes)
    }

    /// Adds the groups of another slice of the same query.
    pub(crate) fn merge(&mut self, other: Groups) -> Result<(), QueryError> {
        let mut values = Vec::new();
        for (theirs, &window) in other.windows.iter().enumerate() {
            let value = match (&mut self.by, &other.by) {
                (Some(mine), Some(by)) => {
                    values.clear();
                    values.extend(by.values(other.values[theirs]).cloned());
                    mine.number_of(&values)?
                }
                _ => 0,
            };
            let group = self.group(window, value)? as usize;
            self.counts[group] = self.counts[group].saturating_add(other.counts[theirs]);
            for (mine, field) in self.fields.iter_mut().zip(&other.fields) {
                mine.totals.merge(group, &field.totals, theirs);
            }
            for (at, of) in other.sketched.iter().enumerate() {
                self.merge_sketch(at, group as u32, &of.sketches[theirs])?;
            }
        }
        Ok(())
    }

    /// The group of an instant's window, without a `by` field; found by the window's number, if it has one.
    #[inline]
    pub(crate) fn group_at(&mut self, finder: &mut Finder, time: i64) -> Result<u32, QueryError> {
        let number = finder.number(time);
        match number.and_then(|number| self.numbered.get(number)) {
            Some(&group) if group != NO_GROUP => return Ok(group),
            _ => {}
        }
        let group = self.group(Some(finder.find(time)), 0)?;
        if let Some(number) = number {
            // Bounded: windows have numbers only if there are few of them.
            self.numbered.resize(self.numbered.len().max(number + 1), NO_GROUP);
            self.numbered[number] = group;
        }
        Ok(group)
    }

    /// The number of a group, created if new. Without a `by` field the key is 0.
    #[inline]
    pub(crate) fn group(&mut self, window: Option<Window>, value: u32) -> Result<u32, QueryError> {
        let key = (window.map_or(NO_WINDOW, |w| w.start), value);
        // Consecutive rows are mostly in one group, which saves the hash lookup.
        if let Some((_, group)) = self.last.filter(|(last, _)| *last == key) {
            return Ok(group);
        }
        if let Some(&group) = self.of.get(&key) {
            self.last = Some((key, group));
            return Ok(group);
        }
        let group = self.counts.len();
        if (group + 1) * (self.fields.len() + self.sketched.len() + 1) > TOTALS_MAX {
            return Err(too_many().into());
        }
        self.of.insert(key, group as u32);
        self.last = Some((key, group as u32));
        self.windows.push(window);
        self.values.push(value);
        self.counts.push(0);
        for field in &mut self.fields {
            field.totals.push();
        }
        for of in &mut self.sketched {
            of.sketches.push(Sketch::of(of.kind, of.type_));
        }
        // Reserved as groups are added and not in advance: their number is known only at the end.
        self.reserve()?;
        Ok(group as u32)
    }

    /// The groups in order, with the value of each function.
    pub(crate) fn finish(mut self, question: &Aggregate, control: &Control) -> Result<Vec<Group>, QueryError> {
        let functions = &question.functions;
        if self.by.is_none() && question.windows.is_none() {
            // A result without windows and `by` has one group, even of no events.
            self.group(None, 0)?;
        }
        if let (Some(windows), true) = (&question.windows, question.empty) {
            self.fill_gaps(windows, &question.predicate, control)?;
        }
        let mut order: Vec<u32> = (0..self.counts.len() as u32).collect();
        let this = &self;
        let by = |group: u32| this.by.iter().flat_map(move |keys| keys.values(this.values[group as usize]));
        order.sort_unstable_by(|&a, &b| {
            let start = |g: u32| self.windows[g as usize].map_or((true, 0), |w| (false, w.start));
            start(a).cmp(&start(b)).then_with(|| by(a).cmp(by(b)))
        });
        let groups = order
            .into_iter()
            .map(|group| {
                let (values, errors) = functions.iter().map(|f| self.value(f, group as usize)).unzip();
                Group {
                    window: self.windows[group as usize],
                    by: by(group).cloned().collect(),
                    count: self.counts[group as usize],
                    values,
                    errors,
                }
            })
            .collect();
        Ok(groups)
    }

    /// The value of a function, and its error.
    fn value(&self, function: &Function, group: usize) -> (FunctionValue, f64) {
        if let Some(wanted) = Kind::of(function) {
            let of = self.sketched.iter().find(|of| (of.field, of.kind) == wanted);
            return of.map_or((FunctionValue::Null, 0.0), |of| of.sketches[group].value(function));
        }
        (self.total(function, group), 0.0)
    }

    fn total(&self, function: &Function, group: usize) -> FunctionValue {
        let Some(field) = function.field() else {
            return FunctionValue::Int(self.counts[group].into());
        };
        let totals = self.fields.iter().find(|f| f.field == field).map(|f| &f.totals);
        totals.map_or(FunctionValue::Null, |totals| totals.value(function, group))
    }
}

pub(super) fn too_many() -> Invalid {
    Invalid::field(
        "window",
        format!(
            "these are too many groups (more than {TOTALS_MAX} totals): ask for longer windows, fewer functions or a shorter time"
        ),
    )
}
