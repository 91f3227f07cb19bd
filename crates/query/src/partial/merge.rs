//! Merges the rows of several partitions into one result.
//!
//! Each partition returns its rows in the order of the query, a batch at a time. A heap holds the cursor of the next
//! row of each. Only one batch per partition is held. A batch of the result ends when one of these is used up, so the
//! next one is awaited only when it is needed.

use super::rows::{PartRows, PartialRows, RowsSummary};
use crate::control::Stats;
use crate::cursor::Cursor;
use crate::error::QueryError;
use crate::items::{Hits, Items, Order, Page};
use crate::sort::descending_of;
use meridian_model::{Batch, Invalid};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Rows of one partition, in the order of the query.
pub trait RowStream: Iterator<Item = Result<PartialRows, QueryError>> {
    /// The partition's summary, complete once its rows have ended.
    fn summary(&self) -> RowsSummary;

    /// Limits later batches to `events` events.
    fn at_most(&mut self, events: usize);

    /// Drops everything that can be read again, before a wait of unknown length. Returns the bytes still held.
    fn rest(&mut self) -> usize;
}

impl RowStream for PartRows {
    fn summary(&self) -> RowsSummary {
        PartRows::summary(self)
    }

    fn at_most(&mut self, events: usize) {
        PartRows::at_most(self, events);
    }

    fn rest(&mut self) -> usize {
        PartRows::rest(self)
    }
}

impl<S: RowStream + ?Sized> RowStream for Box<S> {
    fn summary(&self) -> RowsSummary {
        (**self).summary()
    }

    fn at_most(&mut self, events: usize) {
        (**self).at_most(events);
    }

    fn rest(&mut self) -> usize {
        (**self).rest()
    }
}

/// Max number of events of a batch.
const BATCH_ROWS: usize = 2048;

/// The rows of a page over several partitions: an iterator that blocks, like [`crate::Rows`].
pub struct MergedRows<S> {
    parts: Vec<Part<S>>,
    /// The next row of each partition with a current batch.
    heads: BinaryHeap<Reverse<Head>>,
    page: Page,
    by_distance: bool,
    /// A bit for each sort key: set if it descends.
    descending: u16,
    /// Max number of events of the next batch.
    at_once: usize,
    done: bool,
}

/// One partition.
struct Part<S> {
    rows: S,
    batch: Option<Batch>,
    /// Cursors of the batch's rows, starting with the one in the heap.
    cursors: std::vec::IntoIter<Cursor>,
    /// Row of the batch that is in the heap.
    at: usize,
    is_over: bool,
}

/// The next row of a partition.
struct Head {
    cursor: Cursor,
    part: usize,
    descending: u16,
}

impl Ord for Head {
    /// Ties are broken by partition, so that the order depends on nothing else.
    fn cmp(&self, other: &Self) -> Ordering {
        self.cursor.compare(&other.cursor, self.descending).then(self.part.cmp(&other.part))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl<S: RowStream> MergedRows<S> {
    /// Merges the rows of partitions, given in order.
    pub fn new(parts: impl IntoIterator<Item = S>, question: &Items) -> MergedRows<S> {
        let part = |rows| Part { rows, batch: None, cursors: Vec::new().into_iter(), at: 0, is_over: false };
        let descending = match &question.order {
            Order::Fields(keys) => descending_of(keys),
            _ => 0,
        };
        MergedRows {
            parts: parts.into_iter().map(part).collect(),
            heads: BinaryHeap::new(),
            page: Page::of(question),
            by_distance: matches!(question.order, Order::Near { .. }),
            descending,
            at_once: BATCH_ROWS,
            done: false,
        }
    }

    /// The cost so far, over all partitions.
    pub fn stats(&self) -> Stats {
        self.parts.iter().fold(Stats::default(), |mut all, part| {
            all.merge(&part.rows.summary().stats);
            all
        })
    }

    /// Total number of matches over all pages, if every partition knows it.
    pub fn number_matched(&self) -> Option<u64> {
        let total =
            self.parts.iter().try_fold(0u64, |all, part| Some(all.saturating_add(part.rows.summary().matched?)));
        // Unknown as soon as one partition does not know: a partial sum would be wrong.
        total.map(|total| self.page.at_most(total))
    }

    /// Start of the next page, once the iterator has ended: see [`crate::Rows::next_page`].
    pub fn next_page(&self) -> Option<&Cursor> {
        self.page.next()
    }

    /// Whether the page is complete, as far as known without searching for more events.
    pub fn is_over(&self) -> bool {
        self.done || self.page.room() == 0
    }

    /// Limits later batches to `events` events, for callers whose events are large.
    pub fn at_most(&mut self, events: usize) {
        self.at_once = events.clamp(1, BATCH_ROWS);
        self.parts.iter_mut().for_each(|part| part.rows.at_most(events));
    }

    /// Drops everything that can be read again, before a wait of unknown length. Returns the bytes still held.
    pub fn rest(&mut self) -> usize {
        let held = |part: &mut Part<S>| part.rows.rest() + part.batch.as_ref().map_or(0, Batch::bytes);
        self.parts.iter_mut().map(held).sum()
    }

    fn batch(&mut self) -> Result<Option<Hits>, QueryError> {
        let room = self.page.room();
        if room == 0 {
            let (parts, heads, descending) = (&mut self.parts, &mut self.heads, self.descending);
            self.page.look_ahead(|| {
                read_on(parts, heads, descending)?;
                Ok(!heads.is_empty())
            })?;
            return Ok(None);
        }
        // After an empty batch of a partition, the next one is requested at once.
        read_on(&mut self.parts, &mut self.heads, self.descending)?;
        let mut picks: Vec<(usize, usize)> = Vec::new();
        let mut cursors: Vec<Cursor> = Vec::new();
        while picks.len() < room.min(self.at_once)
            && let Some(Reverse(Head { cursor, part: number, descending })) = self.heads.pop()
        {
            let part = &mut self.parts[number];
            picks.push((number, part.at));
            cursors.push(cursor);
            part.at += 1;
            match part.cursors.next() {
                Some(cursor) => self.heads.push(Reverse(Head { cursor, part: number, descending })),
                // The next row of this partition is unknown, and may precede all current rows.
                None => break,
            }
        }
        let Some(last) = cursors.last().cloned() else { return Ok(None) };
        let batch = self.gather(&picks)?;
        if self.page.take(picks.len()) {
            self.page.ends_with(last);
        }
        let distance = |cursor: &Cursor| if let Cursor::Near { distance_m, .. } = cursor { *distance_m } else { 0.0 };
        let distances = self.by_distance.then(|| cursors.iter().map(distance).collect());
        Ok(Some(Hits { batch, seqs: cursors.iter().map(Cursor::seq).collect(), distances }))
    }

    /// The selected events, each by its partition and row.
    fn gather(&self, picks: &[(usize, usize)]) -> Result<Batch, QueryError> {
        let batch = |part: usize| self.parts.get(part).and_then(|part| part.batch.as_ref());
        let missing = || Invalid::new("a partition gave rows without a batch");
        let (first, from) = picks.first().copied().ok_or_else(missing)?;
        if picks.iter().all(|(part, _)| *part == first) {
            // All rows are from one partition: they are consecutive, and nothing is copied.
            return Ok(batch(first).ok_or_else(missing)?.slice(from, picks.len()));
        }
        // Only the partitions with a batch, in order.
        let mut numbers = vec![0; self.parts.len()];
        let mut batches = Vec::with_capacity(self.parts.len());
        for (part, number) in numbers.iter_mut().enumerate() {
            *number = batches.len();
            batches.extend(batch(part));
        }
        let picks: Vec<(usize, usize)> = picks.iter().map(|(part, row)| (numbers[*part], *row)).collect();
        Ok(Batch::interleave(&batches, &picks)?)
    }
}

/// Reads the next batch of each partition without a current one, and pushes its first row onto the heap.
fn read_on<S: RowStream>(
    parts: &mut [Part<S>],
    heads: &mut BinaryHeap<Reverse<Head>>,
    descending: u16,
) -> Result<(), QueryError> {
    for (number, part) in parts.iter_mut().enumerate() {
        // A partition's row in the heap is at `at`; a consumed batch has `at` at its end.
        let is_used_up = |part: &Part<S>| part.batch.as_ref().is_none_or(|batch| part.at >= batch.rows());
        while is_used_up(part) && !part.is_over {
            let Some(rows) = part.rows.next().transpose()? else {
                part.is_over = true;
                break;
            };
            let PartialRows { batch, cursors } = rows;
            if batch.rows() != cursors.len() {
                // A partition may be another process: its responses are validated like any input.
                return Err(Invalid::new("a partition gave rows without cursors").into());
            }
            (part.at, part.cursors, part.batch) = (0, cursors.into_iter(), Some(batch));
            heads.extend(part.cursors.next().map(|cursor| Reverse(Head { cursor, part: number, descending })));
        }
    }
    Ok(())
}

impl<S: RowStream> Iterator for MergedRows<S> {
    type Item = Result<Hits, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let result = self.batch().transpose();
        self.done = !matches!(result, Some(Ok(_)));
        result
    }
}
