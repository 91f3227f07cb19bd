//! The names or the values of a layer: each is written into the tile once, and features refer to it by number.

use super::protobuf::put_bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::ops::Range;

/// Distinct byte strings, numbered in order of first use.
#[derive(Debug)]
pub(super) struct Dictionary {
    /// Number of the layer's protobuf field that holds them.
    field: u64,
    /// The entries as fields of the layer.
    encoded: Vec<u8>,
    /// Where the bytes of each entry are in `encoded`, so that an entry needs no memory of its own.
    ranges: Vec<Range<usize>>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl Dictionary {
    /// An empty dictionary for a field of the layer.
    pub(super) fn new(field: u64) -> Dictionary {
        Dictionary {
            field,
            encoded: Vec::new(),
            ranges: Vec::new(),
            numbers: HashTable::new(),
            hasher: RandomState::default(),
        }
    }

    /// The number of an entry, which is added if it is new.
    pub(super) fn number(&mut self, entry: &[u8]) -> u32 {
        let Dictionary { encoded, ranges, numbers, hasher, .. } = self;
        let hash = hasher.hash_one(entry);
        if let Some(number) = numbers.find(hash, |&number| &encoded[ranges[number as usize].clone()] == entry) {
            return *number;
        }
        let number = ranges.len() as u32;
        put_bytes(encoded, self.field, entry);
        ranges.push(encoded.len() - entry.len()..encoded.len());
        numbers.insert_unique(hash, number, |&number| hasher.hash_one(&encoded[ranges[number as usize].clone()]));
        number
    }

    /// The entries by number.
    pub(super) fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges.iter().map(|range| &self.encoded[range.clone()])
    }

    /// All entries as fields of the layer.
    pub(super) fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}
