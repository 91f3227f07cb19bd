//! A partition that follows the log of another process: it shows the writes of its tail.

use super::partition::Partition;
use super::replay::{DecodedRecord, decode};
use super::stage::{Change, Stage};
use crate::seams::Record;

impl Partition {
    /// Polls the log. Called before the search for the newest manifest: records already gone from the log are covered
    /// by that manifest.
    pub(crate) fn look_at_tail(&mut self) {
        let began = self.shared.seams.clock.now();
        let Some(tail) = &mut self.tail else { return };
        tail.complete = None;
        let is_end = tail.look(&self.manifest);
        tail.ended = is_end.then_some(began);
    }

    /// Shows the writes after the manifest. `anew` means that the entries are those of a newly loaded manifest. Returns
    /// true if anything was added.
    pub(crate) fn show_tail(&mut self, anew: bool) -> bool {
        let Some(mut tail) = self.tail.take() else { return false };
        if anew && (self.manifest.flushed > tail.read || tail.blocked.is_some()) {
            tail.restart(&self.manifest);
        }
        tail.cover(self.manifest.flushed);
        let before = self.position;
        // Earlier records are already shown.
        let fresh: Vec<Record> = tail.records.iter().filter(|record| record.position > before).cloned().collect();
        if let Err((position, why)) = self.add_of_tail(fresh) {
            tracing::warn!(collection = %self.manifest.collection, position, %why, "a write of the log cannot be shown");
            tail.blocked = Some(position);
        }
        let is_whole = tail.blocked.is_none() && self.position == tail.read;
        tail.complete = tail.ended.filter(|_| is_whole);
        self.tail = Some(tail);
        if self.position == before {
            return false;
        }
        self.merge_small_runs();
        self.measure();
        self.publish();
        true
    }

    /// Adds writes as one memory tree. On an error the writes before the failed one are added, and its position is
    /// returned.
    fn add_of_tail(&mut self, records: Vec<Record>) -> Result<(), (u64, String)> {
        let (context, seed) = (self.context.clone(), self.manifest.seed);
        let mut stage = Stage::new(&self.entries, &context, self.position + 1);
        let mut failed = Ok(());
        for record in records {
            let DecodedRecord { position, change, .. } = decode(&context, seed, record);
            let written = match change {
                Ok(Change::Write(events)) if position == stage.next => stage.write(events).map_err(|e| e.to_string()),
                Ok(_) => Err("it is not the next plain write".to_owned()),
                Err(why) => Err(why),
            };
            if let Err(why) = written {
                failed = Err((position, why));
                break;
            }
        }
        let position = stage.next - 1;
        match stage.finish(self.shared.cache.number_part()) {
            Ok(staging) => {
                staging.apply(&mut self.entries);
                self.position = position;
                failed
            }
            Err(error) => Err((self.position + 1, error.to_string())),
        }
    }
}
