//! Groups of an aggregate, by partition.

use super::envelope::{Envelope, Kind, Opened};
use crate::aggregate::{Aggregate, Groups, PartialGroups};
use crate::by::{ByValue, Keys, Values};
use crate::control::Control;
use crate::error::QueryError;
use crate::sketch::Sketch;
use crate::totals::{Floats, Ints, Totals};
use crate::windows::{Window, Windows};
use crate::wire::WireError;
use arrow_array::builder::{BooleanBuilder, Int64Builder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, RecordBatch, UInt64Array,
};
use arrow_schema::DataType;
use meridian_index::FloatSum;
use meridian_model::{FieldType, Schema};
use std::sync::Arc;

const KIND: Kind = Kind { name: "groups", version: 1 };
// Property names are arbitrary, but physical names begin with `@`.
const START: &str = "@window_start";
const END: &str = "@window_end";
const BY: &str = "@by";
const COUNT: &str = "@count";

impl PartialGroups {
    /// Adds the groups of another partition of the same query.
    pub fn merge(&mut self, other: PartialGroups) -> Result<(), QueryError> {
        self.stats.merge(&other.stats);
        self.groups.merge(other.groups)
    }

    /// Encodes as an Arrow record batch: one row per group, unordered.
    pub fn to_arrow(&self, schema: &Schema) -> Result<RecordBatch, WireError> {
        let groups = &self.groups;
        let mut envelope = KIND.seal(&self.stats);
        let ends = |end: fn(&Window) -> i64| groups.windows.iter().map(|w| w.as_ref().map(end)).collect::<Int64Array>();
        envelope.column(START, Arc::new(ends(|w| w.start)));
        envelope.column(END, Arc::new(ends(|w| w.end)));
        if let Some(keys) = &groups.by {
            for at in 0..groups.by_kinds.len() {
                envelope.column(by_name(at), by_column(keys, at, &groups.values)?);
            }
        }
        envelope.column(COUNT, Arc::new(UInt64Array::from(groups.counts.clone())));
        for field in &groups.fields {
            let name = schema.fields.get(field.field).map_or("", |f| f.name.as_str());
            match &field.totals {
                Totals::Ints(totals) => ints(&mut envelope, name, totals),
                Totals::Floats(totals) => floats(&mut envelope, name, totals),
            }
        }
        for of in &groups.sketched {
            let name = schema.fields.get(of.field).map_or("", |f| f.name.as_str());
            // With 64-bit offsets: the summaries of many groups may exceed 2 GiB.
            let sketches: LargeBinaryArray = of.sketches.iter().map(|sketch| Some(sketch.encode())).collect();
            envelope.column(named(of.kind.name(), name), Arc::new(sketches));
        }
        envelope.finish(groups.counts.len())
    }

    /// Decodes the output of [`PartialGroups::to_arrow`]. The query's limits apply: too many groups are rejected.
    pub fn from_arrow(
        batch: &RecordBatch,
        question: &Aggregate,
        schema: &Schema,
        control: &Control,
    ) -> Result<PartialGroups, WireError> {
        let opened = KIND.open(batch)?;
        let mut groups = Groups::of(question, schema, control)?;
        let numbers = add_groups(&opened, &mut groups, question)?;
        let counts = opened.numbers::<UInt64Type>(COUNT)?;
        for (&group, &count) in numbers.iter().zip(counts.values()) {
            let total = &mut groups.counts[group as usize];
            *total = total.saturating_add(count);
        }
        for at in 0..groups.sketched.len() {
            let (field, kind, type_) = (groups.sketched[at].field, groups.sketched[at].kind, groups.sketched[at].type_);
            let name = named(kind.name(), &schema.fields[field].name);
            let read = opened.column(&name, false, |column| column.as_binary_opt::<i64>())?;
            for (row, &group) in numbers.iter().enumerate() {
                let sketch = Sketch::decode(kind, type_, read.value(row));
                let sketch = sketch.map_err(|_| opened.malformed(format!("the column {name:?} cannot be read")))?;
                groups.merge_sketch(at, group, &sketch)?;
            }
        }
        for field in &mut groups.fields {
            let name = &schema.fields[field.field].name;
            let read = match &field.totals {
                Totals::Ints(_) => Totals::Ints(read_ints(&opened, name)?),
                Totals::Floats(_) => Totals::Floats(read_floats(&opened, name)?),
            };
            for (row, &group) in numbers.iter().enumerate() {
                field.totals.merge(group as usize, &read, row);
            }
        }
        Ok(PartialGroups { groups, stats: opened.stats()? })
    }
}

/// The name of the column of a `by` field.
fn by_name(at: usize) -> String {
    // The first has the name that the only field has always had.
    if at == 0 { BY.to_owned() } else { format!("{BY}{at}") }
}

/// The values of one of the `by` fields.
fn by_column(keys: &Keys, at: usize, of_groups: &[u32]) -> Result<ArrayRef, WireError> {
    let (by, number) = keys.of_field(at);
    let numbers: Vec<u32> = of_groups.iter().map(|key| number(*key)).collect();
    values(by, &numbers)
}

/// The values of a field: text as a dictionary, as each value occurs in many groups.
fn values(by: &Values, of_groups: &[u32]) -> Result<ArrayRef, WireError> {
    let of = |group: &u32| by.list.get(*group as usize).unwrap_or(&ByValue::Null);
    if by.list.iter().any(|value| matches!(value, ByValue::Text(_))) {
        let text = |value: &ByValue| if let ByValue::Text(text) = value { Some(text.clone()) } else { None };
        // With 64-bit offsets: the texts of many groups may exceed 2 GiB.
        let list: LargeStringArray = by.list.iter().map(text).collect();
        let mut numbers = UInt32Builder::with_capacity(of_groups.len());
        of_groups.iter().for_each(|group| match of(group) {
            ByValue::Text(_) => numbers.append_value(*group),
            _ => numbers.append_null(),
        });
        let dictionary = DictionaryArray::try_new(numbers.finish(), Arc::new(list));
        return dictionary.map(|array| Arc::new(array) as ArrayRef).map_err(|e| KIND.malformed(e.to_string()));
    }
    if by.list.iter().any(|value| matches!(value, ByValue::Bool(_))) {
        let mut flags = BooleanBuilder::with_capacity(of_groups.len());
        of_groups.iter().for_each(|group| match of(group) {
            ByValue::Bool(flag) => flags.append_value(*flag),
            _ => flags.append_null(),
        });
        return Ok(Arc::new(flags.finish()));
    }
    let mut numbers = Int64Builder::with_capacity(of_groups.len());
    of_groups.iter().for_each(|group| match of(group) {
        ByValue::Int(n) => numbers.append_value(*n),
        _ => numbers.append_null(),
    });
    Ok(Arc::new(numbers.finish()))
}

/// The value of the `by` field of a row.
fn by_value(column: &ArrayRef, row: usize) -> Option<ByValue> {
    if let Some(dictionary) = column.as_dictionary_opt::<UInt32Type>() {
        let list = dictionary.values().as_string_opt::<i64>()?;
        return Some(match dictionary.keys().is_valid(row).then(|| dictionary.keys().value(row) as usize) {
            Some(at) if at >= list.len() => return None,
            Some(at) if list.is_valid(at) => ByValue::Text(list.value(at).to_owned()),
            _ => ByValue::Null,
        });
    }
    if let Some(flags) = column.as_boolean_opt() {
        return Some(if flags.is_valid(row) { ByValue::Bool(flags.value(row)) } else { ByValue::Null });
    }
    let numbers = column.as_primitive_opt::<Int64Type>()?;
    Some(if numbers.is_valid(row) { ByValue::Int(numbers.value(row)) } else { ByValue::Null })
}

/// Whether a value may occur in a `by` field of this type.
fn fits(value: &ByValue, kind: FieldType) -> bool {
    match value {
        ByValue::Null => true,
        ByValue::Text(_) => kind == FieldType::Text,
        ByValue::Int(_) => kind == FieldType::Int,
        ByValue::Bool(_) => kind == FieldType::Bool,
    }
}

/// Creates the groups of a batch's rows; returns the number of each.
fn add_groups(opened: &Opened<'_>, groups: &mut Groups, question: &Aggregate) -> Result<Vec<u32>, WireError> {
    let (starts, ends) = (opened.nullable::<Int64Type>(START)?, opened.nullable::<Int64Type>(END)?);
    let by = (0..groups.by_kinds.len()).map(|at| opened.any(&by_name(at))).collect::<Result<Vec<_>, _>>()?;
    let mut key = Vec::with_capacity(by.len());
    (0..opened.rows())
        .map(|row| {
            let window = window(question.windows.as_ref(), starts.is_valid(row), starts.value(row), ends.value(row));
            let window = window.ok_or_else(|| opened.malformed("its windows are cut in another way"))?;
            key.clear();
            for (column, kind) in by.iter().zip(&groups.by_kinds) {
                let value = by_value(column, row).filter(|value| fits(value, *kind));
                key.push(value.ok_or_else(|| opened.malformed("its groups have values of another type"))?);
            }
            let number = match &mut groups.by {
                Some(keys) => keys.number_of(&key)?,
                None => 0,
            };
            Ok(groups.group(window, number)?)
        })
        .collect()
}

/// A window as the query divides time; `None` if it is divided in another way, as by servers with other time zone
/// data.
fn window(windows: Option<&Windows>, is_valid: bool, start: i64, end: i64) -> Option<Option<Window>> {
    match windows {
        Some(windows) if is_valid => Some(Some(windows.window_of(start))).filter(|w| *w == Some(Window { start, end })),
        Some(_) => Some(None),
        None => (!is_valid).then_some(None),
    }
}

/// The name of a column that belongs to a field.
fn named(what: &str, field: &str) -> String {
    format!("{what}({field})")
}

pub(super) fn ints(envelope: &mut Envelope, name: &str, totals: &[Ints]) {
    let some = |value: fn(&Ints) -> i64| totals.iter().map(|t| (t.count > 0).then(|| value(t))).collect::<Int64Array>();
    envelope.column(named("count", name), Arc::new(totals.iter().map(|t| t.count).collect::<UInt64Array>()));
    // 128 bits: sums of 64-bit integers do not fit into 64.
    let sums: Decimal128Array = totals.iter().map(|t| t.sum).collect();
    envelope.column(named("sum", name), Arc::new(sums.with_data_type(DataType::Decimal128(38, 0))));
    envelope.column(named("min", name), Arc::new(some(|t| t.min)));
    envelope.column(named("max", name), Arc::new(some(|t| t.max)));
}

pub(super) fn floats(envelope: &mut Envelope, name: &str, totals: &[Floats]) {
    let all = |value: fn(&Floats) -> f64| totals.iter().map(value).collect::<Float64Array>();
    let some =
        |value: fn(&Floats) -> f64| totals.iter().map(|t| (t.count > 0).then(|| value(t))).collect::<Float64Array>();
    envelope.column(named("count", name), Arc::new(totals.iter().map(|t| t.count).collect::<UInt64Array>()));
    envelope.column(named("sum", name), Arc::new(all(|t| t.sum.parts().0)));
    // With the rounding error of the sum, so that a merge loses no precision.
    envelope.column(named("lost", name), Arc::new(all(|t| t.sum.parts().1)));
    let scaled: Vec<bool> = totals.iter().map(|t| t.sum.parts().2).collect();
    envelope.column(named("scaled", name), Arc::new(BooleanArray::from(scaled)));
    envelope.column(named("min", name), Arc::new(some(|t| t.min)));
    envelope.column(named("max", name), Arc::new(some(|t| t.max)));
}

pub(super) fn read_ints(opened: &Opened<'_>, name: &str) -> Result<Vec<Ints>, WireError> {
    let counts = opened.numbers::<UInt64Type>(&named("count", name))?;
    let sums = opened.numbers::<Decimal128Type>(&named("sum", name))?;
    let mins = opened.nullable::<Int64Type>(&named("min", name))?;
    let maxes = opened.nullable::<Int64Type>(&named("max", name))?;
    let read = |row: usize| match counts.value(row) {
        0 => Some(Ints::NONE),
        count if mins.is_valid(row) && maxes.is_valid(row) => {
            Some(Ints { count, sum: sums.value(row), min: mins.value(row), max: maxes.value(row) })
        }
        _ => None,
    };
    let all: Option<Vec<Ints>> = (0..opened.rows()).map(read).collect();
    all.ok_or_else(|| opened.malformed(format!("{name:?} has values, but no min or max")))
}

pub(super) fn read_floats(opened: &Opened<'_>, name: &str) -> Result<Vec<Floats>, WireError> {
    let counts = opened.numbers::<UInt64Type>(&named("count", name))?;
    let sums = opened.numbers::<Float64Type>(&named("sum", name))?;
    let lost = opened.numbers::<Float64Type>(&named("lost", name))?;
    let scaled = opened.flags(&named("scaled", name))?;
    let mins = opened.nullable::<Float64Type>(&named("min", name))?;
    let maxes = opened.nullable::<Float64Type>(&named("max", name))?;
    let some =
        |column: &Float64Array, row: usize| Some(column.value(row)).filter(|x| column.is_valid(row) && !x.is_nan());
    let read = |row: usize| {
        if counts.value(row) == 0 {
            return Some(Floats::none());
        }
        let sum = FloatSum::from_parts(sums.value(row), lost.value(row), scaled.value(row));
        Some(Floats { count: counts.value(row), sum, min: some(mins, row)?, max: some(maxes, row)? })
    };
    let all: Option<Vec<Floats>> = (0..opened.rows()).map(read).collect();
    all.ok_or_else(|| opened.malformed(format!("{name:?} has values, but no min or max")))
}
