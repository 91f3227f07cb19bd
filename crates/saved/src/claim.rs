//! The claim of a process to run the saved searches, stored in their records.
//!
//! A lease decides which gateway tries. Two may believe that they hold it, if one was paused and wakes up. So the
//! record [`RECORD`] has the epoch of the process that runs them. A process that takes over first writes its own,
//! greater epoch there. Each of its later writes is conditional on the version at which the record was still its own.
//! So a process that was paused for longer than its lease changes no record.
//!
//! The record also has the number at which packets begin. It is greater than any number assigned before, whatever the
//! clocks are. So a receiver of packets recognises a late call of a former process by its lower number. A process whose
//! lease lapses without a successor gets it back in the same epoch. What it opens then also gets new numbers, and what
//! it had opened before changes no record.

use meridian_backend::{Records, StoreError};
use meridian_model::{RecordChange, RecordChanges};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the record.
pub(super) const RECORD: &str = "runs";
/// More packets than a saved search sends while a single process runs it.
const NUMBERS: u64 = 1 << 32;
/// Max attempts to make a change while others change the records.
const TURNS: usize = 64;

/// Returns true while the saved searches are assigned to this process, by its own clock.
pub type AssignmentCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// The record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunRecord {
    /// Epoch of the process that runs the saved searches.
    epoch: u64,
    /// First number of its packets.
    first: u64,
}

impl RunRecord {
    /// Returns the record for another bucket, where epochs restart and numbers continue.
    pub(super) fn moved(self) -> RunRecord {
        RunRecord { epoch: 0, ..self }
    }

    pub(super) fn read(content: &[u8]) -> Result<RunRecord, StoreError> {
        serde_json::from_slice(content)
            .map_err(|e| StoreError::Busy(format!("the record {RECORD:?} of saved searches does not read: {e}")))
    }
}

/// A process that runs the saved searches from now on, and the records at that time.
#[derive(Debug)]
pub(super) struct Claim {
    /// The records, writable until another process claims them.
    pub(super) records: Arc<ClaimedRecords>,
    /// First number of packets that no clean stop has kept.
    pub(super) first: u64,
    /// All records by name.
    pub(super) all: BTreeMap<String, Vec<u8>>,
    /// Their version.
    pub(super) version: u64,
}

impl Claim {
    /// Claims the records for the process of this epoch. `now`: microseconds since 1970. Claiming again with the same
    /// epoch changes nothing, unless the saved searches have run under the earlier claim (`has_run`). Blocks.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if a process with a later epoch has them, or the errors of the records.
    pub(super) fn make(records: &Arc<dyn Records>, epoch: u64, has_run: bool, now: i64) -> Result<Claim, StoreError> {
        let (mut version, mut all) = (0, BTreeMap::new());
        for _ in 0..TURNS {
            if let Some(news) = records.since(version)? {
                version = news.version;
                apply(&mut all, news);
            }
            let before = all.get(RECORD).map(|content| RunRecord::read(content)).transpose()?;
            let clock = now.max(0) as u64;
            let first = match before {
                Some(before) if before.epoch > epoch => return Err(taken()),
                Some(before) if before.epoch == epoch && !has_run => before.first,
                // A clock that is slow must not repeat numbers.
                Some(before) => clock.max(before.first.saturating_add(NUMBERS)),
                None => clock,
            };
            let runs = RunRecord { epoch, first };
            let content = serde_json::to_vec(&runs).unwrap_or_default();
            if let Some(version) = records.commit(version, &[RecordChange::put(RECORD, content.clone())])? {
                all.insert(RECORD.to_owned(), content);
                let known = Mutex::new(KnownClaim { version, runs });
                let records = Arc::new(ClaimedRecords { records: records.clone(), runs, known });
                return Ok(Claim { records, first, all, version });
            }
        }
        Err(too_fast())
    }
}

fn apply(all: &mut BTreeMap<String, Vec<u8>>, news: RecordChanges) {
    if news.whole {
        all.clear();
    }
    for change in news.changes {
        match change.content {
            Some(content) => drop(all.insert(change.name, content)),
            None => drop(all.remove(&change.name)),
        }
    }
}

fn taken() -> StoreError {
    StoreError::Busy("another gateway runs the saved searches now: try again".to_owned())
}

fn too_fast() -> StoreError {
    StoreError::Busy("the records of saved searches change too fast: try again".to_owned())
}

/// Records that a process can change until another one claims them. Reading needs no claim.
#[derive(Debug)]
pub(super) struct ClaimedRecords {
    records: Arc<dyn Records>,
    /// The claim.
    runs: RunRecord,
    /// Locked during a change, so that there is one at a time.
    known: Mutex<KnownClaim>,
}

/// The state of the claim at a version of the records.
#[derive(Debug)]
struct KnownClaim {
    version: u64,
    runs: RunRecord,
}

impl ClaimedRecords {
    /// Reads up to the newest version.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another process has claimed the records.
    fn look(&self) -> Result<MutexGuard<'_, KnownClaim>, StoreError> {
        let mut known = self.known.lock();
        if let Some(news) = self.records.since(known.version)? {
            for change in news.changes.iter().filter(|change| change.name == RECORD) {
                known.runs = change.content.as_deref().map(RunRecord::read).transpose()?.unwrap_or_default();
            }
            known.version = news.version;
        }
        match known.runs == self.runs {
            true => Ok(known),
            false => Err(taken()),
        }
    }

    fn change(&self, change: RecordChange) -> Result<(), StoreError> {
        for _ in 0..TURNS {
            let mut known = self.look()?;
            // Conditional on the version that was read, since a claim makes another one.
            if let Some(version) = self.records.commit(known.version, std::slice::from_ref(&change))? {
                known.version = version;
                return Ok(());
            }
        }
        Err(too_fast())
    }
}

impl Records for ClaimedRecords {
    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.records.names()
    }

    fn copied(&self) -> Result<Vec<String>, StoreError> {
        self.records.copied()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.records.get(name)
    }

    fn mended(&self) -> Vec<(String, String)> {
        self.records.mended()
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.change(RecordChange::put(name, content))
    }

    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.put(name, content)
    }

    fn copy(&self, _: &str) -> Result<(), StoreError> {
        // Shared records have no copies.
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.change(RecordChange::remove(name))
    }

    fn is_shared(&self) -> bool {
        self.records.is_shared()
    }

    fn since(&self, version: u64) -> Result<Option<RecordChanges>, StoreError> {
        self.records.since(version)
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, StoreError> {
        let mut known = self.look()?;
        if known.version != follows {
            return Ok(None);
        }
        let made = self.records.commit(follows, changes)?;
        known.version = made.unwrap_or(known.version);
        Ok(made)
    }
}
