//! Sorts rows into the order of a collection, and merges sorted runs.

use crate::key::Key;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of rows below which one thread sorts faster than several.
const PARALLEL_ROWS: usize = 8192;

/// The rows in order of `(key, seq)`: `order[i]` is the row for position `i`.
///
/// Rows equal in both keep their order. Large inputs are sorted in parallel.
///
/// # Panics
/// Never if both slices have the same length and it fits `u32`; otherwise the shorter length counts.
pub fn sort_order(keys: &[Key], seqs: &[u64]) -> Vec<u32> {
    let mut rows: Vec<(Key, u64, u32)> =
        keys.iter().zip(seqs).zip(0..u32::MAX).map(|((&key, &seq), row)| (key, seq, row)).collect();
    // Batches often arrive in order, as clients write what they have just observed. The check is cheap compared with
    // a sort.
    if !rows.is_sorted() {
        if rows.len() < PARALLEL_ROWS {
            rows.sort_unstable();
        } else {
            rows.par_sort_unstable();
        }
    }
    rows.into_iter().map(|(_, _, row)| row).collect()
}

/// One event of a [`Merge`]: its position in the order and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MergedEvent<S> {
    /// Key of the event.
    pub key: Key,
    /// Sequence number of the event.
    pub seq: S,
    /// Index of the merged iterator that it came from.
    pub source: usize,
}

/// Merges sorted streams of `(Key, seq)` into one, holding one event of each.
///
/// Each source must be in order of `(Key, seq)`. Events equal in both come in order of source, so the result is
/// deterministic. Since a source's rows come in order, a caller finds the row by counting per source.
pub struct Merge<I, S> {
    sources: Vec<I>,
    heads: BinaryHeap<Reverse<MergedEvent<S>>>,
}

impl<I, S> Merge<I, S>
where
    I: Iterator<Item = (Key, S)>,
    S: Ord + Copy,
{
    /// Reads the first event of each source.
    pub fn new(sources: impl IntoIterator<Item = I>) -> Self {
        let mut sources: Vec<I> = sources.into_iter().collect();
        let heads = sources
            .iter_mut()
            .enumerate()
            .filter_map(|(source, i)| i.next().map(|(key, seq)| Reverse(MergedEvent { key, seq, source })))
            .collect();
        Merge { sources, heads }
    }
}

impl<I, S> Iterator for Merge<I, S>
where
    I: Iterator<Item = (Key, S)>,
    S: Ord + Copy,
{
    type Item = MergedEvent<S>;

    fn next(&mut self) -> Option<MergedEvent<S>> {
        // Replaced in place rather than popped and pushed: one move through the heap instead of two.
        let mut head = self.heads.peek_mut()?;
        let next = head.0;
        match self.sources[next.source].next() {
            Some((key, seq)) => head.0 = MergedEvent { key, seq, source: next.source },
            None => {
                std::collections::binary_heap::PeekMut::pop(head);
            }
        }
        Some(next)
    }
}
