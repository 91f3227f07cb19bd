//! The collections visible to one caller.

use crate::backend::Backend;
use crate::collection::Collection;
use meridian_admission::identity::Caller;
use meridian_model::Schema;
use meridian_model::policy::access::{Action, Decision, Target};
use meridian_store::{Damaged, Definition, Retyped, Settings, StoreError};
use std::sync::Arc;

/// The collections of a caller's tenant that its grant covers. All work for a caller goes through its view, so that
/// nothing outside of it can be named.
#[derive(Debug, Clone)]
pub struct View {
    backend: Arc<dyn Backend>,
    caller: Caller,
}

impl View {
    /// Makes the view of a caller.
    pub fn new(backend: Arc<dyn Backend>, caller: Caller) -> View {
        View { backend, caller }
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        &self.caller.tenant
    }

    /// Returns true if the caller may do this to a collection.
    pub fn may(&self, action: Action, name: &str) -> bool {
        self.caller.grant.decide(action, Target::Collection(name)) == Decision::Allowed
    }

    /// Returns the collection with this name; `None` if it is not visible to the caller or is damaged. Returns at once.
    ///
    /// # Errors
    /// As [`Backend::collection`], here and below.
    pub fn collection(&self, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        View::find(&*self.backend, &self.caller, name)
    }

    /// Returns the collection with this name; `None` if it does not exist or is not visible to the caller. Returns at
    /// once.
    ///
    /// # Errors
    /// As [`Backend::existing`].
    pub fn existing(&self, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        if self.covers(name) { self.backend.existing(self.tenant(), name) } else { Ok(None) }
    }

    /// As [`View::collection`], without a view, for the one request where the shortcut is worth it.
    pub fn find(backend: &dyn Backend, caller: &Caller, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        if caller.grant.collections.covers(name) { backend.collection(&caller.tenant, name) } else { Ok(None) }
    }

    /// Returns the collections, ordered by name. Returns at once.
    pub fn list(&self) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        let mut collections = self.backend.list(self.tenant())?;
        collections.retain(|collection| self.covers(collection.name()));
        Ok(collections)
    }

    /// Returns the collections that cannot be opened, ordered by name. Returns at once.
    pub fn damaged(&self) -> Result<Vec<Damaged>, StoreError> {
        let mut damaged = self.backend.damaged(self.tenant())?;
        damaged.retain(|damaged| self.covers(&damaged.name));
        Ok(damaged)
    }

    /// Creates a collection, which the caller must be allowed to manage: callers check that with [`View::may`].
    ///
    /// # Errors
    /// As [`Backend::create`].
    pub fn create(&self, name: &str, schema: Schema, settings: Settings) -> Result<Arc<dyn Collection>, StoreError> {
        self.backend.create(self.tenant(), name, schema, settings)
    }

    /// Removes a collection and its events; returns whether it existed.
    ///
    /// # Errors
    /// As [`Backend::remove`].
    pub fn remove(&self, name: &str) -> Result<bool, StoreError> {
        self.backend.remove(self.tenant(), name)
    }

    /// Removes a collection that was created then, has this definition, and was never written to; returns whether
    /// there was one of this name.
    ///
    /// # Errors
    /// As [`Backend::remove_unwritten`].
    pub fn remove_unwritten(&self, name: &str, created: i64, seen: &Definition) -> Result<bool, StoreError> {
        self.backend.remove_unwritten(self.tenant(), name, created, seen)
    }

    /// Renames a collection. The caller must be allowed to manage it under the new name: callers check that with
    /// [`View::may`]. Returns whether it existed.
    ///
    /// # Errors
    /// As [`Backend::rename`].
    pub fn rename(&self, name: &str, new: &str) -> Result<bool, StoreError> {
        self.backend.rename(self.tenant(), name, new)
    }

    /// Replaces schema and settings of a collection that was never written to, which the caller must be allowed to
    /// manage.
    ///
    /// # Errors
    /// As [`Backend::retype`].
    pub fn retype(&self, name: &str, schema: Schema, settings: Settings) -> Result<Retyped, StoreError> {
        self.backend.retype(self.tenant(), name, schema, settings)
    }

    /// Returns true if a collection with this name would be visible to the caller.
    pub fn covers(&self, name: &str) -> bool {
        self.caller.grant.collections.covers(name)
    }
}
