//! Options of the operator.

use meridian_model::{Invalid, Schema, SeqLayout};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// How a store is opened. Create it with [`Options::at`] or [`Options::ephemeral`], then change fields as needed.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data folder.
    pub data: PathBuf,
    /// Whether everything is kept in memory and acknowledged at once; nothing survives the process.
    pub ephemeral: bool,
    /// Max bytes of decoded blocks kept for readers.
    pub cache_bytes: u64,
    /// Max bytes of memory trees over all collections. From half of it on the largest is flushed; when it is exhausted
    /// writes wait.
    pub memory_bytes: u64,
    /// Max bytes of log that a collection keeps before its memory trees are flushed.
    pub log_bytes: u64,
    /// Size of one log file.
    pub log_file_bytes: u64,
    /// Max bytes of one batch.
    pub batch_bytes: u64,
    /// Min events of a segment that a flush or merge cuts off for a shorter range of time.
    pub segment_rows_min: u32,
    /// Max events of one segment.
    pub segment_rows_max: u32,
    /// Max events of one merge, which keeps four bytes of each in memory. Runs beyond a quarter of it are not merged.
    pub merge_rows_max: u64,
    /// Max bytes on disk over all collections to serve archived segments: `.segment` files, which always stay, and
    /// Arrow rows. Beyond it the least recently used Arrow rows are removed, and read from GeoParquet.
    pub serving_bytes: u64,
    /// Min events of a segment that is archived (as GeoParquet) without a request.
    pub archive_rows_min: u32,
    /// How long files that were listed for other programs stay after a merge has replaced them.
    pub files_memory: Duration,
    /// How long an idempotency key is remembered.
    pub key_memory: Duration,
    /// Max idempotency keys remembered for a collection; more within [`Options::key_memory`] are refused.
    pub keys_max: usize,
    /// How long a snapshot stays available after its last use.
    pub snapshot_memory: Duration,
    /// Max duration of a query: objects of a bucket stay at least this long after the last manifest that names them.
    pub query_max: Duration,
    /// Max age of a write before it is flushed, for readers that follow the collections of a bucket; `None` without
    /// such readers.
    pub staleness_max: Option<Duration>,
    /// Max difference between the clocks of two machines, added to the age of responses from followed collections.
    pub skew: Duration,
    /// Whether followed collections are read up to the end of their log; otherwise up to the last flush.
    pub follow_log: bool,
    /// How long a write without a deadline waits for room.
    pub write_wait: Duration,
    /// Max bytes of the audit log; beyond it the oldest file is removed.
    pub audit_bytes: u64,
    /// Max bytes of pieces of a bucket's objects kept in memory; 0 disables them, also on disk.
    pub extent_memory: u64,
    /// Max bytes of such pieces kept in a file of the data folder.
    pub extent_disk: u64,
    /// Max bytes of trees of segments of followed collections: a segment is opened when a query needs it. `None` opens
    /// all with their manifest, and keeps them open.
    pub tree_bytes: Option<u64>,
    /// Whether to start the threads that flush and merge. A simulator leaves them out and calls
    /// [`crate::Collection::maintain`].
    pub background: bool,
}

impl Options {
    /// Returns options for a store in this folder.
    pub fn at(data: impl Into<PathBuf>) -> Options {
        Options {
            data: data.into(),
            ephemeral: false,
            cache_bytes: 512 << 20,
            memory_bytes: 256 << 20,
            log_bytes: 256 << 20,
            log_file_bytes: 64 << 20,
            batch_bytes: 64 << 20,
            segment_rows_min: 1 << 16,
            segment_rows_max: 1 << 24,
            merge_rows_max: 1 << 25,
            serving_bytes: 64 << 30,
            archive_rows_min: 1 << 16,
            files_memory: Duration::from_secs(3600),
            key_memory: Duration::from_secs(86_400),
            keys_max: 2_000_000,
            snapshot_memory: Duration::from_secs(300),
            query_max: Duration::from_secs(60),
            staleness_max: None,
            skew: Duration::ZERO,
            follow_log: false,
            write_wait: Duration::from_secs(10),
            audit_bytes: 256 << 20,
            extent_memory: 0,
            extent_disk: 0,
            tree_bytes: None,
            background: true,
        }
    }

    /// Returns options for a store in memory.
    pub fn ephemeral() -> Options {
        Options { ephemeral: true, ..Options::at("/ephemeral") }
    }
}

/// The failures that an acknowledged event survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing: the collection is kept in memory and is empty after a restart.
    Ephemeral,
    /// Process kill and power loss.
    #[default]
    Local,
    /// The loss of any minority of replicas.
    Replicated,
}

/// Max number of partitions of a collection.
pub const PARTITIONS_MAX: u16 = SeqLayout::Partitioned.partitions_max() as u16;

/// Settings of a collection; all but the durability and the number of partitions can be changed later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The failures that an acknowledged event survives.
    #[serde(default)]
    pub durability: Durability,
    /// Age, by event time, at which events are dropped; an interval's age begins at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Duration>,
    /// Bytes of events, in files and in memory, beyond which the oldest are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_bytes: Option<u64>,
    /// Number of partitions, each with a log of its own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub partitions: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { durability: Durability::default(), retention: None, retention_bytes: None, partitions: 1 }
    }
}

impl Settings {
    /// Returns the bytes of events beyond which one partition drops its oldest.
    pub(crate) fn retention_bytes_each(&self) -> Option<u64> {
        self.retention_bytes.map(|bytes| (bytes / u64::from(self.partitions.max(1))).max(1))
    }

    /// Checks that a collection with the settings `before` can change to these.
    ///
    /// # Errors
    /// Reports the setting that only a new collection accepts.
    pub(crate) fn may_follow(&self, before: &Settings) -> Result<(), Invalid> {
        if self.durability != before.durability {
            return Err(Invalid::field("durability", "the durability of a collection cannot be changed"));
        }
        if self.partitions != before.partitions {
            return Err(Invalid::field("partitions", "the number of partitions of a collection cannot be changed"));
        }
        Ok(())
    }
}

fn one() -> u16 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(partitions: &u16) -> bool {
    *partitions == 1
}

/// A collection without its events: the state that a change replaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its schema.
    pub schema: Schema,
    /// Its settings.
    pub settings: Settings,
}

/// Settings given by a caller; the others stay as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SettingsChange {
    /// Another durability, which only a new collection accepts.
    pub durability: Option<Durability>,
    /// Another retention by age, or none.
    pub retention: Option<Option<Duration>>,
    /// Another retention by size, or none.
    pub retention_bytes: Option<Option<u64>>,
    /// Another number of partitions, which only a new collection accepts.
    pub partitions: Option<u16>,
}

impl SettingsChange {
    /// Returns these settings with the given ones replaced.
    pub fn of(&self, settings: &Settings) -> Settings {
        Settings {
            durability: self.durability.unwrap_or(settings.durability),
            retention: self.retention.unwrap_or(settings.retention),
            retention_bytes: self.retention_bytes.unwrap_or(settings.retention_bytes),
            partitions: self.partitions.unwrap_or(settings.partitions),
        }
    }
}
