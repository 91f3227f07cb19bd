//! Idempotency keys: which events were written under which key, so that a batch sent twice is stored once.
//!
//! A key is remembered as a 128-bit hash, for `Options::key_memory` (a day) from its use; then it may be reused. Keys
//! are in the log until the flush that covers them writes them to a separate file. Small files are merged, so there are
//! never many. At most `Options::keys_max` keys are remembered. A write beyond that is refused, because forgetting a
//! key early would silently break the guarantee. Each key has a digest of its batch (`digest.rs`): another batch under
//! the same key is refused rather than discarded.

use crate::catalog::sidecars;
use crate::codec::hash;
use crate::codec::{Reader, frame, put_i64, put_u32, put_u64, unframe};
use crate::error::StoreError;
use crate::ingest::digest;
use crate::manifest::{KeysEntry, keys_name};
use crate::seams::Objects;
use std::collections::HashMap;

const MAGIC: &[u8; 8] = b"MRDNKEYS";
/// Version 1 had no digests.
const VERSION: u32 = 2;
/// Bytes of a key in a file; the next constant is that of version 1.
const KEY_BYTES: usize = 44;
const KEY_BYTES_1: usize = 36;
/// Number of files from which on they are merged.
const FILES_MAX: usize = 8;

/// The write remembered under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RememberedWrite {
    pub(crate) position: u64,
    pub(crate) events: u32,
    /// Time of use, in microseconds since 1970.
    pub(crate) time: i64,
    /// Digest of the batch, or [`digest::UNKNOWN`].
    pub(crate) batch: u64,
}

impl RememberedWrite {
    /// Returns true if a batch with this digest may be the one that was written. A key of an older version fits any
    /// batch.
    pub(crate) fn fits(&self, batch: u64) -> bool {
        [batch, digest::UNKNOWN].contains(&self.batch)
    }
}

/// The keys of a partition.
#[derive(Debug)]
pub(crate) struct IdempotencyKeys {
    keys: HashMap<u128, RememberedWrite>,
    /// Keys that are only in the log.
    unflushed: Vec<u128>,
    seed: u64,
    memory: i64,
    /// When expired keys were last searched for.
    swept: i64,
}

impl IdempotencyKeys {
    pub(crate) fn new(seed: u64, memory: std::time::Duration) -> Self {
        IdempotencyKeys {
            keys: HashMap::new(),
            unflushed: Vec::new(),
            seed,
            memory: memory.as_micros() as i64,
            swept: i64::MIN,
        }
    }

    fn digest(&self, key: &[u8]) -> u128 {
        // Two seeds give 128 bits: a collision would refuse a new batch as a reused key, or take it for a duplicate.
        u128::from(hash(self.seed ^ 1, key)) << 64 | u128::from(hash(self.seed ^ 2, key))
    }

    /// Returns the write under this key, if remembered.
    pub(crate) fn get(&self, key: &[u8], now: i64) -> Option<RememberedWrite> {
        // Expiry is tested here, not left to the sweep: whether a key counts must not depend on when the last sweep
        // ran.
        self.keys.get(&self.digest(key)).copied().filter(|r| now - r.time < self.memory)
    }

    /// Remembers a key that the log holds.
    pub(crate) fn remember(&mut self, key: &[u8], what: RememberedWrite) {
        let digest = self.digest(key);
        self.keys.insert(digest, what);
        // The log keeps these keys until the next flush; after it, only a file does.
        self.unflushed.push(digest);
    }

    /// Forgets expired keys, at most once a minute unless there are many keys.
    pub(crate) fn sweep(&mut self, now: i64, limit: usize) {
        // Halved, so that the difference to the initial `i64::MIN` does not overflow.
        let due = now - self.swept.max(i64::MIN / 2) > 60_000_000;
        if due || self.keys.len() >= limit {
            self.swept = now;
            let memory = self.memory;
            self.keys.retain(|_, r| now - r.time < memory);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Reads the files that a manifest names; returns the errors of unreadable ones.
    pub(crate) fn load(&mut self, objects: &dyn Objects, files: &[KeysEntry]) -> Vec<StoreError> {
        let mut bad = Vec::new();
        for entry in files {
            match read(objects, &keys_name(entry.file)) {
                Ok(found) => self.keys.extend(found),
                // The keys of other files are still loaded: every one of them prevents a duplicate.
                Err(e) => bad.push(e),
            }
        }
        bad
    }

    /// Returns the files that hold all keys up to `flushed`, and the new one among them: its name and content. `file`
    /// numbers it. Other files may be removed once a manifest names the returned ones.
    pub(crate) fn encode(
        &self,
        files: &[KeysEntry],
        flushed: u64,
        now: i64,
        file: u64,
    ) -> (Vec<KeysEntry>, Option<(String, Vec<u8>)>) {
        // A file expires as a whole with its newest key, so files are dropped without being read.
        let mut kept: Vec<KeysEntry> = files.iter().filter(|f| now - f.newest < self.memory).cloned().collect();
        let mut fresh: Vec<(u128, RememberedWrite)> = self
            .unflushed
            .iter()
            .filter_map(|digest| Some((*digest, *self.keys.get(digest)?)))
            // Later keys stay in the log, which keeps their records beyond this flush.
            .filter(|(_, what)| what.position <= flushed)
            .collect();
        // One file with all keys replaces many small ones, so a start reads few.
        if kept.len() + 1 > FILES_MAX {
            fresh = self.keys.iter().map(|(d, r)| (*d, *r)).filter(|(_, r)| r.position <= flushed).collect();
            kept.clear();
        }
        // In order of the hash, so that the same keys give the same bytes.
        fresh.sort_unstable_by_key(|(digest, _)| *digest);
        fresh.dedup_by_key(|(digest, _)| *digest);
        if fresh.is_empty() {
            return (kept, None);
        }
        let mut content = Vec::with_capacity(8 + fresh.len() * KEY_BYTES);
        put_u64(&mut content, fresh.len() as u64);
        for (digest, what) in &fresh {
            content.extend_from_slice(&digest.to_le_bytes());
            put_u64(&mut content, what.position);
            put_u32(&mut content, what.events);
            put_i64(&mut content, what.time);
            put_u64(&mut content, what.batch);
        }
        let fresh_file = (keys_name(file), frame(MAGIC, VERSION, &content));
        let newest = fresh.iter().map(|(_, what)| what.time).max().unwrap_or(now);
        kept.push(KeysEntry { file, newest, count: fresh.len() as u64 });
        (kept, Some(fresh_file))
    }

    /// Records that a manifest names files with all keys up to `flushed`.
    pub(crate) fn saved(&mut self, flushed: u64) {
        let keys = &self.keys;
        // Keys used again since the flush have a later position and belong to the next one.
        self.unflushed.retain(|digest| keys.get(digest).is_some_and(|what| what.position > flushed));
    }
}

/// Reads one file of keys.
pub(crate) fn read(objects: &dyn Objects, name: &str) -> Result<Vec<(u128, RememberedWrite)>, StoreError> {
    let (path, bytes) = sidecars::read(objects, name)?;
    let content = unframe(&path, MAGIC, VERSION, &bytes)?;
    let parse = || -> Result<Vec<(u128, RememberedWrite)>, String> {
        let mut r = Reader::new(content);
        let count = r.u64()? as usize;
        // The length distinguishes the versions, and also rejects a count that would allocate beyond the file.
        let digests = count.checked_mul(KEY_BYTES) == Some(r.left());
        if !digests && count.checked_mul(KEY_BYTES_1) != Some(r.left()) {
            return Err(format!("{count} keys do not fit its length"));
        }
        (0..count)
            .map(|_| {
                let key = u128::from(r.u64()?) | u128::from(r.u64()?) << 64;
                let (position, events, time) = (r.position()?, r.u32()?, r.i64()?);
                let batch = if digests { r.u64()? } else { digest::UNKNOWN };
                Ok((key, RememberedWrite { position, events, time, batch }))
            })
            .collect()
    };
    parse().map_err(|e| StoreError::corrupt(&path, e))
}
