//! Mode `latest`: which event of each object the collection shows.
//!
//! The whole history is kept. Besides the dead rows there is a set of rows that are hidden because their object has a
//! newer event. The newest is the one that ends last by its own time (of two, the one written last), so a late event
//! never wins. When it is deleted, the previous one is shown again. Snapshots treat hiding like a death that lasts from
//! one write until another. Hidden rows follow from the events alone, so a replay of the log recomputes them.

use super::Stage;
use super::events::Events;
use super::newest::{Newest, Object, RowLocation, TouchedObjects, object_in};
use crate::error::StoreError;
use crate::part::CacheFill;
use crate::part::dead::DeadRows;
use crate::part::objects::{ObjectEntry, object_of};
use meridian_model::{FieldColumn, FieldType, Mode, Seq};
use std::collections::HashSet;

impl Stage<'_> {
    pub(crate) fn is_latest(&self) -> bool {
        self.context.schema.mode == Mode::Latest
    }

    /// Returns the objects whose newest event a write may change: those of the rows it kills and of the events it adds.
    pub(crate) fn objects_before(
        &mut self,
        killed: impl Iterator<Item = RowLocation>,
        events: Option<&Events>,
    ) -> Result<TouchedObjects, StoreError> {
        let mut touched = TouchedObjects::new();
        if !self.is_latest() {
            return Ok(touched);
        }
        // The death of a hidden row cannot change which event is shown, so its object is not looked up.
        for place in killed.filter(|place| !self.is_hidden(*place)).collect::<Vec<_>>() {
            if let Some((object, hash)) = self.object_at(place)? {
                touched.insert(object, (hash, None));
            }
        }
        let column = events.and_then(|e| Some((e, e.batch.field(e.batch.schema().object?)?)));
        if let Some((events, column)) = column {
            // Entries are sorted by object: each is visited once.
            for entry in &events.objects.entries {
                if let Some(object) = object_in(&column, entry.row as usize)
                    && !touched.contains_key(&object)
                {
                    touched.insert(object, (entry.object, None));
                }
            }
        }
        for (object, (hash, before)) in &mut touched {
            *before = match self.newest.get(object) {
                // Within a group an object may be written many times; the parts are searched for it once.
                Some(known) => *known,
                None => self.newest_of(*hash, object)?,
            };
        }
        Ok(touched)
    }

    /// Shows the newest event of each object touched by a write at `position`, and hides the others.
    pub(crate) fn show_newest(&mut self, touched: TouchedObjects, position: u64) -> Result<(), StoreError> {
        if touched.is_empty() {
            return Ok(());
        }
        let at = Seq::new(position, 0).0;
        // New events that are older than another event of their object.
        let mut late = HashSet::new();
        if let Some(batch) = self.staged.len().checked_sub(1).filter(|b| self.staged[*b].position == position) {
            let rows =
                self.staged[batch].events.objects.entries.iter().map(|e| RowLocation::Staged { batch, row: e.row });
            late.extend(rows);
        }
        for (object, (hash, before)) in touched {
            let after = self.newest_of(hash, &object)?;
            if let Some(after) = &after {
                late.remove(&after.place);
            }
            // Hidden at this position, not before: older snapshots still show it.
            if let Some(before) = before.filter(|before| Some(before.place) != after.map(|a| a.place)) {
                self.hide(before.place, at);
            }
            if let Some(after) = after.filter(|after| self.is_hidden(after.place)) {
                self.show(after.place, at);
            }
            self.newest.insert(object, after);
        }
        // Late events are hidden from birth: they are history only.
        late.into_iter().for_each(|place| self.hide(place, at));
        Ok(())
    }

    /// Returns the newest live event of an object, including staged ones.
    fn newest_of(&self, hash: u64, object: &Object) -> Result<Option<Newest>, StoreError> {
        let mut best: Option<Newest> = None;
        let better = |best: &Option<Newest>, time: i64, seq: u64| best.is_none_or(|b| (b.time, b.seq) < (time, seq));
        for (batch, staged) in self.staged.iter().enumerate().rev() {
            let column = self.context.schema.object.and_then(|field| staged.events.batch.field(field));
            let Some(column) = column else { continue };
            let entries = staged.events.objects.within(hash, &(i64::MIN..=i64::MAX)).iter().rev();
            let alive = |e: &&ObjectEntry| staged.dead.death(e.row).is_none();
            let same = |e: &&ObjectEntry| object_in(&column, e.row as usize).as_ref() == Some(object);
            if let Some(e) = entries.filter(alive).find(same) {
                let seq = self.seq_of(staged.position, e.row);
                if better(&best, e.time, seq) {
                    best = Some(Newest { time: e.time, seq, place: RowLocation::Staged { batch, row: e.row } });
                }
            }
        }
        for (index, entry) in self.entries.iter().enumerate().rev() {
            // Except for late events, the newest parts have it, and older parts need not be read.
            if best.is_some_and(|b| entry.part.forest.bounds().end < b.time) {
                continue;
            }
            let dead = self.dead.get(&index).unwrap_or(&entry.dead);
            let mut failed = None;
            let found = entry.part.newest_of_object(self.context.rule, hash, |e| {
                dead.death(e.row).is_none()
                    && match self.object_at(RowLocation::Part { entry: index, row: e.row }) {
                        Ok(found) => found.is_some_and(|(found, _)| found == *object),
                        Err(error) => {
                            // The search's predicate cannot return an error. Accepting the entry ends the search, and
                            // the error is returned below.
                            failed = Some(error);
                            true
                        }
                    }
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            if let Some(e) = found.filter(|e| better(&best, e.time, e.seq)) {
                best = Some(Newest { time: e.time, seq: e.seq, place: RowLocation::Part { entry: index, row: e.row } });
            }
        }
        Ok(best)
    }

    /// Returns the object of an event, and its hash.
    fn object_at(&self, place: RowLocation) -> Result<Option<(Object, u64)>, StoreError> {
        let Some(field) = self.context.schema.object else { return Ok(None) };
        let seed = self.context.rule.seed;
        let both =
            |column: &FieldColumn<'_>, row: usize| Some((object_in(column, row)?, object_of(seed, column, row)?));
        match place {
            RowLocation::Staged { batch, row } => {
                let column = self.staged[batch].events.batch.field(field);
                Ok(column.and_then(|column| both(&column, row as usize)))
            }
            RowLocation::Part { entry, row } => {
                let column = self.context.layout.field(field);
                let Some(array) = self.entries[entry].part.column(column, row..row + 1, CacheFill::Keep)? else {
                    return Ok(None);
                };
                use arrow_array::cast::AsArray;
                let column = match self.context.schema.fields[field].kind {
                    FieldType::Int => array.as_primitive_opt::<arrow_array::types::Int64Type>().map(FieldColumn::Int),
                    _ => array.as_string_opt::<i32>().map(FieldColumn::Text),
                };
                Ok(column.and_then(|column| both(&column, 0)))
            }
        }
    }

    fn is_hidden(&self, place: RowLocation) -> bool {
        match place {
            RowLocation::Part { entry, row } => {
                self.hidden.get(&entry).unwrap_or(&self.entries[entry].hidden).death(row).is_some()
            }
            RowLocation::Staged { batch, row } => self.staged[batch].hidden.death(row).is_some(),
        }
    }

    pub(crate) fn hide(&mut self, place: RowLocation, seq: u64) {
        self.hidden_rows(place).kill(row_of(place), seq);
    }

    fn show(&mut self, place: RowLocation, seq: u64) {
        self.hidden_rows(place).revive(row_of(place), seq);
    }

    fn hidden_rows(&mut self, place: RowLocation) -> &mut DeadRows {
        match place {
            RowLocation::Part { entry, .. } => {
                let entries = self.entries;
                self.hidden.entry(entry).or_insert_with(|| entries[entry].hidden.as_ref().clone())
            }
            RowLocation::Staged { batch, .. } => &mut self.staged[batch].hidden,
        }
    }
}

fn row_of(place: RowLocation) -> u32 {
    match place {
        RowLocation::Part { row, .. } | RowLocation::Staged { row, .. } => row,
    }
}
