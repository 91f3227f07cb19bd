//! The cache of segments opened for queries: their trees and footers stay in memory up to a limit.
//!
//! A segment in use by a query is not evicted: that would free nothing, and another query would read it a second time.
//! So the limit is exceeded while queries use more than it, and until the next poll of the bucket after that. Queries
//! share what they use.

use super::Part;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of an open segment besides its trees and footer.
const OPEN_BYTES: u64 = 8 << 10;
/// Estimated bytes of an open segment; it only shapes the table.
const USUAL_BYTES: u64 = 1 << 20;

/// Counters of the cache of open segments since the process began, and its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Segments opened.
    pub loaded: u64,
    /// Segments closed to make room for others.
    pub evicted: u64,
    /// Bytes held.
    pub bytes: u64,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<u64, Arc<Part>> for Weight {
    fn weight(&self, _: &u64, part: &Arc<Part>) -> u64 {
        let footers = part.segment().map_or(0, |segment| segment.footer_bytes());
        OPEN_BYTES + part.forest.bytes() as u64 + footers
    }
}

/// Counts evictions, and protects segments in use.
#[derive(Debug, Clone)]
struct InUse(Arc<AtomicU64>);

impl Lifecycle<u64, Arc<Part>> for InUse {
    type RequestState = ();

    fn is_pinned(&self, _: &u64, part: &Arc<Part>) -> bool {
        // One reference is the cache's own. A query that takes the part at this moment already has a clone, and keeps
        // it.
        Arc::strong_count(part) > 1
    }

    fn on_evict(&self, (): &mut (), _: u64, _: Arc<Part>) {
        // Relaxed: only statistics.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Open segments, by their number in the process.
#[derive(Debug)]
pub(crate) struct OpenParts {
    parts: Cache<u64, Arc<Part>, Weight, BuildHasherDefault<DefaultHasher>, InUse>,
    loaded: AtomicU64,
    evicted: Arc<AtomicU64>,
}

impl OpenParts {
    pub(crate) fn new(bytes: u64) -> OpenParts {
        let items = usize::try_from(bytes / USUAL_BYTES).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        let evicted = Arc::new(AtomicU64::new(0));
        // One shard: a segment may take most of the limit, and must not exceed a shard's share.
        let options = OptionsBuilder::new().estimated_items_capacity(items).weight_capacity(bytes).shards(1).build();
        let lifecycle = InUse(evicted.clone());
        let parts = match options {
            Ok(options) => Cache::with_options(options, Weight, BuildHasherDefault::default(), lifecycle),
            Err(_) => Cache::with(items, bytes, Weight, BuildHasherDefault::default(), lifecycle),
        };
        OpenParts { parts, loaded: AtomicU64::new(0), evicted }
    }

    /// Returns an open segment by its number.
    pub(super) fn get(&self, number: u64) -> Option<Arc<Part>> {
        self.parts.get(&number)
    }

    /// Adds a segment that was just opened.
    pub(super) fn insert(&self, part: &Arc<Part>) {
        self.loaded.fetch_add(1, Ordering::Relaxed);
        self.parts.insert(part.number, part.clone());
    }

    /// Returns its counters and size.
    pub(crate) fn stats(&self) -> TreeStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TreeStats { loaded: of(&self.loaded), evicted: of(&self.evicted), bytes: self.parts.weight() }
    }

    /// Closes segments that no query uses any more, as far as the limit is exceeded. The cache makes room when
    /// something is inserted, but not when a query ends.
    pub(crate) fn trim(&self) {
        let bound = self.parts.capacity();
        if self.parts.weight() > bound {
            self.parts.set_capacity(bound);
        }
    }

    /// Drops a segment that is no longer needed.
    pub(crate) fn forget(&self, number: u64) {
        self.parts.remove(&number);
    }
}
