//! Creating and deleting saved searches.

use super::checkpoint::positions_of;
use super::clean_state::SearchState;
use super::definition::Definition;
use super::records::seen_of;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::View;
use meridian_federation::Area;
use meridian_federation::Location;
use meridian_federation::Refusal;
use meridian_model::Invalid;
use meridian_model::policy::quota::Quota;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

impl SavedSearches {
    /// Creates a saved search of the caller's tenant. It is on disk when this returns, and matches events acknowledged
    /// from then on.
    ///
    /// # Errors
    /// [`Refusal::Absent`] if the collection for its results does not exist.
    pub async fn create(self: &Arc<SavedSearches>, asked: &Value, view: &View) -> Result<Arc<SavedSearch>, Refusal> {
        let arrived = Instant::now();
        let mut definition = Definition::read(asked, self.searches.settings(), &self.settings)?;
        definition.tenant = view.caller().tenant.clone();
        definition.collections = view.caller().grant.collections.clone();
        definition.question.keep.as_ref().map_or(Ok(()), |keep| keep.allowed(view))?;
        // Checked before a slot is reserved: a wrong request must not displace a valid one.
        self.check(&definition, view)?;
        if let Some(census) = self.census.clone() {
            tokio::task::spawn_blocking(move || census.look()).await.map_err(failed)??;
        }
        let slot = self.reserve(view, definition.counts_as())?;
        let definition = self.located(definition, view, arrived).await?;
        if definition.poll.is_some() {
            // Polls store results of outside sources, and create no collection.
            self.searches.ready_to_keep(&definition.question, view).await?;
        }
        let saved = self.clone();
        // A separate task, so that a client that disconnects does not leave it half created.
        let made = tokio::spawn(async move {
            // Random, so that the id of a deleted saved search is never given to another one.
            let (number, rest) = (saved.random.next_u64(), saved.random.next_u64());
            let number = saved.slot.map_or(number, |slot| slot.number_of_search(number));
            let id = format!("{number:016x}{rest:016x}");
            let created = saved.clock.now();
            let mut record = definition.written();
            record.insert("created".to_owned(), created.into());
            record.insert("collections".to_owned(), definition.collections.to_string().into());
            record.insert("since".to_owned(), json!(positions_of(saved.backend.as_ref(), &definition.tenant)?));
            if &*definition.tenant != DEFAULT_TENANT {
                record.insert("tenant".to_owned(), (*definition.tenant).into());
            }
            let (records, name) = (saved.records.clone(), id.clone());
            // Others see the record once it is written. In this process only this task enters it.
            let creating = CreateGuard::begin(&saved, &id);
            // Written before it is matched: a crash must not lose a saved search whose packets were read already.
            let written = tokio::task::spawn_blocking(move || {
                records.put_twice(&name, Value::Object(record).to_string().as_bytes())
            });
            written.await.map_err(failed)??;
            let search = saved.enter(saved.search(id, created, definition, SearchState::default()));
            drop(creating);
            if search.definition.poll.is_some() {
                saved.polls_due.add(Instant::now(), &search);
            }
            drop(slot);
            Ok::<_, Refusal>(search)
        });
        made.await.map_err(failed)?
    }

    /// Checks that the named providers exist and accept the question.
    fn check(&self, definition: &Definition, view: &View) -> Result<(), Invalid> {
        let outside = self.searches.remote_takers(&definition.question, view)?;
        match definition.poll {
            Some(_) if outside.is_empty() => Err(Invalid::field(
                "poll_s",
                "no remote provider accepts this question, so there is none to poll: GET /providers lists them",
            )),
            None if !definition.reads_collections() => Err(Invalid::field(
                "poll_s",
                "only remote providers are named, which are polled at an interval: expected seconds",
            )),
            _ => Ok(()),
        }
    }

    /// Reserves room for one more of the caller's tenant, which counts as `count`.
    fn reserve(self: &Arc<SavedSearches>, view: &View, count: usize) -> Result<CreationSlot, Refusal> {
        let (tenant, ledger) = (&view.caller().tenant, &view.caller().ledger);
        let mut registry = self.registry.lock();
        let others = count as u64 - 1;
        let held = match &self.census {
            Some(census) => census.held_by(tenant),
            None => registry.counts.held_by(tenant),
        };
        ledger.within(Quota::SavedSearches, || held as u64 + others).map_err(Refusal::Quota)?;
        let full = Refusal::TooManySaved { most: self.settings.max };
        // Counted while the address is geocoded and the record written, without holding the lock for that long.
        if !registry.counts.take(tenant.clone(), count) {
            return Err(full);
        }
        if self.census.as_ref().is_some_and(|census| !census.take(tenant, count)) {
            registry.counts.give_back(tenant.clone(), count);
            return Err(full);
        }
        Ok(CreationSlot(self.clone(), tenant.clone(), count))
    }

    /// Returns the definition with its address geocoded. The position stays fixed if the places change later.
    async fn located(&self, mut definition: Definition, view: &View, arrived: Instant) -> Result<Definition, Refusal> {
        if matches!(definition.question.place, Some(Location::Address { .. })) {
            definition.question = self.searches.located(definition.question, view, arrived).await?;
            if let Some(&Area::Circle { lon, lat, radius_m }) = definition.question.area() {
                definition.set_place((lon, lat), radius_m);
            }
        }
        Ok(definition)
    }

    /// Deletes a saved search; its readers get the last packet. Returns `false` if none has this id.
    pub async fn delete(self: &Arc<SavedSearches>, id: &str) -> Result<bool, Refusal> {
        if self.get(id).is_none() {
            return Ok(false);
        }
        // Found here, so this call deletes it, even if the follower of shared records notices the deletion first.
        self.erase(id.to_owned()).await?;
        Ok(true)
    }

    /// Deletes the saved searches of a tenant, including damaged records that still name it. Saved searches being
    /// created are not included: see [`SavedSearches::count`].
    pub async fn delete_all(self: &Arc<SavedSearches>, tenant: &str) -> Result<(), Refusal> {
        let (saved, of) = (self.clone(), tenant.to_owned());
        let ids = tokio::task::spawn_blocking(move || saved.ids_of(&of)).await.map_err(failed)??;
        for id in ids.iter().cloned() {
            self.erase(id).await?;
        }
        let (saved, of) = (self.clone(), tenant.to_owned());
        tokio::task::spawn_blocking(move || saved.forget_kept(&of, &ids)).await.map_err(failed)??;
        self.progress.forget_tenant(tenant);
        self.fences.lock().forget(tenant);
        self.retention.forget(tenant);
        Ok(())
    }

    /// Removes the records of a saved search, and the saved search if it is in use.
    async fn erase(self: &Arc<SavedSearches>, id: String) -> Result<(), Refusal> {
        let saved = self.clone();
        let deleted = tokio::spawn(async move {
            let (records, name) = (saved.records.clone(), id.clone());
            let removed = tokio::task::spawn_blocking(move || {
                records.remove(&name)?;
                records.remove(&seen_of(&name))
            });
            removed.await.map_err(failed)??;
            // The record goes first: after a crash between the two the saved search must not come back.
            saved.leave(&id);
            Ok::<_, Refusal>(())
        });
        deleted.await.map_err(failed)?
    }
}

/// A slot of a saved search being created, released when dropped.
struct CreationSlot(Arc<SavedSearches>, Arc<str>, usize);

impl Drop for CreationSlot {
    fn drop(&mut self) {
        self.0.registry.lock().counts.give_back(self.1.clone(), self.2);
        if let Some(census) = &self.0.census {
            census.give_back(&self.1, self.2);
        }
    }
}

/// The id of a saved search whose record is written but not entered yet.
struct CreateGuard(Arc<SavedSearches>, String);

impl CreateGuard {
    fn begin(saved: &Arc<SavedSearches>, id: &str) -> CreateGuard {
        saved.registry.lock().creating.insert(id.to_owned());
        CreateGuard(saved.clone(), id.to_owned())
    }
}

impl Drop for CreateGuard {
    fn drop(&mut self) {
        self.0.registry.lock().creating.remove(&self.1);
    }
}

fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal::Failed(error.to_string())
}
