//! Who sees a search to its end. That is told, and its place given back, whatever becomes of him.

use super::{Key, Running, Searches};
use crate::search::Search;
use parking_lot::Mutex;
use std::sync::Arc;

/// The guardian of a search: it is over when he is dropped.
pub(super) struct SearchSupervisor {
    searches: Arc<Searches>,
    id: String,
    key: Key,
    /// The search and its place, until it is over.
    open: Mutex<Option<(Arc<Search>, Running)>>,
}

impl SearchSupervisor {
    /// Of a search; `key` says who asks what.
    pub(super) fn new(searches: Arc<Searches>, search: Arc<Search>, place: Running, key: Key) -> Arc<SearchSupervisor> {
        let (id, open) = (search.id.clone(), Mutex::new(Some((search, place))));
        Arc::new(SearchSupervisor { searches, id, key, open })
    }

    /// Waits for the end of the search, tells it, and forgets it after a while.
    pub(super) async fn watch(self: Arc<SearchSupervisor>) {
        let settings = &self.searches.settings;
        let search = self.open.lock().as_ref().map(|(search, _)| search.clone());
        if let Some(search) = search {
            let given_up = tokio::select! {
                () = search.all_told() => "",
                () = search.ended() => "",
                () = tokio::time::sleep_until(search.deadline.into()) => "it had not answered at the deadline",
                () = search.outbox.abandoned(settings.gone, settings.wait) => "nobody was there to read any more",
            };
            self.end(given_up);
        }
        tokio::time::sleep(settings.keep).await;
        let mut registry = self.searches.registry.lock();
        registry.all.remove(&self.id);
        registry.ended.retain(|ended| *ended != self.id);
    }

    /// Tells the end of the search, once.
    fn end(&self, why_open: &str) {
        let Some((search, place)) = self.open.lock().take() else { return };
        search.seal(why_open);
        let searches = &self.searches;
        searches.registry.lock().note_end(search.arrived.elapsed());
        drop(place);
        let mut registry = searches.registry.lock();
        if registry.joinable.get(&self.key) == Some(&self.id) {
            registry.joinable.remove(&self.key);
        }
        registry.ended.push_back(self.id.clone());
        while registry.ended.len() > searches.settings.searches_max {
            if let Some(oldest) = registry.ended.pop_front() {
                registry.all.remove(&oldest);
            }
        }
        if searches.budget.is_short() {
            searches.make_room(&mut registry, &self.id);
        }
    }
}

impl Drop for SearchSupervisor {
    fn drop(&mut self) {
        self.end("a fault of this server ended the search");
    }
}
