//! Events kept while sorting, the worst on top.

use crate::cursor::{SortValue, compare_values};
use crate::matched_rows::Pick;
use std::cmp::Ordering;

pub(super) struct SortEntry {
    pub(super) values: Vec<SortValue>,
    pub(super) pick: Pick,
    /// A bit per key, set if it descends: `Ord` needs it within the heap.
    pub(super) descending: u16,
}

impl SortEntry {
    /// Estimated bytes, allocator included. The heap may have capacity for twice as many events, and the picks of the
    /// result are created while it still exists.
    pub(super) fn bytes(&self) -> usize {
        let texts = |value: &SortValue| if let SortValue::Text(text) = value { text.len() + 16 } else { 0 };
        let values = self.values.len() * size_of::<SortValue>() + self.values.iter().map(texts).sum::<usize>();
        2 * size_of::<SortEntry>() + size_of::<Pick>() + values + 16
    }

    pub(super) fn compare(&self, other: &SortEntry) -> Ordering {
        // The sequence number makes the order total, so that a page token denotes one position and no event repeats.
        compare_values(&self.values, &other.values, self.descending).then(self.pick.seq.cmp(&other.pick.seq))
    }
}

impl Ord for SortEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

impl PartialOrd for SortEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SortEntry {}
