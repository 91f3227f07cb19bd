//! The tail of a followed collection: writes in its log that no manifest covers yet, shown beside its segments.
//!
//! A collection whose events have made ids and are never replaced is followed in this way: its writes name nothing that was there before.
//! A record of another kind ends the tail, until a manifest covers it.

use super::partition::Partition;
use super::replay::{Decoded, decode};
use super::stage::{Change, Stage};
use crate::catalog::manifest::Manifest;
use crate::seams::{Kind, LogReader, Record};
use meridian_model::{IdRole, Mode, Schema};
use std::collections::VecDeque;

/// Max bytes of records that are kept of a partition. An owner flushes at 64 MiB of log; beyond this a manifest is awaited.
const TAIL_BYTES_MAX: usize = 128 << 20;

/// What is known of the log after the manifest.
#[derive(Debug)]
pub(crate) struct Tail {
    reader: Box<dyn LogReader>,
    /// Writes after the manifest without a gap. They are applied anew with each manifest, which has others in its segments.
    records: VecDeque<Record>,
    bytes: usize,
    /// The position of the last record that was read.
    read: u64,
    /// The first record that cannot be shown, if one was read.
    blocked: Option<u64>,
    /// When the look began that found the end of the log.
    ended: Option<i64>,
    /// Up to when all writes are shown, by the last look.
    complete: Option<i64>,
}

/// Whether the log of such a collection is followed.
pub(crate) fn is_followed(schema: &Schema) -> bool {
    schema.id == IdRole::Made && schema.mode == Mode::History
}

impl Tail {
    pub(crate) fn new(reader: Box<dyn LogReader>) -> Tail {
        Tail { reader, records: VecDeque::new(), bytes: 0, read: 0, blocked: None, ended: None, complete: None }
    }

    /// Up to when all writes are shown; `None`: that is not known.
    pub(crate) fn complete(&self) -> Option<i64> {
        self.complete
    }

    /// Takes up a record; the first one that does not follow, or is no plain write, ends the tail.
    fn push(&mut self, record: Record) {
        if self.blocked.is_some() || record.position <= self.read {
            return;
        }
        let follows = record.position == self.read + 1;
        let fits = self.bytes + record.body.len() <= TAIL_BYTES_MAX;
        if !follows || record.kind != Kind::Write || !fits {
            self.blocked = Some(record.position);
            return;
        }
        (self.read, self.bytes) = (record.position, self.bytes + record.body.len());
        self.records.push_back(record);
    }

    /// Reads on after a manifest. Returns whether the log was read to its end.
    fn look(&mut self, manifest: &Manifest) -> bool {
        // What follows is read again once a manifest covers it.
        if self.blocked.is_some() {
            return false;
        }
        match self.reader.look(manifest.flushed, manifest.log) {
            Ok(seen) => {
                seen.records.into_iter().for_each(|record| self.push(record));
                seen.is_end
            }
            Err(error) => {
                // The segments are served as before. A damaged object is passed over once a manifest covers it.
                tracing::debug!(collection = %manifest.collection, %error, "the log was not followed");
                false
            }
        }
    }

    /// Forgets what a manifest covers.
    fn cover(&mut self, flushed: u64) {
        while let Some(record) = self.records.pop_front_if(|record| record.position <= flushed) {
            self.bytes -= record.body.len();
        }
        self.read = self.read.max(flushed);
    }

    /// Begins again after a manifest.
    fn restart(&mut self, manifest: &Manifest) {
        // An end that was found before is none: what came before it had been deleted, or was passed over.
        (self.blocked, self.ended) = (None, None);
        self.reader.rewind();
        self.cover(manifest.flushed);
        self.look(manifest);
    }
}

impl Partition {
    /// Reads the log on. It comes before the newest manifest is looked for: what is gone from the log by then is covered by that one.
    pub(crate) fn look_at_tail(&mut self) {
        let began = self.shared.seams.clock.now();
        let Some(tail) = &mut self.tail else { return };
        tail.complete = None;
        let is_end = tail.look(&self.manifest);
        tail.ended = is_end.then_some(began);
    }

    /// Shows the writes after the manifest. `anew`: the entries are those of a manifest that was just taken up. Returns whether anything was added.
    pub(crate) fn show_tail(&mut self, anew: bool) -> bool {
        let Some(mut tail) = self.tail.take() else { return false };
        if anew && (self.manifest.flushed > tail.read || tail.blocked.is_some()) {
            tail.restart(&self.manifest);
        }
        tail.cover(self.manifest.flushed);
        let before = self.position;
        // Those up to there are shown already.
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

    /// Adds writes in one memory tree. At an error those before it are added; it names the position.
    fn add_of_tail(&mut self, records: Vec<Record>) -> Result<(), (u64, String)> {
        let (context, seed) = (self.context.clone(), self.manifest.seed);
        let mut stage = Stage::new(&self.entries, &context, self.position + 1);
        let mut failed = Ok(());
        for record in records {
            let Decoded { position, change, .. } = decode(&context, seed, record);
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
