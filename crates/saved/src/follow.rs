//! Saved searches whose records other servers of a cluster change. A tenant's are deleted where the tenant
//! is, and an owner moves its own into the bucket. What another server adds is matched here from when it is
//! heard of.

use super::poll::{self, SEEN};
use super::recovery::is_id;
use super::registry::SavedSearches;
use meridian_backend::StoreError;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::time::{Duration, MissedTickBehavior, interval};

/// Interval between reads of the records.
const LOOK: Duration = Duration::from_millis(500);
/// The same of one slot of several: what is created in it is created by its process, and only a removed tenant is heard of.
const LOOK_OF_SLOT: Duration = Duration::from_secs(2);

/// Follows the records, until dropped.
pub(super) async fn run(saved: Arc<SavedSearches>) {
    let mut ticks = interval(if saved.slot.is_some() { LOOK_OF_SLOT } else { LOOK });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        ticks.tick().await;
        let following = saved.clone();
        match tokio::task::spawn_blocking(move || following.follow()).await {
            Ok(Ok(())) => failing = false,
            Ok(Err(error)) if !failing => {
                tracing::warn!(%error, "changes of saved searches by other servers cannot be read: trying again");
                failing = true;
            }
            Ok(Err(_)) => {}
            // A panic was logged where it happened.
            Err(_) => {}
        }
    }
}

impl SavedSearches {
    /// Takes up what was created and deleted since the last call. Blocks.
    ///
    /// # Errors
    /// Those of the records.
    pub(super) fn follow(&self) -> Result<(), StoreError> {
        let mut version = self.followed.lock();
        let Some(mut news) = self.records.since(*version)? else { return Ok(()) };
        let mut known: Vec<String> = Vec::new();
        if news.whole {
            // Read again after the list of those in use: their records were written before. One that was just created here would be missing
            // from what was read before the list.
            known = self.registry.lock().all.keys().cloned().collect();
            let Some(later) = self.records.since(*version)? else { return Ok(()) };
            news = later;
        }
        let mut seen = HashMap::new();
        for change in &news.changes {
            if let (Some(id), Some(content)) = (change.name.strip_suffix(SEEN), &change.content) {
                seen.insert(id, content.as_slice());
            }
        }
        let mut there = BTreeSet::new();
        for change in news.changes.iter().filter(|change| is_id(&change.name)) {
            let id = change.name.as_str();
            match &change.content {
                Some(content) => {
                    there.insert(id);
                    self.take_up(id, content, seen.get(id).copied().unwrap_or_default());
                }
                None => self.leave(id),
            }
        }
        if news.whole {
            for id in known.iter().filter(|id| !there.contains(id.as_str())) {
                self.leave(id);
            }
        }
        *version = news.version;
        Ok(())
    }

    /// Enters a saved search of another server, by its record and the results that its polls have seen. It reads nothing more: a bucket that
    /// does not answer at this moment must not lose it.
    fn take_up(&self, id: &str, content: &[u8], seen: &[u8]) {
        {
            let registry = self.registry.lock();
            // One's own is entered by the request that creates it.
            if registry.all.contains_key(id) || registry.creating.contains(id) {
                return;
            }
        }
        match self.read_from(id, content, seen, None) {
            Ok((search, _)) => {
                let search = self.enter(search);
                if let Some(pause) = search.definition.poll {
                    self.polls_due.add(poll::spread(pause, self.random.next_u64()), &search);
                }
            }
            // It says what this version cannot read.
            Err(why) => tracing::warn!(record = id, why, "a saved search of another server is not taken up"),
        }
    }

    /// Takes a saved search out of use, whose record is gone: its readers get the last packet. Nothing happens if there is none of this id.
    pub(super) fn leave(&self, id: &str) {
        let mut registry = self.registry.lock();
        registry.damaged.remove(id);
        let Some(entry) = registry.all.remove(id) else { return };
        let tenant = &entry.search.definition.tenant;
        registry.counts.give_back(tenant.clone(), entry.search.definition.counts_as());
        drop(registry);
        if let Some(sender) = entry.sender {
            sender.abort();
        }
        let mut match_indexes = self.match_indexes.write();
        if let (Some(slot), Some(match_index)) = (entry.slot, match_indexes.get_mut(tenant)) {
            match_index.fences.remove(&entry.search.number);
            match_index.index.remove(slot);
            // Without a saved search, events of the tenant should not even be queued.
            if match_index.index.is_empty() {
                match_indexes.remove(tenant);
                self.event_queue.ignore(tenant);
            }
        }
        drop(match_indexes);
        // After it left the index: no match can follow the last packet.
        entry.search.end();
    }
}
