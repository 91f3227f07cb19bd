//! Objects of passages, by partition.

use super::envelope::{Kind, Opened};
use crate::by::ByValue;
use crate::passages::{NO_TIME, PartialPassages, object_field};
use crate::wire::WireError;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, UInt64Array};
use meridian_model::{FieldType, Schema};
use std::sync::Arc;

const KIND: Kind = Kind { name: "passages", version: 1 };

impl PartialPassages {
    /// Adds the objects of another partition.
    pub fn merge(&mut self, other: PartialPassages) {
        for (object, (count, first, last)) in other.found {
            let seen = self.found.entry(object).or_insert((0, NO_TIME.0, NO_TIME.1));
            *seen = (seen.0.saturating_add(count), seen.1.min(first), seen.2.max(last));
        }
        self.stats.merge(&other.stats);
    }

    /// Encodes as an Arrow record batch: one row per object, in order.
    pub fn to_arrow(&self, schema: &Schema) -> Result<RecordBatch, WireError> {
        let mut envelope = KIND.seal(&self.stats);
        envelope.column("object", objects(self.found.keys(), kind(schema)?)?);
        envelope.column("count", Arc::new(self.found.values().map(|v| v.0).collect::<UInt64Array>()));
        envelope.column("first", Arc::new(self.found.values().map(|v| v.1).collect::<Int64Array>()));
        envelope.column("last", Arc::new(self.found.values().map(|v| v.2).collect::<Int64Array>()));
        envelope.finish(self.found.len())
    }

    /// Decodes the output of [`PartialPassages::to_arrow`] for a collection of this schema.
    pub fn from_arrow(batch: &RecordBatch, schema: &Schema) -> Result<PartialPassages, WireError> {
        let opened = KIND.open(batch)?;
        let objects = read_objects(&opened, kind(schema)?)?;
        let counts = opened.numbers::<UInt64Type>("count")?.values();
        let (first, last) = (opened.numbers::<Int64Type>("first")?, opened.numbers::<Int64Type>("last")?);
        // The order proves that no object occurs twice: one of the two would be lost in the map.
        if !objects.is_sorted_by(|a, b| a < b) {
            return Err(opened.malformed("its objects are not in order"));
        }
        let spans = || first.values().iter().copied().zip(last.values().iter().copied());
        if counts.contains(&0) || spans().any(|span| span.0 > span.1 && span != NO_TIME) {
            return Err(opened.malformed("an object without events"));
        }
        let values = counts.iter().zip(spans()).map(|(&count, (first, last))| (count, first, last));
        Ok(PartialPassages { found: objects.into_iter().zip(values).collect(), stats: opened.stats()? })
    }
}

/// The type of a collection's objects: integer or text.
fn kind(schema: &Schema) -> Result<FieldType, WireError> {
    Ok(schema.fields[object_field(schema, "tracks")?].kind)
}

fn objects<'a>(objects: impl Iterator<Item = &'a ByValue>, kind: FieldType) -> Result<ArrayRef, WireError> {
    let wrong = || KIND.malformed("objects of another type");
    Ok(if kind == FieldType::Int {
        let all = objects.map(|o| if let ByValue::Int(n) = o { Ok(*n) } else { Err(wrong()) });
        Arc::new(Int64Array::from(all.collect::<Result<Vec<_>, _>>()?))
    } else {
        let all = objects.map(|o| if let ByValue::Text(text) = o { Ok(text.as_str()) } else { Err(wrong()) });
        Arc::new(LargeStringArray::from(all.collect::<Result<Vec<_>, _>>()?))
    })
}

fn read_objects(opened: &Opened<'_>, kind: FieldType) -> Result<Vec<ByValue>, WireError> {
    if kind == FieldType::Int {
        return Ok(opened.numbers::<Int64Type>("object")?.values().iter().copied().map(ByValue::Int).collect());
    }
    let texts = opened.column("object", false, |column| column.as_string_opt::<i64>())?;
    Ok(texts.iter().flatten().map(|text| ByValue::Text(text.to_owned())).collect())
}
