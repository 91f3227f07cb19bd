//! Events written after a position, in order of writing, for a follower that was away.

use crate::collection::Collection;
use crate::error::{Problem, StoreError};
use crate::part::{CHUNK_ROWS, PartView};
use crate::snapshot::Snapshot;
use meridian_index::LEAF_ROWS;
use meridian_model::{Batch, Projection, Seq};
use std::ops::{Range, RangeInclusive};

/// Max events read at a time, and the number read first.
const EVENTS: usize = 16_384;
const EVENTS_FIRST: usize = 1_024;
/// Number read first if a byte size is set but the size of events is unknown.
const EVENTS_UNKNOWN: usize = 8;
/// Max events that are read in leaves; more are read in chunks. Pages of large events hold little more than a leaf.
const EVENTS_FEW: usize = 16;
/// Approximate bytes of events read at a time, estimated from the previous ones.
const BYTES: usize = 16 << 20;

/// Events of a collection written after one position and up to another, in order of their numbers. Events deleted,
/// replaced or expired since then are excluded.
#[derive(Debug)]
pub struct EventsSince {
    snapshot: Snapshot,
    /// Number, part and row of each event.
    found: Vec<(u64, u32, u32)>,
    given: usize,
    /// Number of events to read next.
    at_once: usize,
    /// Approximate bytes read at a time.
    bytes: usize,
    left_out: u64,
    /// Number up to which everything was found, or no longer exists.
    upto: u64,
}

/// Which events are kept if there are more than the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Newest,
    Oldest,
}

impl Collection {
    /// Returns the events written after position `after` and up to `upto` inclusive that still exist; in mode `latest`
    /// including the history. If there are more than `most`, returns the newest. Reads the numbers of all blocks that
    /// may hold such events. Holds at most twice `most` events and a block at a time.
    ///
    /// # Errors
    /// The disk's error, or [`StoreError::Corrupt`]. Known damage is not an error: see [`EventsSince::missing`].
    pub fn written_since(&self, after: u64, upto: u64, most: usize) -> Result<EventsSince, StoreError> {
        let numbers = Seq::end_of(after).0.saturating_add(1)..=Seq::end_of(upto).0;
        self.since(self.history(), numbers, most, Keep::Newest)
    }

    /// Returns the events written after the event `after` that still exist; in mode `latest` including the history. If
    /// there are more than `most`, returns the oldest: [`EventsSince::upto`] is where to continue. The cost is that of
    /// [`Collection::written_since`].
    ///
    /// # Errors
    /// Those of [`Collection::written_since`].
    pub fn written_after(&self, after: Seq, most: usize) -> Result<EventsSince, StoreError> {
        let snapshot = self.history();
        let numbers = after.0.saturating_add(1)..=snapshot.seq.0;
        self.since(snapshot, numbers, most.max(1), Keep::Oldest)
    }

    /// Returns the min number of any event that files or memory may still hold; without one, that of the next write.
    pub fn oldest(&self) -> Seq {
        let state = self.state();
        let oldest = state.history.iter().filter(|view| view.part.rows > 0).map(|view| Seq(view.part.seq_min)).min();
        oldest.unwrap_or(Seq::new(state.position + 1, 0))
    }

    fn since(
        &self,
        snapshot: Snapshot,
        numbers: RangeInclusive<u64>,
        most: usize,
        keep: Keep,
    ) -> Result<EventsSince, StoreError> {
        let upto = *numbers.end();
        let snapshot = snapshot.open_those(|part| part.seq_max >= *numbers.start())?;
        let mut since = EventsSince {
            snapshot,
            found: Vec::new(),
            given: 0,
            at_once: EVENTS_FIRST,
            bytes: BYTES,
            left_out: 0,
            upto,
        };
        let parts = since.snapshot.parts.clone();
        for (number, part) in parts.iter().enumerate() {
            for rows in part.blocks_of_numbers(&numbers) {
                let (seqs, seen) = (part.seqs(rows.clone())?, part.visible(rows.clone())?);
                let all = rows.zip(seqs).zip(seen.iter());
                let some = all.filter(|((_, seq), seen)| *seen && numbers.contains(seq) && *seq <= since.upto);
                since.found.extend(some.map(|((row, seq), _)| (seq, number as u32, row)));
                // Cut at twice the limit: a selection over that many is linear, so the whole pass stays linear too.
                if since.found.len() > most.saturating_mul(2) {
                    since.cut(most, keep);
                }
            }
        }
        since.cut(most, keep);
        // Up to twice as many were collected on the way.
        since.found.shrink_to_fit();
        since.found.sort_unstable();
        Ok(since)
    }
}

impl EventsSince {
    /// Drops events beyond the limit.
    fn cut(&mut self, most: usize, keep: Keep) {
        let over = self.found.len().saturating_sub(most);
        if over == 0 {
            return;
        }
        match keep {
            Keep::Newest => {
                self.found.select_nth_unstable(over - 1);
                self.found.drain(..over);
            }
            Keep::Oldest => {
                let (_, last, _) = self.found.select_nth_unstable(most - 1);
                // Later events are skipped from now on: without a contiguous prefix the caller could not resume at a
                // number.
                self.upto = last.0;
                self.found.truncate(most);
            }
        }
        self.left_out += over as u64;
    }

    /// Returns the same events after the first `left_out` ones.
    #[must_use]
    pub fn after_others(self, left_out: u64) -> EventsSince {
        EventsSince { left_out: self.left_out + left_out, ..self }
    }

    /// Sets the approximate bytes of events to read at a time, estimated from the previous ones.
    pub fn in_steps_of(mut self, bytes: usize) -> EventsSince {
        self.bytes = bytes;
        self.at_once = self.at_once.min(EVENTS_UNKNOWN);
        self
    }

    /// Marks that the reader waits for something other than the store, so that maintenance need not yield to it.
    pub fn rest(&mut self) {
        self.snapshot.rest();
    }

    /// Returns the number up to which a reader of all of this has everything that still exists.
    pub fn upto(&self) -> Seq {
        Seq(self.upto)
    }

    /// Returns the next events with all their columns, and their numbers; `None` at the end.
    ///
    /// # Errors
    /// The disk's error, or [`StoreError::Corrupt`]: then no more can be read.
    pub fn read(&mut self) -> Result<Option<(Batch, Vec<Seq>)>, StoreError> {
        let rest = &self.found[self.given..];
        let next = &rest[..rest.len().min(self.at_once)];
        if next.is_empty() {
            return Ok(None);
        }
        // Block by block, so that each is read once, and only the wanted rows stay.
        let block_rows = if next.len() <= EVENTS_FEW { LEAF_ROWS as u32 } else { CHUNK_ROWS };
        let block = |i: usize| (next[i].1, next[i].2 / block_rows);
        let mut by_row: Vec<usize> = (0..next.len()).collect();
        by_row.sort_unstable_by_key(|i| (next[*i].1, next[*i].2));
        let (mut batches, mut picks) = (Vec::new(), vec![(0, 0); next.len()]);
        for same in by_row.chunk_by(|a, b| block(*a) == block(*b)) {
            let (part, number) = block(same[0]);
            let (part, from) = (&self.snapshot.parts[part as usize], number * block_rows);
            let rows: Vec<u32> = same.iter().map(|i| next[*i].2 - from).collect();
            let whole = part.read(from..from.saturating_add(block_rows), &Projection::all(part.layout()))?;
            for (row, i) in same.iter().enumerate() {
                picks[*i] = (batches.len(), row);
            }
            batches.push(whole.take(&rows));
        }
        let batch = Batch::interleave(&batches.iter().collect::<Vec<_>>(), &picks)?;
        let seqs = next.iter().map(|(seq, _, _)| Seq(*seq)).collect();
        self.given += picks.len();
        // Sized by the last step, because the width of events is unknown before they are read.
        self.at_once = (self.bytes / (batch.bytes() / picks.len()).max(1)).clamp(1, EVENTS);
        Ok(Some((batch, seqs)))
    }

    /// Returns the bytes of the list of numbers.
    pub fn bytes(&self) -> usize {
        self.found.capacity() * size_of::<(u64, u32, u32)>()
    }

    /// Returns the number of further events beyond the limit: older ones for [`Collection::written_since`], newer ones
    /// for [`Collection::written_after`], as far as they were read.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the damaged parts of the collection that are missing: they may have held events.
    pub fn missing(&self) -> &[Problem] {
        &self.snapshot.missing
    }
}

impl PartView {
    /// Returns the blocks that may hold events with these numbers.
    fn blocks_of_numbers(&self, numbers: &RangeInclusive<u64>) -> impl Iterator<Item = Range<u32>> {
        let part = &self.part;
        let first = *numbers.start();
        let any = part.seq_max >= first && part.seq_min <= *numbers.end();
        let blocks = if any { part.rows.div_ceil(CHUNK_ROWS) } else { 0 };
        let may = move |block: &u32| part.chunk_seq_max.get(*block as usize).is_none_or(|max| *max >= first);
        (0..blocks).filter(may).map(move |block| block * CHUNK_ROWS..((block + 1) * CHUNK_ROWS).min(part.rows))
    }
}
