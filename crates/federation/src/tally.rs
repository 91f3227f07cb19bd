//! Counters over all searches, for monitoring.

use std::sync::atomic::AtomicU64;

/// Counters over all searches.
#[derive(Debug, Default)]
pub struct Tally {
    /// Searches started.
    pub begun: AtomicU64,
    /// Requests that joined a running search.
    pub joined: AtomicU64,
    /// Requests refused for lack of a slot.
    pub refused: AtomicU64,
    /// Work discarded because its search had ended.
    pub late: AtomicU64,
    /// Work lost to a panic.
    pub lost: AtomicU64,
    /// Results sent.
    pub results: AtomicU64,
    /// Results left out as duplicates or near duplicates.
    pub duplicates: AtomicU64,
    /// Results left out because they do not match the question.
    pub unmatched: AtomicU64,
    /// Images that the model labelled.
    pub images_seen: AtomicU64,
    /// Images that could not be fetched or decoded.
    pub images_failed: AtomicU64,
    /// Images that took longer than their results may wait.
    pub images_late: AtomicU64,
    /// Images that were not fetched, because too many were pending.
    pub images_passed: AtomicU64,
}
