//! Totals over all saved searches, for monitoring.

use super::registry::SavedSearches;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

/// Totals over all saved searches, for monitoring.
#[derive(Debug, Clone, Copy, Default)]
pub struct SavedFigures {
    /// Saved searches.
    pub searches: usize,
    /// Events received, and events not processed.
    pub events: (u64, u64),
    /// Bytes of queued events.
    pub queue_bytes: usize,
    /// Bytes of kept packets.
    pub packet_bytes: usize,
    /// Matches of events with saved searches.
    pub matches: u64,
    /// Moving objects remembered.
    pub objects: usize,
    /// Webhooks: packets sent, failed calls, packets given up.
    pub webhooks: (u64, u64, u64),
    /// Bytes of dead letters.
    pub letter_bytes: usize,
    /// Polls done.
    pub polls: u64,
}

impl Add for SavedFigures {
    type Output = SavedFigures;

    fn add(self, other: SavedFigures) -> SavedFigures {
        SavedFigures {
            searches: self.searches + other.searches,
            events: (self.events.0 + other.events.0, self.events.1 + other.events.1),
            queue_bytes: self.queue_bytes + other.queue_bytes,
            packet_bytes: self.packet_bytes + other.packet_bytes,
            matches: self.matches + other.matches,
            objects: self.objects + other.objects,
            webhooks: (
                self.webhooks.0 + other.webhooks.0,
                self.webhooks.1 + other.webhooks.1,
                self.webhooks.2 + other.webhooks.2,
            ),
            letter_bytes: self.letter_bytes + other.letter_bytes,
            polls: self.polls + other.polls,
        }
    }
}

impl SavedSearches {
    /// Totals over all saved searches.
    pub fn figures(&self) -> SavedFigures {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (received, dropped) = self.event_queue.counts();
        SavedFigures {
            searches: self.registry.lock().all.len(),
            events: (received, dropped + load(&self.left_out)),
            queue_bytes: self.event_queue.bytes(),
            packet_bytes: self.retention.held(),
            matches: load(&self.matches),
            objects: self.fences.lock().len(),
            webhooks: (load(&self.webhooks.sent), load(&self.webhooks.failed), load(&self.webhooks.dead)),
            letter_bytes: self.webhooks.letters.bytes(),
            polls: load(&self.polls),
        }
    }
}
