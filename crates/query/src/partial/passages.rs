//! Objects of passages, by partition.

use super::WireError;
use super::envelope::Kind;
use crate::aggregate::ByValue;
use crate::control::Stats;
use crate::passages::{Passage, Passages, PassagesResult};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, Int64Array, LargeStringArray, RecordBatch, UInt64Array};
use std::collections::BTreeMap;
use std::sync::Arc;

const KIND: Kind = Kind { name: "passages", version: 1 };

/// The first objects of one partition: one more than the question asks for, each with count, start and end.
///
/// An object among the first of all partitions is among the first of each that holds it, so that nothing is missing of
/// the objects that the merged answer gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialPassages {
    pub(crate) found: BTreeMap<ByValue, (u64, i64, i64)>,
    pub(crate) stats: Stats,
}

impl PartialPassages {
    /// Adds the objects of another partition.
    pub fn merge(&mut self, other: PartialPassages) {
        for (object, (count, first, last)) in other.found {
            let seen = self.found.entry(object).or_insert((0, i64::MAX, i64::MIN));
            *seen = (seen.0.saturating_add(count), seen.1.min(first), seen.2.max(last));
        }
        self.stats.merge(&other.stats);
    }

    /// The answer.
    pub fn finish(self, question: &Passages) -> PassagesResult {
        let more = self.found.len() > question.limit;
        let given = self.found.into_iter().take(question.limit);
        let passages = given.map(|(object, (count, first, last))| Passage { object, count, first, last }).collect();
        PassagesResult { passages, more, stats: self.stats }
    }

    /// As an Arrow record batch: a row for each object.
    pub fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let mut envelope = KIND.seal(&self.stats);
        envelope.column("object", objects(self.found.keys())?);
        envelope.column("count", Arc::new(self.found.values().map(|v| v.0).collect::<UInt64Array>()));
        envelope.column("first", Arc::new(self.found.values().map(|v| v.1).collect::<Int64Array>()));
        envelope.column("last", Arc::new(self.found.values().map(|v| v.2).collect::<Int64Array>()));
        envelope.finish(self.found.len())
    }

    /// Reads what [`PartialPassages::to_arrow`] wrote.
    pub fn from_arrow(batch: &RecordBatch) -> Result<PartialPassages, WireError> {
        let opened = KIND.open(batch)?;
        let objects = opened.column("object", false, Some)?;
        let counts = opened.numbers::<UInt64Type>("count")?;
        let (first, last) = (opened.numbers::<Int64Type>("first")?, opened.numbers::<Int64Type>("last")?);
        let mut read = PartialPassages { found: BTreeMap::new(), stats: opened.stats()? };
        for row in 0..opened.rows() {
            let object = object(objects, row).ok_or_else(|| opened.malformed("objects of another type"))?;
            read.found.insert(object, (counts.value(row), first.value(row), last.value(row)));
        }
        Ok(read)
    }
}

/// Objects are all of one type: that of the collection's object field.
fn objects<'a>(objects: impl Iterator<Item = &'a ByValue> + Clone) -> Result<ArrayRef, WireError> {
    let wrong = || KIND.malformed("objects of several types");
    Ok(match objects.clone().next() {
        Some(ByValue::Int(_)) => {
            let all = objects.map(|o| if let ByValue::Int(n) = o { Ok(*n) } else { Err(wrong()) });
            Arc::new(Int64Array::from(all.collect::<Result<Vec<_>, _>>()?))
        }
        Some(ByValue::Bool(_)) => {
            let all = objects.map(|o| if let ByValue::Bool(b) = o { Ok(*b) } else { Err(wrong()) });
            Arc::new(BooleanArray::from(all.collect::<Result<Vec<_>, _>>()?))
        }
        _ => {
            let all = objects.map(|o| if let ByValue::Text(text) = o { Ok(text.as_str()) } else { Err(wrong()) });
            Arc::new(LargeStringArray::from(all.collect::<Result<Vec<_>, _>>()?))
        }
    })
}

fn object(column: &ArrayRef, row: usize) -> Option<ByValue> {
    if let Some(texts) = column.as_string_opt::<i64>() {
        return Some(ByValue::Text(texts.value(row).to_owned()));
    }
    if let Some(flags) = column.as_boolean_opt() {
        return Some(ByValue::Bool(flags.value(row)));
    }
    column.as_primitive_opt::<Int64Type>().map(|numbers| ByValue::Int(numbers.value(row)))
}
