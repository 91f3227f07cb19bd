//! How long the statement of a reader in another process counts.
//!
//! A reader repeatedly states, under a new number each time, what it uses of each partition. The writer cannot check
//! whether the reader is alive, so a statement counts for a limited time from when it was first seen. The objects of
//! the manifests that it names stay for that time. The snapshots that it names stay longer: as long as a page token
//! that the reader may have issued. Another reader can continue with the token.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// A reader's use of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InUse {
    /// The partition's folder in the bucket.
    pub folder: String,
    /// Version of the oldest manifest with an object in use.
    pub manifest: u64,
    /// Min sequence number of a snapshot that a request may name.
    pub seq: u64,
}

/// The use of a partition by all readers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionUse {
    /// Version of the oldest manifest in use; `None` if no reader is alive.
    pub manifest: Option<u64>,
    /// Min sequence number of a snapshot in use.
    pub seq: u64,
}

/// The last statement of each reader. Times are in microseconds of the writer's monotonic clock.
#[derive(Debug, Clone)]
pub struct PinTable {
    /// Readers by name.
    readers: BTreeMap<String, Reader>,
    counts_us: i64,
    tokens_us: i64,
}

#[derive(Debug, Clone)]
struct Reader {
    number: u64,
    /// When this number was first seen.
    since: i64,
    in_use: Vec<InUse>,
}

impl PinTable {
    /// A table without readers. `counts_us` is how long a statement counts, `tokens_us` how much longer the snapshots
    /// that it names stay.
    pub fn new(counts_us: i64, tokens_us: i64) -> PinTable {
        PinTable { readers: BTreeMap::new(), counts_us, tokens_us }
    }

    /// Whether this statement is known.
    pub fn has(&self, reader: &str, number: u64) -> bool {
        self.readers.get(reader).is_some_and(|known| known.number == number)
    }

    /// Stores a statement.
    pub fn take(&mut self, reader: &str, number: u64, in_use: Vec<InUse>, now: i64) {
        self.readers.insert(reader.to_owned(), Reader { number, since: now, in_use });
    }

    /// Renews a reader whose statement was replaced by a later one, not read yet: the reader is alive, and its last
    /// statement still counts.
    pub fn renew(&mut self, reader: &str, now: i64) {
        if let Some(known) = self.readers.get_mut(reader) {
            known.since = now;
        }
    }

    /// Records an unreadable statement. What the reader stated before still counts, but only for this statement's
    /// time: no other may follow.
    pub fn take_unread(&mut self, reader: &str, number: u64, now: i64) {
        let before = self.readers.get_mut(reader).map(|known| std::mem::take(&mut known.in_use));
        self.take(reader, number, before.unwrap_or_default(), now);
    }

    /// Whether the last statement of a reader counts.
    pub fn counts(&self, reader: &str, now: i64) -> bool {
        self.readers.get(reader).is_some_and(|known| now - known.since <= self.counts_us)
    }

    /// The uses of all readers, by folder. Drops readers whose tokens have expired.
    pub fn in_use(&mut self, now: i64) -> HashMap<String, PartitionUse> {
        let (counts, stays) = (self.counts_us, self.counts_us.saturating_add(self.tokens_us));
        self.readers.retain(|_, reader| now - reader.since <= stays);
        let mut all: HashMap<String, PartitionUse> = HashMap::new();
        for reader in self.readers.values() {
            let is_there = now - reader.since <= counts;
            for InUse { folder, manifest, seq } in &reader.in_use {
                let used = all.entry(folder.clone()).or_insert(PartitionUse { manifest: None, seq: *seq });
                used.seq = used.seq.min(*seq);
                if is_there {
                    used.manifest = Some(used.manifest.map_or(*manifest, |oldest| oldest.min(*manifest)));
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(manifest: u64, seq: u64) -> Vec<InUse> {
        vec![InUse { folder: "f".to_owned(), manifest, seq }]
    }

    #[test]
    fn snapshots_of_a_reader_stay_longer_than_its_manifests() {
        let mut table = PinTable::new(75, 300);
        table.take("one", 1, uses(7, 70), 0);
        table.take("two", 1, uses(9, 60), 50);
        let of = |table: &mut PinTable, now| table.in_use(now).get("f").map(|used| (used.manifest, used.seq));
        assert_eq!(of(&mut table, 75), Some((Some(7), 60)), "the min of all");
        assert_eq!(of(&mut table, 76), Some((Some(9), 60)));
        assert!(!table.counts("one", 76) && table.counts("two", 76));
        assert_eq!(of(&mut table, 126), Some((None, 60)));
        table.take("two", 2, uses(11, 80), 130);
        assert_eq!(of(&mut table, 131), Some((Some(11), 70)));
        assert_eq!(of(&mut table, 375), Some((None, 70)));
        assert_eq!(of(&mut table, 376), Some((None, 80)));
        assert_eq!(of(&mut table, 506), None);
    }

    #[test]
    fn a_statement_that_does_not_read_keeps_the_one_before_for_its_time() {
        let mut table = PinTable::new(75, 300);
        table.take_unread("one", 3, 0);
        assert!(table.has("one", 3) && table.in_use(0).is_empty());
        table.take("one", 4, uses(7, 70), 10);
        table.take_unread("one", 5, 50);
        assert_eq!(table.in_use(125)["f"].manifest, Some(7));
        table.renew("one", 125);
        assert_eq!(table.in_use(200)["f"], PartitionUse { manifest: Some(7), seq: 70 });
        assert_eq!(table.in_use(201)["f"], PartitionUse { manifest: None, seq: 70 });
        table.renew("two", 201);
        assert!(!table.has("two", 0));
    }
}
