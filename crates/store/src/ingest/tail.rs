//! The tail of a followed collection: log records that no manifest covers yet, shown in addition to its segments.
//!
//! Only collections with generated ids, whose events are never replaced, are followed this way: their writes do not
//! refer to earlier events. A record of another kind ends the tail until a manifest covers it.

use crate::manifest::Manifest;
use crate::seams::{Kind, LogReader, Record};
use meridian_model::{IdRole, Mode, Schema};
use std::collections::VecDeque;

/// Max bytes of records kept for a partition. An owner flushes at 64 MiB of log; beyond this limit the next manifest is
/// awaited.
const TAIL_BYTES_MAX: usize = 128 << 20;

/// The known part of the log after the manifest.
#[derive(Debug)]
pub(crate) struct Tail {
    reader: Box<dyn LogReader>,
    /// Writes after the manifest, without gaps. They are reapplied after each manifest, whose segments cover some of
    /// them.
    pub(super) records: VecDeque<Record>,
    bytes: usize,
    /// Position of the last record read.
    pub(super) read: u64,
    /// Position of the first record that cannot be shown, if one was read.
    pub(super) blocked: Option<u64>,
    /// Start time of the poll that reached the end of the log.
    pub(super) ended: Option<i64>,
    /// Time up to which all writes are shown, as of the last poll.
    pub(super) complete: Option<i64>,
}

/// Returns true if the log of such a collection is followed.
pub(crate) fn is_followed(schema: &Schema) -> bool {
    schema.id == IdRole::Made && schema.mode == Mode::History
}

impl Tail {
    pub(crate) fn new(reader: Box<dyn LogReader>) -> Tail {
        Tail { reader, records: VecDeque::new(), bytes: 0, read: 0, blocked: None, ended: None, complete: None }
    }

    /// Returns the time up to which all writes are shown; `None` if unknown.
    pub(crate) fn complete(&self) -> Option<i64> {
        self.complete
    }

    /// Appends a record; the first one that does not follow, or is not a plain write, ends the tail.
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

    /// Reads on after a manifest. Returns true if the log was read to its end.
    pub(super) fn look(&mut self, manifest: &Manifest) -> bool {
        // The records that follow are read again once a manifest covers the blocked one.
        if self.blocked.is_some() {
            return false;
        }
        match self.reader.look(manifest.flushed, manifest.log) {
            Ok(seen) => {
                seen.records.into_iter().for_each(|record| self.push(record));
                seen.is_end
            }
            Err(error) => {
                // The segments are still served. A damaged object is skipped once a manifest covers it.
                tracing::debug!(collection = %manifest.collection, %error, "the log was not followed");
                false
            }
        }
    }

    /// Drops the records that a manifest covers.
    pub(super) fn cover(&mut self, flushed: u64) {
        while let Some(record) = self.records.pop_front_if(|record| record.position <= flushed) {
            self.bytes -= record.body.len();
        }
        self.read = self.read.max(flushed);
    }

    /// Restarts after a manifest.
    pub(super) fn restart(&mut self, manifest: &Manifest) {
        // An end found earlier is void: the part before it was deleted or skipped.
        (self.blocked, self.ended) = (None, None);
        self.reader.rewind();
        self.cover(manifest.flushed);
        self.look(manifest);
    }
}
