//! Recovers saved searches from the data folder at a start.

use super::catch_up::RecoveredSearch;
use super::checkpoint::{self, Checkpoint, Positions, positions_of};
use super::checkpoints::Checkpoints;
use super::clean_state::{self, CleanState, SearchState};
use super::definition::Definition;
use super::poll_schedule;
use super::records::{SEEN, StoredRecords, is_id, seen_of, tenant_of};
use super::registry::SavedSearches;
use super::search::{SavedSearch, SentHashes};
use super::slot::Slot;
use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::StoreError;
use meridian_model::policy::access::Pattern;
use meridian_model::{Invalid, RecordChange};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Max attempts to change the clean state while others change the records.
const TURNS: usize = 16;

impl SavedSearches {
    /// Recovers all saved searches and records what to catch up on.
    ///
    /// # Errors
    /// Those of the backend: missed events are then unknown.
    pub(super) fn read_all(&self, stored: &StoredRecords<'_>) -> Result<(), StoreError> {
        let damaged = |name: &str, why: String| self.note_damage(name, why);
        let StoredRecords { names, get } = stored;
        let mut kept = get(clean_state::RECORD).and_then(CleanState::read).unwrap_or_else(|e| {
            damaged(clean_state::RECORD, e.to_string());
            None
        });
        let slots = self.slot_checkpoints(stored);
        kept = self.with_slots(kept, &slots, stored);
        let (was_kept, mut all) = (kept.is_some(), Vec::new());
        // Records written before copies existed.
        let copied = self.records.copied().unwrap_or_default();
        let uncopied = names.iter().filter(|name| is_id(name) && copied.binary_search(name).is_err());
        self.registry.lock().uncopied = uncopied.cloned().collect();
        for id in names.iter().filter(|name| is_id(name)) {
            match self.read(id, get, kept.as_mut().and_then(|kept| kept.searches.remove(id))) {
                Ok((search, since)) => {
                    let search = self.enter(search);
                    if let Some(pause) = search.definition.poll {
                        self.polls_due.add(poll_schedule::spread(pause, self.random.next_u64()), &search);
                    }
                    all.push((search, since));
                }
                Err(why) => damaged(id, why),
            }
        }
        // Repaired records are in use, and still listed.
        self.registry.lock().damaged.extend(self.records.mended());
        let kept = kept.unwrap_or_default();
        let of_default = (DEFAULT_TENANT.to_owned(), kept.objects);
        for (tenant, objects) in std::iter::once(of_default).chain(kept.objects_of) {
            self.fences.lock().restore(&tenant, objects);
        }
        // After all are in the registry: what was missed is reported to every one of them.
        self.resume(get(checkpoint::RECORD), slots, &all, was_kept)?;
        // A poll may have written its record after its saved search was deleted.
        let without_owner = |name: &&String| {
            name.strip_suffix(SEEN).is_some_and(|id| names.binary_search_by(|n| n.as_str().cmp(id)).is_err())
        };
        for name in names.iter().filter(without_owner) {
            if let Err(e) = self.records.remove(name) {
                tracing::warn!(error = %e, "an unused record could not be removed");
            }
        }
        Ok(())
    }

    /// Reports an unreadable record.
    pub(super) fn note_damage(&self, name: &str, why: String) {
        tracing::error!(record = name, why, "a record of saved searches cannot be read: it is skipped");
        self.registry.lock().damaged.entry(name.to_owned()).or_insert(why);
    }

    /// Copies records without a copy, one after another until the stop. Blocks.
    pub(super) fn copy_records(&self) {
        loop {
            let mut registry = self.registry.lock();
            let Some(id) = registry.uncopied.pop().filter(|_| registry.is_running()) else { return };
            drop(registry);
            if let Err(error) = self.records.copy(&id) {
                tracing::warn!(record = id, %error, "a record of a saved search has no copy");
            }
        }
    }

    /// Determines the events to catch up on, and removes the clean state.
    fn resume(
        &self,
        checkpoint: Result<Option<Vec<u8>>, StoreError>,
        slots: BTreeMap<Slot, Checkpoint>,
        all: &[RecoveredSearch],
        was_kept: bool,
    ) -> Result<(), StoreError> {
        let checkpoint = checkpoint.and_then(Checkpoint::read).map_err(|e| {
            let why = e.to_string();
            tracing::error!(record = checkpoint::RECORD, why, "the checkpoint of saved searches cannot be read");
            self.report_unknown(&why);
            self.registry.lock().damaged.insert(checkpoint::RECORD.to_owned(), why);
        });
        match checkpoint {
            Ok((mut checkpoint, bytes)) => {
                for tenant in checkpoint.of_tenants() {
                    let of_tenant = all.iter().filter(|(search, _)| *search.definition.tenant == *tenant);
                    let searches = of_tenant.map(|(search, _)| search.id.as_str()).collect();
                    checkpoint.follow_renames(&tenant, &searches, &positions_of(self.backend.as_ref(), &tenant)?);
                }
                let checkpoints = Checkpoints::new(checkpoint, slots);
                self.progress.resume_at(self.backend.as_ref(), &checkpoints, bytes)?;
                if checkpoints.whole().kept && !was_kept {
                    let why = "it is missing: the packets, dead letters and object positions of a clean stop are lost";
                    self.note_damage(clean_state::RECORD, why.to_owned());
                }
                self.note_missed(all, &checkpoints)?;
                if checkpoints.has_slots() {
                    self.progress
                        .write_waiting(self.records.as_ref(), self.backend.as_ref())
                        .and_then(|()| self.forget_slots())?;
                }
            }
            // Without a checkpoint the whole history would count as missed.
            Err(()) => {
                let tenants: BTreeSet<&Arc<str>> = all.iter().map(|(search, _)| &search.definition.tenant).collect();
                tenants
                    .into_iter()
                    .try_for_each(|tenant| self.progress.mark_all_processed(self.backend.as_ref(), tenant))?;
            }
        }
        all.iter().for_each(|(search, _)| self.progress.unread(search));
        if !was_kept {
            return Ok(());
        }
        // The order matters: after a crash between the two, the clean state is read again.
        let gone = self
            .progress
            .write_waiting(self.records.as_ref(), self.backend.as_ref())
            .and_then(|()| self.records.remove(clean_state::RECORD));
        if let Err(e) = gone {
            // Packets with old numbers must not follow those with new ones.
            if self.is_claimed() {
                return Err(e);
            }
            tracing::error!(error = %e, "the clean state of saved searches could not be removed: after a crash its packets are sent again");
        }
        Ok(())
    }

    /// A saved search, and the positions of collections at its creation.
    fn read(
        &self,
        id: &str,
        get: impl Fn(&str) -> Result<Option<Vec<u8>>, StoreError>,
        kept: Option<SearchState>,
    ) -> Result<(SavedSearch, Option<Positions>), String> {
        let bytes = get(id).map_err(|e| e.to_string())?.ok_or("it is gone")?;
        let seen = get(&seen_of(id)).map_err(|e| e.to_string())?.unwrap_or_default();
        self.read_from(id, &bytes, &seen, kept)
    }

    /// As above, from its record and the record of results that its polls have seen.
    pub(super) fn read_from(
        &self,
        id: &str,
        bytes: &[u8],
        seen: &[u8],
        kept: Option<SearchState>,
    ) -> Result<(SavedSearch, Option<Positions>), String> {
        let mut members: Map<String, Value> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        let created =
            members.shift_remove("created").and_then(|created| created.as_i64()).ok_or("it has no created")?;
        let since = members.shift_remove("since").map(serde_json::from_value).transpose().map_err(|e| e.to_string())?;
        // Absent in records from before there were tokens.
        let collections = match members.shift_remove("collections") {
            Some(Value::String(pattern)) => pattern.parse().map_err(|e: Invalid| e.to_string())?,
            Some(_) => return Err("its collections are not a pattern".to_owned()),
            None => Pattern::all(),
        };
        let tenant = tenant_of(&mut members).ok_or("its tenant is not a name")?;
        let mut definition = Definition::read(&Value::Object(members), self.searches.settings(), &self.settings)
            .map_err(|e| e.to_string())?;
        definition.tenant = tenant.into();
        definition.collections = collections;
        // After a crash numbers continue above all assigned before.
        let kept = kept.unwrap_or_else(|| SearchState { first: self.first_number(), ..SearchState::default() });
        let search = self.search(id.to_owned(), created, definition, kept);
        search.polled.lock().seen = SentHashes::of(seen);
        Ok((search, since))
    }

    /// Removes a tenant's deleted saved searches from the state of a clean stop, which exists while saved searches do
    /// not run.
    pub(super) fn forget_kept(&self, tenant: &str, deleted: &BTreeSet<String>) -> Result<(), StoreError> {
        for _ in 0..TURNS {
            let version = self.records.since(0)?.map_or(0, |news| news.version);
            // An unreadable one is left for the next start, which reports it.
            let Ok(Some(mut kept)) = self.records.get(clean_state::RECORD).and_then(CleanState::read) else {
                return Ok(());
            };
            kept.searches.retain(|id, _| !deleted.contains(id));
            kept.objects_of.remove(tenant);
            let bytes = serde_json::to_vec(&kept).map_err(|e| Invalid::new(e.to_string()))?;
            // In a folder this process is alone, and a copy would be older than the next state.
            if !self.records.is_shared() {
                return self.records.put(clean_state::RECORD, &bytes);
            }
            // Only if nothing was changed meanwhile: a process that starts to run saved searches consumes the state.
            if self.records.commit(version, &[RecordChange::put(clean_state::RECORD, bytes)])?.is_some() {
                return Ok(());
            }
        }
        Err(StoreError::Busy("the records of saved searches change too fast: try again".to_owned()))
    }

    /// Returns the ids of the saved searches of a tenant: those in the registry, and those of records not in use. Such
    /// records are damaged, or this process runs no saved searches. Blocks.
    pub(super) fn ids_of(&self, tenant: &str) -> Result<BTreeSet<String>, StoreError> {
        let named = |id: &String| {
            let members = self.records.get(id).ok().flatten().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            members.and_then(|mut members| tenant_of(&mut members)).is_some_and(|of| of == tenant)
        };
        let mut ids: BTreeSet<String> = self.records.names()?.into_iter().filter(|id| is_id(id) && named(id)).collect();
        let registry = self.registry.lock();
        let entries = registry.all.iter().filter(|(_, entry)| &*entry.search.definition.tenant == tenant);
        ids.extend(entries.map(|(id, _)| id.clone()));
        Ok(ids)
    }
}
