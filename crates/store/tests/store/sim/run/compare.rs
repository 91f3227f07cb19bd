//! Comparison of what the store shows with what the model knows.

use super::{Run, Verdict, demand};
use crate::world::readable;
use meridian_model::Seq;
use meridian_store::seams::Clock;

impl Run {
    /// Compares the store with the model.
    pub(super) fn compare(&mut self) -> Verdict {
        let snapshot = self.collection.snapshot();
        let seq = Seq::end_of(self.model.position);
        let well = !self.faulty && !self.hurt && self.damage.is_none();
        if well || snapshot.missing.is_empty() {
            demand!(snapshot.seq == seq, "the newest snapshot is {} instead of {seq}", snapshot.seq);
        }
        self.compare_snapshot(&snapshot)?;
        let refuses = self.collection.stats().refuses;
        demand!(!well || refuses.is_none(), "writes are refused, and nothing is wrong: {refuses:?}");
        demand!(snapshot.parts.iter().filter(|p| p.in_memory()).count() <= 50, "too many memory trees");
        if well {
            let expected = self.model.content(seq);
            let events = self.collection.stats().events;
            demand!(events == expected.len() as u64, "{events} events are counted of {}", expected.len());
            if let Some((id, seq, _)) = expected.get(self.below(expected.len() as u64) as usize) {
                let found = snapshot.find(id).map_err(|e| e.to_string())?;
                let found = found.and_then(|(part, row)| part.seqs(row..row + 1).ok());
                demand!(found.as_deref() == Some(&[*seq]), "{id} is not found: {found:?}");
            }
            let unknown = snapshot.find("unknown").map_err(|e| e.to_string())?;
            demand!(unknown.is_none(), "an unknown id is found");
        }
        Ok(())
    }

    /// Checks that a snapshot shows the model's content, or reports what it cannot read or what is missing.
    pub(super) fn compare_snapshot(&self, snapshot: &meridian_store::Snapshot) -> Verdict {
        let (found, errors) = readable(snapshot);
        let expected = self.model.content(snapshot.seq);
        if found == expected && errors.is_empty() {
            return Ok(());
        }
        let first = found.iter().find(|e| !self.model.knows(e));
        demand!(first.is_none(), "{first:?} was never written");
        for error in &errors {
            self.read_error(&error.to_string())?;
        }
        let said = !errors.is_empty() || (!snapshot.missing.is_empty() && (self.faulty || self.damage.is_some()));
        let lost = expected.iter().find(|e| !found.contains(e));
        let risen = found.iter().find(|e| !expected.contains(e));
        demand!(
            said,
            "{} events instead of {} without a word; missing {lost:?}, too many {risen:?}",
            found.len(),
            expected.len()
        );
        Ok(())
    }

    /// Returns to an old snapshot, which must be available within five minutes of its last use.
    pub(super) fn come_back(&mut self) -> Verdict {
        if self.tokens.is_empty() {
            return Ok(());
        }
        let at = self.below(self.tokens.len() as u64) as usize;
        let (seq, used) = self.tokens[at];
        if seq > Seq::end_of(self.model.position) {
            // Its last write was in a damaged record.
            self.tokens.remove(at);
            return Ok(());
        }
        if seq > Seq::end_of(self.collection.position()) && self.damage.is_some() {
            // Damage has removed the last writes, for now.
            return Ok(());
        }
        let elapsed = self.world.clock.elapsed();
        match self.collection.snapshot_at(seq) {
            Ok(snapshot) => {
                self.tokens[at].1 = elapsed;
                self.say(format!("back to {seq}"));
                self.compare_snapshot(&snapshot)
            }
            Err(_) => {
                self.tokens.remove(at);
                self.say(format!("{seq} is gone"));
                demand!(elapsed - used > 300_000_000, "snapshot {seq} is gone {} us after its use", elapsed - used);
                Ok(())
            }
        }
    }

    /// Checks that an error is justified: the disk fails or holds damage, and the error names a file.
    pub(super) fn read_error(&self, error: &str) -> Verdict {
        demand!(self.faulty || self.hurt || self.damage.is_some(), "{error:?}, and nothing is wrong with the disk");
        demand!(error.contains("/data"), "{error:?} names no file");
        Ok(())
    }
}
