//! Changes: writes and deletions, and what the store answers to each.

use super::{Run, Verdict, demand};
use crate::model::{Change, Expected};
use crate::world::{Event, START, batch};
use meridian_model::Seq;
use meridian_store::{Write, WriteError};

impl Run {
    pub(super) fn is_forgotten(&self, key: &str) -> bool {
        self.model.keys.get(key).is_none_or(|k| self.now() - k.time >= crate::model::KEY_MEMORY)
    }

    pub(super) fn events(&mut self, count: u64) -> Vec<Event> {
        let mut taken = std::collections::BTreeSet::new();
        let mut events = Vec::new();
        for _ in 0..count {
            self.next_n += 1;
            // From a small set of ids, so that they repeat.
            let id = if self.below(3) == 0 { self.below(100) } else { 1000 + self.next_n as u64 };
            if taken.insert(id) {
                let n = self.next_n;
                events.push(Event { time: START + n, ..Event::new(format!("id-{id}"), n) });
                if n % 3 != 0 {
                    events.last_mut().iter_mut().for_each(|e| e.time = Event::new("", n).time);
                }
            }
        }
        events
    }

    pub(super) fn write(&mut self, count: u64, key: Option<String>, replace: bool) -> Verdict {
        let events = self.events(count);
        self.write_events(events, key, replace)
    }

    pub(super) fn write_events(&mut self, events: Vec<Event>, key: Option<String>, replace: bool) -> Verdict {
        let mut write = Write::new(batch(&self.collection.schema(), &events));
        write.key = key.clone();
        if replace {
            write = write.replacing();
        }
        let what = format!("write of {} (replace: {replace}, key: {key:?})", events.len());
        let change = Change::Write { events, key, replace, time: self.now() };
        let expected = self.model.expect(&change);
        let answer = self.collection.write(write);
        self.say(format!("{what}: {answer:?}"));
        match (answer, expected) {
            (Ok(got), Expected::Written { written, replaced, position }) => {
                let wanted = (written, replaced, 0, position, Seq::new(position, 0));
                let got = (got.written, got.replaced, got.duplicates, got.position, got.first);
                demand!(got == wanted, "{got:?} where {wanted:?} was expected");
                self.model.apply(&change);
                Ok(())
            }
            (Ok(got), Expected::Duplicate { duplicates, position }) => {
                let same = (got.written, got.duplicates, got.position) == (0, duplicates, position);
                demand!(same, "{got:?} where {duplicates} duplicates of {position} were expected");
                Ok(())
            }
            (Err(WriteError::KeyReused { position: got, .. }), Expected::KeyReused { position }) => {
                demand!(got == position, "the key is said to be of write {got} instead of {position}");
                Ok(())
            }
            (Err(WriteError::Conflict { ids, total }), Expected::Conflict(there)) => {
                let same = total == there.len() && ids == there[..there.len().min(100)];
                demand!(same, "{total} conflicts where {} were expected", there.len());
                Ok(())
            }
            (Err(error), Expected::Conflict(_) | Expected::Duplicate { .. } | Expected::KeyReused { .. }) => {
                self.refused(error, None)
            }
            (Err(error), Expected::Written { .. }) => self.refused(error, Some(change)),
            (got, expected) => Err(format!("{got:?} where {expected:?} was expected")),
        }
    }

    /// Checks that a refused change has a reason, and that the reported one is true.
    fn refused(&mut self, error: WriteError, change: Option<Change>) -> Verdict {
        let refuses = self.collection.stats().refuses;
        match error {
            WriteError::Busy(_) | WriteError::Full(_) if self.faulty => {}
            WriteError::Failed(_) if self.faulty && self.unknown.is_none() => {
                demand!(refuses.is_some(), "a write failed and the collection goes on");
                self.unknown = change;
                self.hurt = true;
            }
            WriteError::Refused(why) if self.hurt || self.damage.is_some() => {
                if let Some(refuses) = refuses {
                    demand!(why.contains(&refuses), "refused for {why:?} rather than {refuses:?}");
                }
            }
            WriteError::Refused(why) if self.faulty => {
                // An id could not be looked up, or a flush or merge has just made the collection refuse.
                demand!(refuses.is_some() || why.contains("/data"), "refused without a reason: {why}");
                self.hurt |= refuses.is_some();
            }
            other => return Err(format!("{other:?}, and nothing is wrong with the disk")),
        }
        Ok(())
    }

    pub(super) fn delete_ids(&mut self) -> Verdict {
        let alive = self.model.alive();
        // One at a time while there is damage, so that the response shows which were found.
        let count = if self.damage.is_some() || self.hurt { 1 } else { self.below(30) };
        let mut ids = if count == 1 { Vec::new() } else { vec!["unknown".to_owned()] };
        for _ in 0..count {
            if !alive.is_empty() {
                ids.push(alive[self.below(alive.len() as u64) as usize].clone());
            }
        }
        let answer = self.collection.delete(&ids);
        self.deleted(Change::DeleteIds(ids), answer)
    }

    pub(super) fn delete_rows(&mut self) -> Verdict {
        let snapshot = match self.tokens.get(self.below(2 * self.tokens.len() as u64) as usize) {
            Some((seq, _)) => match self.collection.snapshot_at(*seq) {
                Ok(snapshot) => snapshot,
                Err(_) => return Ok(()),
            },
            None => self.collection.snapshot(),
        };
        if snapshot.parts.is_empty() {
            return Ok(());
        }
        let part = &snapshot.parts[self.below(snapshot.parts.len() as u64) as usize];
        let count = if self.damage.is_some() || self.hurt { 1 } else { self.below(20) };
        let rows: Vec<u32> = (0..count).map(|_| self.below(u64::from(part.rows())) as u32).collect();
        let mut seqs = Vec::new();
        for row in &rows {
            match part.seqs(*row..row + 1) {
                Ok(found) => seqs.extend(found),
                Err(e) => return self.read_error(&e.to_string()),
            }
        }
        let answer = self.collection.delete_rows(&[(part.clone(), rows)]);
        self.deleted(Change::DeleteSeqs(seqs), answer)
    }

    fn deleted(&mut self, change: Change, answer: Result<meridian_store::DeleteReceipt, WriteError>) -> Verdict {
        let Expected::Deleted { deleted, position } = self.model.expect(&change) else { return Ok(()) };
        self.say(format!("{change:?}: {answer:?}"));
        match answer {
            Ok(got) if (got.deleted, got.position) == (deleted, position) => {
                self.model.apply(&change);
                Ok(())
            }
            Ok(got) if got.deleted == 0 && deleted == 1 && got.position == position => {
                let missing = self.collection.snapshot().missing.clone();
                demand!(!missing.is_empty(), "an event was not found, and nothing is said to be missing");
                self.model.skip();
                Ok(())
            }
            Ok(got) => Err(format!("{got:?} where {deleted} at {position} were expected")),
            Err(error) => self.refused(error, Some(change)),
        }
    }
}
