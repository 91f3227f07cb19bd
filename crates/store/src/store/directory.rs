//! The open collections, by tenant and name.

use crate::collection::Collection;
use crate::store::partitions::Partitions;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All open collections. Every query passes here, so the lock is never held over disk access, and a lookup allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Directory(RwLock<BTreeMap<String, BTreeMap<String, Partitions>>>);

impl Directory {
    /// The collection of this name.
    pub(crate) fn get(&self, tenant: &str, name: &str) -> Option<Partitions> {
        self.0.read().get(tenant)?.get(name).cloned()
    }

    /// The collections of a tenant in order of name.
    pub(crate) fn of(&self, tenant: &str) -> Vec<Partitions> {
        self.0.read().get(tenant).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// All partitions in order of tenant, name and number.
    pub(crate) fn all(&self) -> Vec<Arc<Collection>> {
        self.0.read().values().flat_map(BTreeMap::values).flat_map(|of| of.iter().cloned()).collect()
    }

    /// Adds a collection, or replaces the one of its name.
    pub(crate) fn insert(&self, tenant: &str, name: &str, collection: Partitions) {
        self.0.write().entry(tenant.to_owned()).or_default().insert(name.to_owned(), collection);
    }

    /// Puts a collection in the place of the one of this name, under its own name: at no time is there neither.
    pub(crate) fn replace(&self, tenant: &str, name: &str, new: &str, collection: Partitions) {
        let mut tenants = self.0.write();
        let of_tenant = tenants.entry(tenant.to_owned()).or_default();
        of_tenant.remove(name);
        of_tenant.insert(new.to_owned(), collection);
    }

    /// Takes the collection of this name out.
    pub(crate) fn remove(&self, tenant: &str, name: &str) -> Option<Partitions> {
        let mut tenants = self.0.write();
        let of_tenant = tenants.get_mut(tenant)?;
        let collection = of_tenant.remove(name);
        // Nothing is kept of a tenant without collections.
        if of_tenant.is_empty() {
            tenants.remove(tenant);
        }
        collection
    }

    /// Takes all partitions out.
    pub(crate) fn clear(&self) -> Vec<Arc<Collection>> {
        let tenants = std::mem::take(&mut *self.0.write());
        tenants
            .into_values()
            .flat_map(BTreeMap::into_values)
            .flat_map(|of| of.iter().cloned().collect::<Vec<_>>())
            .collect()
    }
}
