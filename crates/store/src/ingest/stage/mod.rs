//! Staging: the effect of a group of writes, computed before any of it is durable.
//!
//! Each write is checked against the collection and the earlier writes of the group, in order, and gets its position.
//! Nothing visible to readers changes here; once the log has the group, the stage is applied as a whole.

mod events;
mod find;
mod latest;
pub(crate) mod newest;

pub(crate) use events::{Events, NAMED_MAX, Target, kind_of};
pub(crate) use newest::RowLocation;

use self::newest::NewestCache;
use crate::error::{StoreError, WriteError};
use crate::expiry::{Expiry, expired_rows};
use crate::part::dead::DeadRows;
use crate::part::{Context, Entry, Part};
use meridian_index::sort_order;
use meridian_model::{Batch, IdRole, Seq};
use std::collections::HashMap;
use std::sync::Arc;

/// A requested change, checked as far as possible without the collection.
#[derive(Debug)]
pub(crate) enum Change {
    /// Adds events.
    Write(Events),
    /// Kills the events with these ids.
    DeleteIds(Vec<String>),
    /// Kills events by number; ids, if the client supplied any, locate them.
    DeleteRows(Vec<Target>),
    /// Kills the events past the retention.
    Expire(Expiry),
}

#[derive(Debug)]
pub(crate) struct StagedWrite {
    pub(crate) events: Events,
    pub(crate) position: u64,
    /// Rows that later writes of the group killed.
    pub(crate) dead: DeadRows,
    /// Like [`Entry::hidden`].
    pub(crate) hidden: DeadRows,
}

/// The outcome of a staged write once the group is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) position: u64,
    pub(crate) written: u64,
    /// Events replaced or deleted.
    pub(crate) killed: u64,
}

/// A group of writes, being staged.
pub(crate) struct Stage<'a> {
    pub(crate) entries: &'a [Entry],
    pub(crate) context: &'a Arc<Context>,
    /// Changed dead rows by entry.
    pub(crate) dead: HashMap<usize, DeadRows>,
    /// Changed hidden rows by entry.
    pub(crate) hidden: HashMap<usize, DeadRows>,
    pub(crate) staged: Vec<StagedWrite>,
    /// Objects looked up by writes of the group.
    pub(crate) newest: NewestCache,
    /// Position of the next write.
    pub(crate) next: u64,
}

/// A complete stage.
pub(crate) struct StagedGroup {
    /// Changed dead rows by entry.
    dead: HashMap<usize, DeadRows>,
    /// Changed hidden rows by entry.
    hidden: HashMap<usize, DeadRows>,
    /// The memory tree of the new events, if there are any.
    run: Option<Entry>,
}

impl StagedGroup {
    /// Applies the stage to the entries that it was computed from.
    pub(crate) fn apply(self, entries: &mut Vec<Entry>) {
        for (entry, dead) in self.dead {
            entries[entry].dead = Arc::new(dead);
        }
        for (entry, hidden) in self.hidden {
            entries[entry].hidden = Arc::new(hidden);
        }
        entries.extend(self.run);
    }
}

impl<'a> Stage<'a> {
    pub(crate) fn new(entries: &'a [Entry], context: &'a Arc<Context>, next: u64) -> Self {
        Stage {
            entries,
            context,
            dead: HashMap::new(),
            hidden: HashMap::new(),
            staged: Vec::new(),
            newest: NewestCache::default(),
            next,
        }
    }

    /// Adds events at the next position.
    pub(crate) fn write(&mut self, mut events: Events) -> Result<Outcome, WriteError> {
        if events.batch.columns().len() != self.context.layout.columns.len() {
            // Fields were added while the write waited.
            events.batch = self.context.widen(events.batch).map_err(|e| WriteError::Invalid(vec![e]))?;
        }
        let rows = events.batch.rows();
        let position = self.next;
        let mut killed = Vec::new();
        if let (IdRole::Given, Some(ids)) = (self.context.rule.role, events.batch.ids()) {
            let mut there = self.find_all(&events.ids, ids).map_err(failed)?;
            // A conflict refuses the write before it gets a position, so the group continues without a gap.
            if !there.is_empty() && !events.replace {
                there.sort_unstable_by_key(|(row, _)| *row);
                let named = there.iter().take(NAMED_MAX).map(|(row, _)| ids.value(*row as usize).to_owned());
                return Err(WriteError::Conflict { ids: named.collect(), total: there.len() });
            }
            if let Some(only) = events.only {
                let found = there.iter().map(|(_, place)| self.seq_at(*place)).collect::<Result<Vec<_>, _>>();
                // Exactly one row with exactly this number: anything else means that the event changed since the client
                // read it.
                if found.map_err(failed)? != [only] {
                    return Err(WriteError::Changed);
                }
            }
            killed = there;
        }
        // What each object shows before anything dies: the view of mode `latest` changes by the difference.
        let objects = self.objects_before(killed.iter().map(|(_, place)| *place), Some(&events)).map_err(failed)?;
        for (row, place) in &killed {
            self.kill(*place, self.seq_of(position, *row));
        }
        self.staged.push(StagedWrite { events, position, dead: DeadRows::default(), hidden: DeadRows::default() });
        // The position is taken even if no row is visible later: positions of a log have no gaps.
        self.next += 1;
        self.show_newest(objects, position).map_err(failed)?;
        Ok(Outcome { position, written: rows as u64, killed: killed.len() as u64 })
    }

    /// Returns the live events with these ids.
    pub(crate) fn targets(&self, ids: &[String]) -> Result<Vec<Target>, StoreError> {
        let mut targets = Vec::new();
        for id in ids {
            let Some(key) = self.context.rule.key_of(id) else { continue };
            if let Some(place) = self.find(key, id, None)? {
                let id = if self.context.rule.role == IdRole::Given { id.clone() } else { String::new() };
                targets.push(Target { seq: self.seq_at(place)?, id });
            }
        }
        targets.sort_unstable_by_key(|t| t.seq);
        // A client may name an id twice, and the record's count must match the number of rows killed on replay.
        targets.dedup();
        Ok(targets)
    }

    /// Returns the targets that are alive.
    pub(crate) fn alive(&self, targets: Vec<Target>) -> Result<Vec<Target>, StoreError> {
        let mut alive = Vec::new();
        for target in targets {
            if self.find_target(&target)?.is_some() {
                alive.push(target);
            }
        }
        Ok(alive)
    }

    /// Kills events at the next position; dead ones do not count.
    pub(crate) fn delete(&mut self, targets: &[Target]) -> Result<Outcome, StoreError> {
        let position = self.next;
        let mut places = Vec::new();
        for target in targets {
            places.extend(self.find_target(target)?);
        }
        let objects = self.objects_before(places.iter().copied(), None)?;
        let mut killed = 0;
        for place in places {
            killed += u64::from(self.kill(place, Seq::new(position, 0).0));
        }
        self.next += 1;
        self.show_newest(objects, position)?;
        Ok(Outcome { position, written: 0, killed })
    }

    /// Kills the events that ended before an instant, at the next position.
    pub(crate) fn expire(&mut self, expiry: &Expiry) -> Result<Outcome, StoreError> {
        let position = self.next;
        let death = Seq::new(position, 0).0;
        let mut killed = 0;
        for (index, entry) in self.entries.iter().enumerate() {
            let rows = match expiry.found.get(&entry.part.number) {
                // The expiry job searched outside the lock; parts that are new since then are searched here.
                Some(rows) => rows.clone(),
                None => expired_rows(self.context, &entry.part, &entry.dead, expiry.before)?,
            };
            if rows.is_empty() {
                continue;
            }
            // An object's newest event expires last, so no older event becomes visible.
            if self.is_latest() {
                let hidden = self.hidden.entry(index).or_insert_with(|| entry.hidden.as_ref().clone());
                hidden.kill_all(rows.clone(), death);
            }
            killed += self.dead.entry(index).or_insert_with(|| entry.dead.as_ref().clone()).kill_all(rows, death);
        }
        let is_latest = self.is_latest();
        for staged in &mut self.staged {
            for row in 0..staged.events.batch.rows() {
                if staged.events.batch.interval(row).1 < expiry.before && staged.dead.kill(row as u32, death) {
                    killed += 1;
                    if is_latest {
                        staged.hidden.kill(row as u32, death);
                    }
                }
            }
        }
        // The cache holds objects whose newest event may just have expired; the next write looks them up again.
        self.newest = NewestCache::default();
        self.next += 1;
        Ok(Outcome { position, written: 0, killed })
    }

    /// Returns the number of the event in a row of the batch at `position`.
    pub(super) fn seq_of(&self, position: u64, row: u32) -> u64 {
        self.context.numbering.seq(position, row as usize).0
    }

    fn kill(&mut self, place: RowLocation, seq: u64) -> bool {
        if self.is_latest() {
            self.hide(place, seq);
        }
        match place {
            RowLocation::Part { entry, row } => {
                let entries = self.entries;
                self.dead.entry(entry).or_insert_with(|| entries[entry].dead.as_ref().clone()).kill(row, seq)
            }
            RowLocation::Staged { batch, row } => self.staged[batch].dead.kill(row, seq),
        }
    }

    /// Returns the events staged so far: the position of each write, and its batch.
    pub(crate) fn written(&self) -> Vec<(u64, Batch)> {
        self.staged.iter().map(|s| (s.position, s.events.batch.clone())).collect()
    }

    /// Takes the body of the log record for the events staged last.
    pub(crate) fn take_body(&mut self) -> Vec<u8> {
        self.staged.last_mut().map_or_else(Vec::new, |s| std::mem::take(&mut s.events.body))
    }

    /// Sorts the new events into one memory tree.
    pub(crate) fn finish(self, number: u64) -> Result<StagedGroup, StoreError> {
        let rows: usize = self.staged.iter().map(|s| s.events.batch.rows()).sum();
        if rows == 0 {
            return Ok(StagedGroup { dead: self.dead, hidden: self.hidden, run: None });
        }
        let batches: Vec<Batch> = self.staged.iter().map(|s| s.events.batch.clone()).collect();
        let batch = Batch::concat(&batches)?;
        let mut keys = Vec::with_capacity(rows);
        let mut seqs = Vec::with_capacity(rows);
        for staged in &self.staged {
            keys.extend_from_slice(&staged.events.keys);
            seqs.extend((0..staged.events.batch.rows() as u32).map(|row| self.seq_of(staged.position, row)));
        }
        let order = sort_order(&keys, &seqs);
        let sorted = |row: &u32| *row as usize;
        let (batch, keys, seqs) = if order.is_sorted() {
            (batch, keys, seqs)
        } else {
            let keys = order.iter().map(|row| keys[sorted(row)]).collect();
            let seqs = order.iter().map(|row| seqs[sorted(row)]).collect();
            (batch.take(&order), keys, seqs)
        };
        // Rows that later writes of the group killed are dead from the start, at the number of the write that killed
        // them.
        let (dead, hidden) = self.marks_of(&order);
        let part = Part::of_rows(number, batch, keys, seqs)?;
        let run = Entry::of(part, dead, hidden);
        Ok(StagedGroup { dead: self.dead, hidden: self.hidden, run: Some(run) })
    }

    /// Returns the dead and hidden rows of the new memory tree, whose rows are the staged ones in this order.
    fn marks_of(&self, order: &[u32]) -> (DeadRows, DeadRows) {
        if self.staged.iter().all(|s| s.dead.is_empty() && s.hidden.is_empty()) {
            return (DeadRows::default(), DeadRows::default());
        }
        let mut places = vec![0; order.len()];
        for (place, row) in order.iter().enumerate() {
            // The inverse of `order`: from the row in its batch to the row in the tree.
            places[*row as usize] = place as u32;
        }
        let mut first = 0;
        let maps: Vec<Vec<u32>> = self
            .staged
            .iter()
            .map(|staged| {
                let rows = first..first + staged.events.batch.rows();
                first = rows.end;
                places[rows].to_vec()
            })
            .collect();
        let rows = [order.len() as u32];
        let dead = DeadRows::moved(self.staged.iter().map(|s| &s.dead), &maps, &rows).pop();
        let hidden = DeadRows::moved(self.staged.iter().map(|s| &s.hidden), &maps, &rows).pop();
        (dead.unwrap_or_default(), hidden.unwrap_or_default())
    }
}

fn failed(error: StoreError) -> WriteError {
    WriteError::Refused(format!("whether its ids are free cannot be seen: {error}"))
}
