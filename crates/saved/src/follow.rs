//! Follows saved searches whose records are changed by other servers of a cluster. A tenant's are deleted with the
//! tenant, and an owner moves its own into the bucket. Those added by another server are matched here once their
//! records are seen.

use super::poll_schedule;
use super::records::{SEEN, is_id};
use super::registry::SavedSearches;
use meridian_backend::StoreError;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::time::{Duration, MissedTickBehavior, interval};

/// Interval between reads of the records.
const LOOK: Duration = Duration::from_millis(500);
/// As above, for one of several slots: its saved searches are created by its own process, so only removed tenants have
/// to be noticed.
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
    /// Applies what was created and deleted since the last call. Blocks.
    ///
    /// # Errors
    /// Those of the records.
    pub(super) fn follow(&self) -> Result<(), StoreError> {
        let mut version = self.followed.lock();
        let Some(mut news) = self.records.since(*version)? else { return Ok(()) };
        let mut known: Vec<String> = Vec::new();
        if news.whole {
            // Read again after the list of those in use, whose records were written earlier. Otherwise a record read
            // before the list would lack one that was just created here.
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

    /// Enters a saved search of another server, by its record and the results that its polls have seen. Reads nothing
    /// else: an unresponsive bucket must not lose it.
    fn take_up(&self, id: &str, content: &[u8], seen: &[u8]) {
        {
            let registry = self.registry.lock();
            // Its own are entered by the request that creates them.
            if registry.all.contains_key(id) || registry.creating.contains(id) {
                return;
            }
        }
        match self.read_from(id, content, seen, None) {
            Ok((search, _)) => {
                let search = self.enter(search);
                if let Some(pause) = search.definition.poll {
                    self.polls_due.add(poll_schedule::spread(pause, self.random.next_u64()), &search);
                }
            }
            // It has something this version cannot read.
            Err(why) => tracing::warn!(record = id, why, "a saved search of another server is not taken up"),
        }
    }

    /// Removes a saved search whose record is gone: its readers get the last packet. Does nothing if none has this id.
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
