//! Counters.

use meridian_model::Bounds;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one collection since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    blocks_read: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    bytes_read: AtomicU64,
    /// Bytes of writes as stored in the log.
    bytes_taken: AtomicU64,
    log_bytes: AtomicU64,
    flush_bytes: AtomicU64,
    merge_bytes: AtomicU64,
    rest_bytes: AtomicU64,
    sidecar_bytes: AtomicU64,
    flush_rows: AtomicU64,
    merge_rows: AtomicU64,
    syncs: AtomicU64,
    groups: AtomicU64,
    /// Events removed by retention.
    expired: AtomicU64,
    job_panics: AtomicU64,
    /// Microseconds for which installs held the lock that commits take; the next field has the longest.
    install_us: AtomicU64,
    install_us_max: AtomicU64,
}

impl Counters {
    pub(crate) fn add_install(&self, micros: u64) {
        self.install_us.fetch_add(micros, Ordering::Relaxed);
        self.install_us_max.fetch_max(micros, Ordering::Relaxed);
    }

    /// Returns the total of all installs, and the longest.
    pub(crate) fn installs_us(&self) -> (u64, u64) {
        (self.install_us.load(Ordering::Relaxed), self.install_us_max.load(Ordering::Relaxed))
    }
}

macro_rules! counters {
    ($($add:ident $get:ident $field:ident),*) => {
        impl Counters {
            $(pub(crate) fn $add(&self, n: u64) { self.$field.fetch_add(n, Ordering::Relaxed); }
              pub(crate) fn $get(&self) -> u64 { self.$field.load(Ordering::Relaxed) })*
        }
    };
}

counters!(
    add_blocks_read blocks_read blocks_read, add_cache_hits cache_hits cache_hits,
    add_cache_misses cache_misses cache_misses, add_bytes_read bytes_read bytes_read,
    add_bytes_taken bytes_taken bytes_taken, add_log_bytes log_bytes log_bytes,
    add_flush_bytes flush_bytes flush_bytes, add_merge_bytes merge_bytes merge_bytes,
    add_archive_bytes rest_bytes rest_bytes, add_sidecar_bytes sidecar_bytes sidecar_bytes,
    add_flush_rows flush_rows flush_rows, add_merge_rows merge_rows merge_rows,
    add_syncs syncs syncs, add_groups groups groups, add_expired expired expired,
    add_job_panics job_panics job_panics
);

/// The statistics of a collection. Counts of bytes and blocks start at zero when the store is opened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionStats {
    /// Events that the newest snapshot sees.
    pub events: u64,
    /// Rows that were replaced or deleted and not yet dropped.
    pub dead_rows: u64,
    /// The bounding box of all rows, dead ones included; in time, of rows with a time. `None` for an empty
    /// collection.
    pub bounds: Option<Bounds>,
    /// Bytes on disk, without the log.
    pub bytes: u64,
    /// Of these, bytes of archives (GeoParquet).
    pub rest_bytes: u64,
    /// Of these, bytes of Arrow rows: only a cache where there is an archive too.
    pub rows_bytes: u64,
    /// Segment files.
    pub segments: u64,
    /// Memory trees.
    pub runs: u64,
    /// Rows in memory trees.
    pub memory_rows: u64,
    /// Bytes of memory trees.
    pub memory_bytes: u64,
    /// Bytes of log that a restart would replay.
    pub log_tail_bytes: u64,
    /// Position of the newest write.
    pub position: u64,
    /// Idempotency keys remembered.
    pub keys: u64,
    /// Blocks of rows handed to readers, from memory or disk.
    pub blocks_read: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks fetched from disk.
    pub cache_misses: u64,
    /// Bytes fetched from disk.
    pub bytes_read: u64,
    /// Bytes of writes as stored in the log, without record heads. Write amplification is relative to this.
    pub bytes_taken: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Bytes written by flushes.
    pub flush_bytes: u64,
    /// Bytes written by merges of segments.
    pub merge_bytes: u64,
    /// Bytes written to archive segments, and to rebuild the files beside them.
    pub rest_written_bytes: u64,
    /// Bytes of manifests, and of the files of dead rows and keys.
    pub sidecar_bytes: u64,
    /// Rows written by flushes.
    pub flush_rows: u64,
    /// Rows written by merges of segments; divided by `flush_rows`, the number of times an event was rewritten.
    pub merge_rows: u64,
    /// Max runs of segments over one period, which a query about an instant reads besides memory trees.
    pub depth: u64,
    /// Max of `depth` once all merges are done.
    pub depth_bound: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Groups committed: writes per group show how well group commit works.
    pub groups: u64,
    /// Events removed because they were past the retention.
    pub expired: u64,
    /// Flushes, merges and other jobs that ended by a fault of the program.
    pub job_panics: u64,
    /// Microseconds for which no write could be committed while the outcome of a flush or merge was installed.
    pub install_us: u64,
    /// The longest of these, in microseconds.
    pub install_us_max: u64,
    /// Why the collection refuses writes, if it does.
    pub refuses: Option<String>,
}

impl CollectionStats {
    /// Adds the statistics of another partition.
    pub fn add(&mut self, other: &CollectionStats) {
        let sums = [
            (&mut self.events, other.events),
            (&mut self.dead_rows, other.dead_rows),
            (&mut self.bytes, other.bytes),
            (&mut self.rest_bytes, other.rest_bytes),
            (&mut self.rows_bytes, other.rows_bytes),
            (&mut self.segments, other.segments),
            (&mut self.runs, other.runs),
            (&mut self.memory_rows, other.memory_rows),
            (&mut self.memory_bytes, other.memory_bytes),
            (&mut self.log_tail_bytes, other.log_tail_bytes),
            (&mut self.position, other.position),
            (&mut self.keys, other.keys),
            (&mut self.blocks_read, other.blocks_read),
            (&mut self.cache_hits, other.cache_hits),
            (&mut self.cache_misses, other.cache_misses),
            (&mut self.bytes_read, other.bytes_read),
            (&mut self.bytes_taken, other.bytes_taken),
            (&mut self.log_bytes, other.log_bytes),
            (&mut self.flush_bytes, other.flush_bytes),
            (&mut self.merge_bytes, other.merge_bytes),
            (&mut self.rest_written_bytes, other.rest_written_bytes),
            (&mut self.sidecar_bytes, other.sidecar_bytes),
            (&mut self.flush_rows, other.flush_rows),
            (&mut self.merge_rows, other.merge_rows),
            (&mut self.syncs, other.syncs),
            (&mut self.groups, other.groups),
            (&mut self.expired, other.expired),
            (&mut self.job_panics, other.job_panics),
            (&mut self.install_us, other.install_us),
        ];
        sums.into_iter().for_each(|(all, one)| *all = all.saturating_add(one));
        self.depth = self.depth.max(other.depth);
        self.depth_bound = self.depth_bound.max(other.depth_bound);
        self.install_us_max = self.install_us_max.max(other.install_us_max);
        self.bounds = match (self.bounds, other.bounds) {
            (Some(all), Some(one)) => Some(all.union(&one)),
            (all, one) => all.or(one),
        };
        if self.refuses.is_none() {
            self.refuses.clone_from(&other.refuses);
        }
    }

    /// Returns the bytes written to disk by all parts of the store.
    pub fn bytes_written(&self) -> u64 {
        self.log_bytes + self.flush_bytes + self.merge_bytes + self.rest_written_bytes + self.sidecar_bytes
    }

    /// Returns the bytes written to disk for each byte taken from clients; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.bytes_taken == 0 {
            return 0.0;
        }
        self.bytes_written() as f64 / self.bytes_taken as f64
    }
}

/// Counters of the cache of remote objects since the process began, and its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtentStats {
    /// Extents found in memory.
    pub memory_hits: u64,
    /// Extents not found there.
    pub memory_misses: u64,
    /// Extents found on disk.
    pub disk_hits: u64,
    /// Extents looked up on disk without success.
    pub disk_misses: u64,
    /// Extents that were damaged on disk and read again.
    pub damaged: u64,
    /// Bytes read from the bucket.
    pub bytes_fetched: u64,
    /// Range requests to the bucket.
    pub ranges_fetched: u64,
    /// Bytes held in memory.
    pub memory_bytes: u64,
    /// Bytes held on disk.
    pub disk_bytes: u64,
}
