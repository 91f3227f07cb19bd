//! Maps an object to its events in order of time: the sidecar behind tracks and the mode `latest`.
//!
//! Sorted pairs of object and time lead to rows, so an object's events are adjacent, with the newest last. Objects are
//! stored as hashes; a lookup compares the object itself on the rows found.

use crate::codec::hash;
use crate::codec::{Reader, put_i64, put_u32, put_u64};
use meridian_model::{Batch, FieldColumn, Schema};
use std::ops::RangeInclusive;

/// Number of entries in a page of the sidecar.
pub(crate) const PAGE_OBJECTS: usize = 4096;

/// One event of an object, in order of object, time and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectEntry {
    pub(crate) object: u64,
    /// Last instant of the event, in microseconds since 1970; the max value if it is open-ended.
    pub(crate) time: i64,
    pub(crate) seq: u64,
    pub(crate) row: u32,
}

/// Sorted entries of the events that have an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ObjectRows {
    pub(crate) entries: Vec<ObjectEntry>,
}

/// Returns the hash of a row's object; `None` if it has none.
pub(crate) fn object_of(seed: u64, column: &FieldColumn<'_>, row: usize) -> Option<u64> {
    use arrow_array::Array;
    match column {
        FieldColumn::Text(texts) => texts.is_valid(row).then(|| hash(seed, texts.value(row).as_bytes())),
        FieldColumn::Int(numbers) => numbers.is_valid(row).then(|| hash(seed, &numbers.value(row).to_le_bytes())),
        _ => None,
    }
}

/// Returns the hash of an object as named by a user; `None` if no event can have it.
pub(crate) fn object_named(schema: &Schema, seed: u64, name: &str) -> Option<u64> {
    match schema.fields.get(schema.object?)?.kind {
        meridian_model::FieldType::Int => name.parse::<i64>().ok().map(|n| hash(seed, &n.to_le_bytes())),
        _ => Some(hash(seed, name.as_bytes())),
    }
}

impl ObjectRows {
    /// Returns the entries of a batch whose rows begin at `first`; empty if the schema has no object field.
    pub(crate) fn of(seed: u64, batch: &Batch, seqs: &[u64], first: u32) -> ObjectRows {
        let mut found = ObjectRows::default();
        found.add(seed, batch, seqs, first);
        found.sort();
        found
    }

    /// Adds the entries of a batch, unsorted.
    pub(crate) fn add(&mut self, seed: u64, batch: &Batch, seqs: &[u64], first: u32) {
        let Some(column) = batch.schema().object.and_then(|field| batch.field(field)) else { return };
        self.entries.extend(seqs.iter().enumerate().filter_map(|(row, seq)| {
            let object = object_of(seed, &column, row)?;
            Some(ObjectEntry { object, time: batch.interval(row).1, seq: *seq, row: first + row as u32 })
        }));
    }

    pub(crate) fn sort(&mut self) {
        self.entries.sort_unstable();
    }

    /// Returns the entries of an object within some times, in order.
    pub(crate) fn within(&self, object: u64, times: &RangeInclusive<i64>) -> &[ObjectEntry] {
        let from = self.entries.partition_point(|e| (e.object, e.time) < (object, *times.start()));
        let to = self.entries.partition_point(|e| (e.object, e.time) <= (object, *times.end()));
        &self.entries[from..to.max(from)]
    }

    /// Encodes a page: the number of entries, then objects, times, numbers, rows.
    pub(crate) fn encode_page(entries: &[ObjectEntry]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + entries.len() * 28);
        put_u32(&mut bytes, entries.len() as u32);
        entries.iter().for_each(|e| put_u64(&mut bytes, e.object));
        entries.iter().for_each(|e| put_i64(&mut bytes, e.time));
        entries.iter().for_each(|e| put_u64(&mut bytes, e.seq));
        entries.iter().for_each(|e| put_u32(&mut bytes, e.row));
        bytes
    }

    /// Decodes a page; entries must ascend.
    pub(crate) fn decode_page(bytes: &[u8]) -> Result<ObjectRows, String> {
        let mut reader = Reader::new(bytes);
        let count = reader.u32()? as usize;
        if count > PAGE_OBJECTS {
            return Err(format!("a page of {count} entries"));
        }
        let mut entries = vec![ObjectEntry { object: 0, time: 0, seq: 0, row: 0 }; count];
        for entry in &mut entries {
            entry.object = reader.u64()?;
        }
        for entry in &mut entries {
            entry.time = reader.i64()?;
        }
        for entry in &mut entries {
            entry.seq = reader.u64()?;
        }
        for entry in &mut entries {
            entry.row = reader.u32()?;
        }
        reader.end()?;
        if !entries.is_sorted() {
            return Err("objects out of order".to_owned());
        }
        Ok(ObjectRows { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_are_read_as_written_and_no_harmed_page_is_out_of_order(
            some in prop::collection::vec((0..5u64, -9..9i64, 0..99u64, 0..99u32), 1..60),
            harm in prop::option::of((any::<prop::sample::Index>(), 1..=255u8)),
        ) {
            let entries = some.iter().map(|&(object, time, seq, row)| ObjectEntry { object, time, seq, row }).collect();
            let mut rows = ObjectRows { entries };
            rows.sort();
            let mut bytes = ObjectRows::encode_page(&rows.entries);
            if let Some((at, bits)) = harm {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
                if let Ok(page) = ObjectRows::decode_page(&bytes) {
                    prop_assert!(page.entries.is_sorted());
                }
                return Ok(());
            }
            let read = ObjectRows::decode_page(&bytes).unwrap();
            for object in 0..6 {
                let wanted = some.iter().filter(|(o, time, ..)| *o == object && (-3..=4).contains(time)).count();
                prop_assert_eq!(read.within(object, &(-3..=4)).len(), wanted);
            }
            prop_assert_eq!(read, rows);
        }
    }
}
