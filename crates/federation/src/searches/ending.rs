//! Ends searches: one, those of a tenant, or all.

use super::Searches;
use crate::search::Search;
use std::sync::Arc;

impl Searches {
    /// Ends a search; its readers receive the last packet. Returns `false` if none has this id.
    pub fn stop(&self, id: &str) -> bool {
        let search = self.get(id);
        if let Some(search) = &search {
            search.seal("the search was stopped");
        }
        search.is_some()
    }

    /// Ends the searches of a tenant. `forget` removes them too, so that a later tenant of the same name never sees
    /// them.
    pub fn stop_of(&self, tenant: &str, forget: bool) {
        let mut registry = self.registry.lock();
        let of_tenant = |search: &Arc<Search>| search.view.tenant() == tenant;
        let ended: Vec<Arc<Search>> = registry.all.values().filter(|search| of_tenant(search)).cloned().collect();
        if forget {
            registry.all.retain(|_, search| !of_tenant(search));
            registry.ended.retain(|ended| &*ended.tenant != tenant);
        }
        drop(registry);
        ended.iter().for_each(|search| search.seal("the tenant was suspended or removed"));
    }

    /// Ends all searches and refuses new ones, because the server stops.
    pub fn stop_all(&self) {
        // Copied out: `seal` must not run under the registry's lock, which the supervisors take.
        let all: Vec<Arc<Search>> = {
            let mut registry = self.registry.lock();
            // Under the same lock as admission, so that no search begins after the list is taken.
            registry.stopped = true;
            registry.all.values().cloned().collect()
        };
        all.iter().for_each(|search| search.seal("the server is stopping"));
    }
}
