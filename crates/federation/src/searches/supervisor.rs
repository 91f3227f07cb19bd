//! The supervisor of a search. It reports the end and releases the slot, even after a panic.

use super::{Key, Running, Searches};
use crate::search::Search;
use parking_lot::Mutex;
use std::sync::Arc;

/// The supervisor of one search, which ends when this is dropped.
pub(super) struct SearchSupervisor {
    searches: Arc<Searches>,
    id: String,
    key: Key,
    /// The search and its slot, until it has ended.
    open: Mutex<Option<(Arc<Search>, Running)>>,
}

impl SearchSupervisor {
    /// Supervises a search; `key` identifies client and question.
    pub(super) fn new(searches: Arc<Searches>, search: Arc<Search>, place: Running, key: Key) -> Arc<SearchSupervisor> {
        let (id, open) = (search.id.clone(), Mutex::new(Some((search, place))));
        Arc::new(SearchSupervisor { searches, id, key, open })
    }

    /// Waits for the end of the search, reports it, and forgets the search after `keep`.
    pub(super) async fn watch(self: Arc<SearchSupervisor>) {
        let settings = &self.searches.settings;
        // Not taken out: after a panic the task begins here again, and must find a search that has not ended.
        let search = self.open.lock().as_ref().map(|(search, _)| search.clone());
        if let Some(search) = search {
            let given_up = tokio::select! {
                () = search.all_reported() => "",
                () = search.ended() => "",
                () = tokio::time::sleep_until(search.deadline) => "it had not responded by the deadline",
                () = search.outbox.abandoned(settings.gone, settings.wait) => "no reader was left",
            };
            self.end(given_up);
        }
        tokio::time::sleep(settings.keep).await;
        let mut registry = self.searches.registry.lock();
        registry.all.remove(&self.id);
        registry.ended.retain(|ended| *ended != self.id);
    }

    /// Ends the search, once.
    fn end(&self, why_open: &str) {
        // Taking the value makes the end idempotent: `watch` and `Drop` may both call this.
        let Some((search, place)) = self.open.lock().take() else { return };
        search.seal(why_open);
        let searches = &self.searches;
        searches.registry.lock().note_end(search.arrived.elapsed());
        // The slot is released before the registry is locked again, because its own drop takes that lock.
        drop(place);
        let mut registry = searches.registry.lock();
        // Only its own entry: the same question may have started a newer search.
        if registry.joinable.get(&self.key) == Some(&self.id) {
            registry.joinable.remove(&self.key);
        }
        registry.ended.push_back(self.id.clone());
        while registry.ended.len() > searches.settings.searches_max {
            if let Some(oldest) = registry.ended.pop_front() {
                registry.all.remove(&oldest);
            }
        }
        // Ended searches are a convenience for readers that return; running ones need the bytes.
        if searches.budget.is_short() {
            searches.evict_ended(&mut registry, &self.id);
        }
    }
}

impl Drop for SearchSupervisor {
    fn drop(&mut self) {
        self.end("a fault of this server ended the search");
    }
}
