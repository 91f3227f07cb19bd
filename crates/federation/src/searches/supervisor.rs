//! The supervisor of a search. It reports the end and releases the slot, even after a panic.

use super::registry::EndedSearch;
use super::{RunningSlot, Searches};
use crate::asker::SearchKey;
use crate::search::Search;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The supervisor of one search, which ends when this is dropped.
pub(super) struct SearchSupervisor {
    searches: Arc<Searches>,
    id: String,
    key: SearchKey,
    /// The search and its slot, until it has ended.
    open: Mutex<Option<(Arc<Search>, RunningSlot)>>,
}

impl SearchSupervisor {
    /// Supervises a search of this key.
    pub(super) fn new(
        searches: Arc<Searches>,
        search: Arc<Search>,
        place: RunningSlot,
        key: SearchKey,
    ) -> Arc<SearchSupervisor> {
        let (id, open) = (search.id.clone(), Mutex::new(Some((search, place))));
        Arc::new(SearchSupervisor { searches, id, key, open })
    }

    /// Waits for the end of the search, reports it, and forgets the search after `keep`. Returns earlier if the search
    /// is forgotten to make room: only its readers then keep its remains alive.
    pub(super) async fn watch(self: Arc<SearchSupervisor>) {
        let settings = &self.searches.settings;
        // Not taken out: after a panic the task restarts here, and must find a search that has not ended.
        let search = self.open.lock().as_ref().map(|(search, _)| search.clone());
        let mut forgotten = None;
        if let Some(search) = search {
            let given_up = tokio::select! {
                () = search.all_reported() => "",
                () = search.ended() => "",
                () = tokio::time::sleep_until(search.deadline) => "it had not responded by the deadline",
                () = search.outbox.abandoned(settings.gone, settings.wait) => "no reader was left",
            };
            forgotten = self.end(given_up);
        }
        let kept = tokio::time::sleep(settings.keep);
        match forgotten {
            Some(forgotten) => tokio::select! {
                // The sender is never used, only dropped.
                _ = forgotten => {}
                () = kept => {}
            },
            None => kept.await,
        }
        let mut registry = self.searches.registry.lock();
        registry.all.remove(&self.id);
        registry.ended.retain(|ended| ended.id != self.id);
    }

    /// Ends the search, once. The returned future completes when the search is forgotten.
    fn end(&self, why_open: &str) -> Option<oneshot::Receiver<()>> {
        // Taking the value makes the end idempotent: `watch` and `Drop` may both call this.
        let (search, place) = self.open.lock().take()?;
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
        let (kept, forgotten) = oneshot::channel();
        let tenant = search.view.caller().tenant.clone();
        registry.ended.push_back(EndedSearch { id: self.id.clone(), tenant, _kept: kept });
        while registry.ended.len() > searches.settings.searches_max {
            registry.forget_one();
        }
        // Ended searches are a convenience for readers that return; running ones need the bytes.
        if searches.budget.is_short() {
            searches.evict_ended(&mut registry, &self.id);
        }
        Some(forgotten)
    }
}

impl Drop for SearchSupervisor {
    fn drop(&mut self) {
        // Not awaited until forgotten: its entry goes when others need the room.
        drop(self.end("a fault of this server ended the search"));
    }
}
