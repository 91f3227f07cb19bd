//! Staging: what a group of writes will do, worked out before any of it is made durable.
//!
//! Each write is checked against the collection and against the writes before it in the group, in order, and gets its
//! position. Nothing that readers see changes here; when the log has the group, the stage is applied as a whole.

use crate::dead::DeadRows;
use crate::error::{StoreError, WriteError};
use crate::keys::{KeyRows, hash};
use crate::log::Kind;
use crate::part::{Context, Part};
use crate::run;
use meridian_index::{Grid, Key, sort_order};
use meridian_model::{Batch, IdRole, Invalid, Layout, Schema, Seq};
use std::collections::HashMap;
use std::sync::Arc;

/// Most ids or mistakes named in one error.
pub(crate) const NAMED_MAX: usize = 100;

/// A part and its dead rows, as the newest snapshot has them.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) part: Arc<Part>,
    pub(crate) dead: Arc<DeadRows>,
}

/// What a write wants, checked as far as that goes without the collection.
#[derive(Debug)]
pub(crate) enum Change {
    /// Adds events.
    Write(Events),
    /// Kills the events with these ids.
    DeleteIds(Vec<String>),
    /// Kills events by number; the id finds them where ids are given.
    DeleteRows(Vec<Target>),
}

/// Events ready to be stored.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) batch: Batch,
    pub(crate) keys: Vec<Key>,
    /// Given ids by hash; empty where ids are made.
    pub(crate) ids: KeyRows,
    /// As the log holds them; empty while the log is replayed and in collections without log.
    pub(crate) body: Vec<u8>,
    pub(crate) replace: bool,
}

/// An event to be killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) seq: u64,
    /// Empty where ids are made.
    pub(crate) id: String,
}

impl Events {
    /// Sorts and hashes what a batch brings, and finds ids that stand in it twice.
    pub(crate) fn of(context: &Context, batch: Batch, replace: bool) -> Result<Events, Vec<Invalid>> {
        let batch = widen(batch, &context.schema, &context.layout).map_err(|e| vec![e])?;
        let mut ids = KeyRows::default();
        if context.rule.role == IdRole::Given {
            let column = batch.ids().ok_or_else(|| vec![Invalid::new("the batch was read without its ids")])?;
            ids = KeyRows::of(column.iter().map(|id| hash(context.rule.seed, id.unwrap_or("").as_bytes())));
            let twice = twice_in(&ids, column, &context.schema.id_name);
            if !twice.is_empty() {
                return Err(twice);
            }
        }
        let keys = Grid::of(&context.schema).keys(&batch);
        Ok(Events { batch, keys, ids, body: Vec::new(), replace })
    }
}

/// Ids that stand in a batch more than once, each blamed on the event that repeats it.
fn twice_in(ids: &KeyRows, column: &arrow_array::StringArray, id_name: &str) -> Vec<Invalid> {
    let mut twice = Vec::new();
    let mut from = 0;
    while from < ids.keys.len() {
        let same = ids.keys[from..].iter().take_while(|k| **k == ids.keys[from]).count();
        for a in from..from + same {
            let row = ids.rows[a] as usize;
            // Rows of one hash ascend, so an earlier one is the first use.
            let first = (from..a).map(|b| ids.rows[b] as usize).find(|b| column.value(*b) == column.value(row));
            if let Some(first) = first {
                twice.push((row, first));
            }
        }
        from += same;
    }
    twice.sort_unstable();
    let name = |(row, first): &(usize, usize)| {
        let id = meridian_model::builder::shorten(column.value(*row));
        Invalid::field(id_name, format!("the id {id:?} is also that of event {}: an id may stand once", first + 1))
            .at_line(*row as u64 + 1)
    };
    twice.iter().take(NAMED_MAX).map(name).collect()
}

/// Brings a batch to the collection's schema: fields added since are null.
pub(crate) fn widen(batch: Batch, schema: &Arc<Schema>, layout: &Arc<Layout>) -> Result<Batch, Invalid> {
    let have = &batch.layout().columns;
    let fits = have.len() <= layout.columns.len()
        && have.iter().zip(&layout.columns).all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type());
    if !fits {
        return Err(Invalid::new("the batch was read for another schema than the collection has"));
    }
    let rows = batch.rows();
    let mut columns = Vec::with_capacity(layout.columns.len());
    for (i, field) in layout.columns.iter().enumerate() {
        columns.push(Some(match batch.columns().get(i) {
            Some(Some(column)) => column.clone(),
            Some(None) => return Err(Invalid::field(field.name(), "the batch was read without this column")),
            None => arrow_array::new_null_array(field.data_type(), rows),
        }));
    }
    Batch::new(schema.clone(), layout.clone(), rows, columns)
}

/// Where a live event was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// In a part of the collection.
    Part { entry: usize, row: u32 },
    /// In an earlier write of the group.
    Staged { batch: usize, row: u32 },
}

#[derive(Debug)]
struct Staged {
    events: Events,
    position: u64,
    /// Rows that later writes of the group killed.
    dead: HashMap<u32, u64>,
}

/// What a staged write comes to once the group is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) position: u64,
    pub(crate) written: u64,
    /// Events replaced or deleted.
    pub(crate) killed: u64,
}

/// A group of writes, being worked out.
pub(crate) struct Stage<'a> {
    entries: &'a [Entry],
    context: &'a Context,
    /// Changed dead rows by entry.
    dead: HashMap<usize, DeadRows>,
    staged: Vec<Staged>,
    /// Position of the next write.
    pub(crate) next: u64,
}

/// A stage worked out to the end.
pub(crate) struct Staging {
    /// Changed dead rows by entry.
    pub(crate) dead: HashMap<usize, DeadRows>,
    /// The memory tree of the new events, if there are any.
    pub(crate) run: Option<Entry>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(entries: &'a [Entry], context: &'a Context, next: u64) -> Self {
        Stage { entries, context, dead: HashMap::new(), staged: Vec::new(), next }
    }

    /// Adds events at the next position.
    pub(crate) fn write(&mut self, mut events: Events) -> Result<Outcome, WriteError> {
        if events.batch.columns().len() != self.context.layout.columns.len() {
            // Fields were added while the write waited.
            let widened = widen(events.batch, &self.context.schema, &self.context.layout);
            events.batch = widened.map_err(|e| WriteError::Invalid(vec![e]))?;
        }
        let rows = events.batch.rows();
        let position = self.next;
        let mut killed = Vec::new();
        if let (IdRole::Given, Some(ids)) = (self.context.rule.role, events.batch.ids()) {
            let mut there = Vec::new();
            for (key, row) in events.ids.keys.iter().zip(&events.ids.rows) {
                let id = ids.value(*row as usize);
                if let Some(place) = self.find(*key, id, None).map_err(failed)? {
                    there.push((*row, place));
                }
            }
            if !there.is_empty() && !events.replace {
                there.sort_unstable_by_key(|(row, _)| *row);
                let named = there.iter().take(NAMED_MAX).map(|(row, _)| ids.value(*row as usize).to_owned());
                return Err(WriteError::Conflict { ids: named.collect(), total: there.len() });
            }
            killed = there;
        }
        for (row, place) in &killed {
            self.kill(*place, Seq::new(position, *row as usize).0);
        }
        self.staged.push(Staged { events, position, dead: HashMap::new() });
        self.next += 1;
        Ok(Outcome { position, written: rows as u64, killed: killed.len() as u64 })
    }

    /// The live events that these ids name.
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
        targets.dedup();
        Ok(targets)
    }

    /// Which of the targets are alive.
    pub(crate) fn alive(&self, targets: Vec<Target>) -> Result<Vec<Target>, StoreError> {
        let mut alive = Vec::new();
        for target in targets {
            if self.find_target(&target)?.is_some() {
                alive.push(target);
            }
        }
        Ok(alive)
    }

    /// Kills events at the next position; those that are gone already do not count.
    pub(crate) fn delete(&mut self, targets: &[Target]) -> Result<Outcome, StoreError> {
        let position = self.next;
        let mut places = Vec::new();
        for target in targets {
            places.extend(self.find_target(target)?);
        }
        let mut killed = 0;
        for place in places {
            killed += u64::from(self.kill(place, Seq::new(position, 0).0));
        }
        self.next += 1;
        Ok(Outcome { position, written: 0, killed })
    }

    fn find_target(&self, target: &Target) -> Result<Option<Place>, StoreError> {
        let key = match self.context.rule.role {
            IdRole::Given => hash(self.context.rule.seed, target.id.as_bytes()),
            IdRole::Made => target.seq,
        };
        self.find(key, &target.id, Some(target.seq))
    }

    /// The live event with this key and id, and, if one is asked for, with this number.
    fn find(&self, key: u64, id: &str, seq: Option<u64>) -> Result<Option<Place>, StoreError> {
        let rule = self.context.rule;
        for (batch, staged) in self.staged.iter().enumerate().rev() {
            let rows: Vec<u32> = match (rule.role, staged.events.batch.ids()) {
                (IdRole::Given, Some(ids)) => {
                    let rows = staged.events.ids.rows_of(key).iter().copied();
                    rows.filter(|row| ids.value(*row as usize) == id).collect()
                }
                _ => {
                    let ordinal = Seq(key).0 & 0xff_ffff;
                    let here = Seq(key).position() == staged.position && ordinal < staged.events.batch.rows() as u64;
                    here.then_some(ordinal as u32).into_iter().collect()
                }
            };
            for row in rows {
                let fits = seq.is_none_or(|s| s == Seq::new(staged.position, row as usize).0);
                if fits && !staged.dead.contains_key(&row) {
                    return Ok(Some(Place::Staged { batch, row }));
                }
            }
        }
        // Newest first: an id that is replaced again and again is found in the youngest run.
        for (entry, e) in self.entries.iter().enumerate().rev() {
            for (row, found) in e.part.find_key(rule, &self.context.layout, key, id)? {
                let dead = self.dead.get(&entry).unwrap_or(&e.dead);
                if seq.is_none_or(|s| s == found) && dead.death(row).is_none() {
                    return Ok(Some(Place::Part { entry, row }));
                }
            }
        }
        Ok(None)
    }

    fn seq_at(&self, place: Place) -> Result<u64, StoreError> {
        match place {
            Place::Staged { batch, row } => Ok(Seq::new(self.staged[batch].position, row as usize).0),
            Place::Part { entry, row } => {
                Ok(self.entries[entry].part.seqs(row..row + 1)?.first().copied().unwrap_or(0))
            }
        }
    }

    fn kill(&mut self, place: Place, seq: u64) -> bool {
        match place {
            Place::Part { entry, row } => {
                let entries = self.entries;
                self.dead.entry(entry).or_insert_with(|| entries[entry].dead.as_ref().clone()).kill(row, seq)
            }
            Place::Staged { batch, row } => match self.staged[batch].dead.entry(row) {
                std::collections::hash_map::Entry::Occupied(_) => false,
                std::collections::hash_map::Entry::Vacant(slot) => {
                    slot.insert(seq);
                    true
                }
            },
        }
    }

    /// Bytes of events staged so far.
    pub(crate) fn bytes(&self) -> usize {
        self.staged.iter().map(|s| s.events.batch.bytes()).sum()
    }

    /// Body of the log record of the events staged last.
    pub(crate) fn take_body(&mut self) -> Vec<u8> {
        self.staged.last_mut().map_or_else(Vec::new, |s| std::mem::take(&mut s.events.body))
    }

    /// Sorts the new events into one memory tree.
    pub(crate) fn finish(self, number: u64) -> Result<Staging, StoreError> {
        let rows: usize = self.staged.iter().map(|s| s.events.batch.rows()).sum();
        if rows == 0 {
            return Ok(Staging { dead: self.dead, run: None });
        }
        let batches: Vec<Batch> = self.staged.iter().map(|s| s.events.batch.clone()).collect();
        let batch = Batch::concat(&batches)?;
        let mut keys = Vec::with_capacity(rows);
        let mut seqs = Vec::with_capacity(rows);
        for staged in &self.staged {
            keys.extend_from_slice(&staged.events.keys);
            seqs.extend(run::seqs_of(staged.position, staged.events.batch.rows()));
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
        let mut dead = DeadRows::default();
        if self.staged.iter().any(|s| !s.dead.is_empty()) {
            let mut deaths = HashMap::new();
            let mut first = 0;
            for staged in &self.staged {
                deaths.extend(staged.dead.iter().map(|(row, seq)| (first + row, *seq)));
                first += staged.events.batch.rows() as u32;
            }
            for (place, row) in order.iter().enumerate() {
                if let Some(seq) = deaths.get(row) {
                    dead.kill(place as u32, *seq);
                }
            }
        }
        let part = run::build(number, batch, keys, seqs)?;
        Ok(Staging { dead: self.dead, run: Some(Entry { part: Arc::new(part), dead: Arc::new(dead) }) })
    }
}

fn failed(error: StoreError) -> WriteError {
    WriteError::Refused(format!("whether its ids are free cannot be seen: {error}"))
}

/// The kind of log record that a write of events makes.
pub(crate) fn kind_of(events: &Events) -> Kind {
    if events.replace { Kind::Replace } else { Kind::Write }
}
