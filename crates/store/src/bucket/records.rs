//! Records in a bucket: each kind is a chain of changes (`chain.rs`), and each process holds all records in memory.
//!
//! A change applies to the records of one version, which is the number of the newest link. If another process was
//! first, it is rejected. Once the changes outweigh the records, the next link also holds all of the records.

use super::Bucket;
use super::chain::{Chain, End, Link};
use crate::codec::{Reader, put_bytes, put_u8, put_u32};
use crate::error::StoreError;
use crate::paths::check_record_name;
use crate::seams::Seams;
use meridian_model::{RecordChange, RecordChanges};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The prefix of names of records.
pub(crate) const RECORDS: &str = "records/";

/// Min weight of the changes before all records are rewritten.
const WHOLE_BYTES: u64 = 256 << 10;
/// Max links whose changes are kept for followers, and their max bytes; a follower further behind gets all records.
const RECENT_MAX: usize = 64;
const RECENT_BYTES_MAX: usize = 4 << 20;
/// Max attempts of a change that applies to any version.
const TURNS: usize = 64;

/// The records of one kind in a bucket, which several processes read and change. They may hold secrets.
///
/// Calls block: each first polls for the newest link.
#[derive(Debug)]
pub struct SharedRecords {
    chain: Chain,
    /// Held across calls to the bucket: one thread of this process reads on or appends at a time.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    end: End,
    records: BTreeMap<String, Vec<u8>>,
    /// Total bytes of names and contents.
    bytes: u64,
    /// The changes of the newest links, by number, without gaps.
    recent: VecDeque<(u64, Vec<RecordChange>)>,
    recent_bytes: usize,
}

impl SharedRecords {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, seams: &Seams, kind: &str) -> SharedRecords {
        let chain = Chain::new(bucket, seams, format!("{RECORDS}{kind}/"));
        SharedRecords { chain, state: Mutex::default() }
    }

    /// Returns the names of all records, sorted.
    ///
    /// # Errors
    /// Here and below: [`StoreError::Corrupt`] with the name of a damaged object, [`StoreError::NewerFormat`], or the
    /// error of the bucket.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.current()?.records.keys().cloned().collect())
    }

    /// Returns a record; `None` if no record has this name.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_record_name(name)?;
        Ok(self.current()?.records.get(name).cloned())
    }

    /// Returns the changes after a version; `None` if it is the newest. Version 0 precedes all changes.
    pub fn since(&self, version: u64) -> Result<Option<RecordChanges>, StoreError> {
        let state = self.current()?;
        if state.end.number == version {
            return Ok(None);
        }
        // The kept changes help only a follower that lacks none before them.
        let whole = version == 0 || state.recent.front().is_none_or(|(first, _)| *first > version + 1);
        let changes = match whole {
            true => state.records.iter().map(|(name, content)| RecordChange::put(name, content.clone())).collect(),
            false => {
                let newer = state.recent.iter().filter(|(number, _)| *number > version);
                newer.flat_map(|(_, changes)| changes.iter().cloned()).collect()
            }
        };
        Ok(Some(RecordChanges { version: state.end.number, whole, changes }))
    }

    /// Applies all of these changes or none, and returns the resulting version. `None` if there is a newer version than
    /// `follows`: then nothing was changed.
    ///
    /// # Errors
    /// As above, and [`StoreError::Unknown`] if it is unknown whether they were applied.
    pub fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, StoreError> {
        changes.iter().try_for_each(|change| check_record_name(&change.name))?;
        let mut state = self.current()?;
        // The lock is held from the read to the append, so no thread of this process comes between. A change by another
        // process makes the append fail.
        match state.end.number == follows {
            true => self.append(&mut state, changes),
            false => Ok(None),
        }
    }

    /// Creates or replaces a record, whatever the version.
    pub fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.change(RecordChange::put(name, content))
    }

    /// Removes a record, whatever the version; an absent one is not an error.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.change(RecordChange::remove(name))
    }

    fn change(&self, change: RecordChange) -> Result<(), StoreError> {
        check_record_name(&change.name)?;
        for _ in 0..TURNS {
            let mut state = self.current()?;
            // Nothing to do. An attempt of unknown outcome may have made the change, or another process the same one.
            if state.records.get(&change.name) == change.content.as_ref() {
                return Ok(());
            }
            // `None` means that another process was first: the next turn reads on before it tries again.
            if self.append(&mut state, std::slice::from_ref(&change))?.is_some() {
                return Ok(());
            }
        }
        Err(self.chain.too_fast())
    }

    /// Returns the records as of now.
    fn current(&self) -> Result<parking_lot::MutexGuard<'_, State>, StoreError> {
        let mut state = self.state.lock();
        if let Some((end, links)) = self.chain.follow(&state.end)? {
            // Everything is read before any of it is applied.
            let parts = links.into_iter().map(|link| self.decode(link)).collect::<Result<Vec<_>, _>>()?;
            let next = state.end.number + 1;
            for part in parts {
                match part.records {
                    // Links before it were deleted, so the whole link stands for all of them. A whole link that
                    // directly follows is applied by its changes, which followers need too.
                    Some(records) if part.number != next => state.restart(records),
                    _ => state.take(part.number, part.changes),
                }
            }
            state.end = end;
        }
        Ok(state)
    }

    fn append(&self, state: &mut State, changes: &[RecordChange]) -> Result<Option<u64>, StoreError> {
        let whole = self.chain.wants_whole(&state.end, state.bytes, WHOLE_BYTES);
        let mut content = Vec::new();
        put_changes(&mut content, changes);
        if whole {
            // On a copy: the append may still fail, and the records must not show what was not appended.
            let mut records = state.records.clone();
            changes.iter().for_each(|change| drop(apply(&mut records, change)));
            put_u32(&mut content, records.len() as u32);
            for (name, record) in &records {
                put_bytes(&mut content, name.as_bytes());
                put_bytes(&mut content, record);
            }
        }
        let Some(end) = self.chain.append(&state.end, whole, &content)? else { return Ok(None) };
        // Only now that the link is in the chain.
        state.take(end.number, changes.to_vec());
        let before = std::mem::replace(&mut state.end, end);
        if whole {
            // Readers begin at the whole link from now on, so older links may go.
            self.chain.sweep(&before, &end, [], |_| false);
        }
        self.chain.tidy();
        Ok(Some(end.number))
    }

    fn decode(&self, link: Link) -> Result<Part, StoreError> {
        let read = || -> Result<Part, String> {
            let mut reader = Reader::new(&link.content);
            let changes = read_changes(&mut reader)?;
            let mut records = None;
            if link.is_whole() {
                let mut all = BTreeMap::new();
                for _ in 0..reader.u32()? {
                    all.insert(read_text(&mut reader)?, reader.bytes()?.to_vec());
                }
                records = Some(all);
            }
            reader.end()?;
            Ok(Part { number: link.number, changes, records })
        };
        read().map_err(|e| StoreError::corrupt(&self.chain.path(link.number), e))
    }
}

/// The decoded content of a link.
struct Part {
    number: u64,
    changes: Vec<RecordChange>,
    /// All records after the changes; present in a whole link.
    records: Option<BTreeMap<String, Vec<u8>>>,
}

impl State {
    /// Applies the changes of the next link.
    fn take(&mut self, number: u64, changes: Vec<RecordChange>) {
        for change in &changes {
            let before = apply(&mut self.records, change);
            self.bytes -= before.map_or(0, |content| size(&change.name, &content));
            self.bytes += change.content.as_ref().map_or(0, |content| size(&change.name, content));
        }
        self.recent_bytes += bytes_of(&changes);
        self.recent.push_back((number, changes));
        while self.recent.len() > RECENT_MAX || self.recent_bytes > RECENT_BYTES_MAX {
            let Some((_, oldest)) = self.recent.pop_front() else { return };
            self.recent_bytes -= bytes_of(&oldest);
        }
    }

    /// Replaces the state with that of a whole link.
    fn restart(&mut self, records: BTreeMap<String, Vec<u8>>) {
        self.bytes = records.iter().map(|(name, content)| size(name, content)).sum();
        self.records = records;
        // The changes that lie between are unknown, and those kept must be without gaps.
        self.recent.clear();
        self.recent_bytes = 0;
    }
}

fn size(name: &str, content: &[u8]) -> u64 {
    (name.len() + content.len()) as u64
}

fn bytes_of(changes: &[RecordChange]) -> usize {
    changes.iter().map(|change| change.name.len() + change.content.as_ref().map_or(0, Vec::len)).sum()
}

/// Applies a change, and returns the previous content.
fn apply(records: &mut BTreeMap<String, Vec<u8>>, change: &RecordChange) -> Option<Vec<u8>> {
    match &change.content {
        Some(content) => records.insert(change.name.clone(), content.clone()),
        None => records.remove(&change.name),
    }
}

fn put_changes(bytes: &mut Vec<u8>, changes: &[RecordChange]) {
    put_u32(bytes, changes.len() as u32);
    for change in changes {
        put_bytes(bytes, change.name.as_bytes());
        put_u8(bytes, u8::from(change.content.is_some()));
        if let Some(content) = &change.content {
            put_bytes(bytes, content);
        }
    }
}

fn read_changes(reader: &mut Reader<'_>) -> Result<Vec<RecordChange>, String> {
    let mut changes = Vec::new();
    for _ in 0..reader.u32()? {
        let name = read_text(reader)?;
        let content = match reader.u8()? {
            0 => None,
            1 => Some(reader.bytes()?.to_vec()),
            kind => return Err(format!("a change of kind {kind}")),
        };
        changes.push(RecordChange { name, content });
    }
    Ok(changes)
}

fn read_text(reader: &mut Reader<'_>) -> Result<String, String> {
    String::from_utf8(reader.bytes()?.to_vec()).map_err(|e| e.to_string())
}
