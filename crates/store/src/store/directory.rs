//! The open collections, by tenant and name.

use crate::collection::Collection;
use crate::store::partitions::Partitions;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The collections of a tenant by name. Names are shared, because each change copies them.
type CollectionsByName = BTreeMap<Arc<str>, Partitions>;
/// The collections of all tenants.
type Tenants = BTreeMap<Arc<str>, Arc<CollectionsByName>>;

/// All open collections. Every query passes through here, so a lookup takes no lock and allocates nothing. A change
/// copies the list of tenants and that of one tenant's collections.
#[derive(Debug, Default)]
pub(crate) struct Directory(ArcSwap<Tenants>);

impl Directory {
    /// Returns the collection of this name.
    pub(crate) fn get(&self, tenant: &str, name: &str) -> Option<Partitions> {
        self.0.load().get(tenant)?.get(name).cloned()
    }

    /// Returns the collections of a tenant in order of name.
    pub(crate) fn of(&self, tenant: &str) -> Vec<Partitions> {
        self.0.load().get(tenant).into_iter().flat_map(|of| of.values()).cloned().collect()
    }

    /// Returns all partitions in order of tenant, name and number.
    pub(crate) fn all(&self) -> Vec<Arc<Collection>> {
        self.0.load().values().flat_map(|of| of.values()).flat_map(|of| of.iter().cloned()).collect()
    }

    /// Adds a collection, or replaces the one with its name.
    pub(crate) fn insert(&self, tenant: &str, name: &str, collection: Partitions) {
        self.change(tenant, |of_tenant| of_tenant.insert(name.into(), collection.clone()));
    }

    /// Replaces a collection with one under another name, so that at no time both are absent.
    pub(crate) fn replace(&self, tenant: &str, name: &str, new: &str, collection: Partitions) {
        self.change(tenant, |of_tenant| {
            of_tenant.remove(name);
            of_tenant.insert(new.into(), collection.clone())
        });
    }

    /// Removes and returns the collection of this name.
    pub(crate) fn remove(&self, tenant: &str, name: &str) -> Option<Partitions> {
        self.change(tenant, |of_tenant| of_tenant.remove(name))
    }

    /// Removes and returns all partitions.
    pub(crate) fn clear(&self) -> Vec<Arc<Collection>> {
        let tenants = self.0.swap(Arc::default());
        tenants.values().flat_map(|of| of.values()).flat_map(|of| of.iter().cloned()).collect()
    }

    /// Changes the collections of a tenant. The change is repeated if another one comes in between.
    fn change(
        &self,
        tenant: &str,
        change: impl Fn(&mut CollectionsByName) -> Option<Partitions>,
    ) -> Option<Partitions> {
        let mut replaced = None;
        self.0.rcu(|tenants| {
            let mut tenants = Tenants::clone(tenants);
            let mut of_tenant = tenants.remove(tenant).map_or_else(CollectionsByName::new, Arc::unwrap_or_clone);
            replaced = change(&mut of_tenant);
            // A tenant without collections has no entry.
            if !of_tenant.is_empty() {
                tenants.insert(tenant.into(), Arc::new(of_tenant));
            }
            tenants
        });
        replaced
    }
}
