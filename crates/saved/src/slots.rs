//! The saved searches run by a process: all of them or, in a cluster, those in the slots assigned to it.
//!
//! Each slot is opened, dropped and passed on separately (`assigned.rs`), and has a share of the memory. Queries about
//! all slots of this gateway are answered here; other gateways answer for their own slots.

use super::assigned::AssignedSearches;
use super::backup::BackupParts;
use super::census::Census;
use super::claim::AssignmentCheck;
use super::figures::SavedFigures;
use super::parts::{Parts, SlotParts};
use super::records::RECORDS;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use super::settings::{SavedSettings, WebhookSettings};
use super::slot::{SLOTS, Slot};
use super::status::SavedSearchStatus;
use meridian_backend::{StoreError, View};
use meridian_federation::Refusal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The saved searches of a process.
pub struct SavedSlots {
    /// By slot; a single entry for all in a process that has them to itself.
    slots: Vec<AssignedSearches>,
    census: Option<Arc<Census>>,
}

impl SavedSlots {
    /// For a process that has them to itself. Opens them if [`SavedSettings::enabled`].
    pub fn whole(parts: Parts) -> SavedSlots {
        SavedSlots { slots: vec![AssignedSearches::open(SlotParts::whole(parts))], census: None }
    }

    /// For a gateway of a cluster: none until it takes a slot.
    pub fn divided(parts: Parts) -> SavedSlots {
        let census = Arc::new(Census::new(parts.backend.records(RECORDS), parts.settings.max));
        let parts = Parts { settings: part_of(&parts.settings), ..parts };
        let one = |slot| {
            let (parts, census) = (parts.clone(), Some(census.clone()));
            AssignedSearches::open(SlotParts { parts, slot: Some(slot), census })
        };
        SavedSlots { slots: Slot::all().map(one).collect(), census: Some(census) }
    }

    /// Opens and runs those of a slot while `holds`, once they are assigned to this process in this epoch. Blocks;
    /// needs the runtime.
    ///
    /// # Errors
    /// Those of the records and of the backend: nothing is lost, so retry. [`StoreError::Busy`]: another process has
    /// taken over.
    pub fn take(&self, slot: Slot, epoch: u64, holds: AssignmentCheck) -> Result<(), StoreError> {
        self.slots.get(usize::from(slot.number())).map_or(Ok(()), |slot| slot.take(epoch, holds))
    }

    /// Ends those of a slot for another process, which continues their packets and numbers. Blocks.
    ///
    /// # Errors
    /// Those of the records.
    pub fn pass_on(&self, slot: Slot) -> Result<(), StoreError> {
        self.slots.get(usize::from(slot.number())).map_or(Ok(()), AssignedSearches::pass_on)
    }

    /// Drops those of a slot, because they are assigned to another process.
    pub fn lose(&self, slot: Slot) {
        if let Some(slot) = self.slots.get(usize::from(slot.number())) {
            slot.lose();
        }
    }

    /// Starts matching, polling and sending, as [`SavedSearches::run`].
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn run(&self) -> std::io::Result<()> {
        self.each().try_for_each(|slot| slot.run())
    }

    /// Ends readers, because the process stops.
    pub fn close(&self) {
        self.slots.iter().for_each(AssignedSearches::close);
    }

    /// Processes the remaining events and writes the clean state. Blocks.
    ///
    /// # Errors
    /// The first error of the disk; the next start is then like one after a crash for that part.
    pub fn stop(&self) -> Result<(), StoreError> {
        let stopped: Vec<Result<(), StoreError>> = self.slots.iter().map(AssignedSearches::stop).collect();
        stopped.into_iter().collect()
    }

    /// Returns true if no slot is catching up.
    #[cfg(test)]
    pub(super) fn are_caught_up(&self) -> bool {
        self.each().all(|slot| slot.progress.is_caught_up())
    }

    fn each(&self) -> impl Iterator<Item = Arc<SavedSearches>> {
        self.slots.iter().map(AssignedSearches::current)
    }

    /// Returns the saved searches of the slot that would contain this id.
    fn of(&self, id: &str) -> Option<Arc<SavedSearches>> {
        let at = match self.census {
            Some(_) => usize::from(Slot::of_id(id)?.number()),
            None => 0,
        };
        self.slots.get(at).map(AssignedSearches::current)
    }

    /// Creates a saved search, as [`SavedSearches::create`], in a slot that runs here and has few.
    ///
    /// # Errors
    /// As [`SavedSearches::create`], and [`Refusal::Unavailable`] if no slot runs here.
    pub async fn create(&self, asked: &Value, view: &View) -> Result<Arc<SavedSearch>, Refusal> {
        let running = self.each().filter(|slot| self.census.is_none() || slot.is_enabled());
        match running.min_by_key(|slot| slot.len()) {
            Some(slot) => slot.create(asked, view).await,
            None => Err(Refusal::Unavailable("this gateway runs no saved searches now: try again".to_owned())),
        }
    }

    /// Returns the saved search with this id, if it runs here.
    pub fn get(&self, id: &str) -> Option<Arc<SavedSearch>> {
        self.of(id)?.get(id)
    }

    /// Returns the state of a saved search, with the dead letters of its webhook.
    pub fn status(&self, search: &SavedSearch) -> SavedSearchStatus {
        match self.of(&search.id) {
            Some(slot) => slot.status(search),
            None => search.status(0, true),
        }
    }

    /// Deletes a saved search that runs here, as [`SavedSearches::delete`].
    ///
    /// # Errors
    /// As [`SavedSearches::delete`].
    pub async fn delete(&self, id: &str) -> Result<bool, Refusal> {
        match self.of(id) {
            Some(slot) => slot.delete(id).await,
            None => Ok(false),
        }
    }

    /// Deletes the saved searches of a tenant, wherever they run, as [`SavedSearches::delete_all`].
    ///
    /// # Errors
    /// As [`SavedSearches::delete_all`].
    pub async fn delete_all(&self, tenant: &str) -> Result<(), Refusal> {
        for slot in self.each().collect::<Vec<_>>() {
            slot.delete_all(tenant).await?;
        }
        Ok(())
    }

    /// Returns the states of the saved searches here that are visible to a caller, as [`SavedSearches::list`].
    pub fn list(&self, view: &View, after: &str, limit: usize) -> (Vec<SavedSearchStatus>, bool) {
        let (mut all, mut more, mut upto) = (Vec::new(), false, None::<String>);
        for slot in self.each() {
            let (some, has_more) = slot.list(view, after, limit);
            if has_more {
                more = true;
                // After the last one of a truncated page, others of its slot may be missing.
                let last = some.last().map_or_else(|| after.to_owned(), |last| last.id.clone());
                upto = Some(upto.map_or(last.clone(), |upto: String| upto.min(last)));
            }
            all.extend(some);
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        let whole = all.len();
        all.retain(|status| upto.as_ref().is_none_or(|upto| status.id <= *upto));
        all.truncate(limit);
        more |= all.len() < whole;
        (all, more)
    }

    /// Guarantees each tenant a share of the max number of saved searches, in proportion to its weight.
    pub fn guarantee(&self, weights: &[(Arc<str>, u32)]) {
        self.each().for_each(|slot| slot.guarantee(weights.iter().cloned()));
        if let Some(census) = &self.census {
            census.guarantee(weights.iter().cloned());
        }
    }

    /// Saved searches of a tenant that run here, including those being created; large ones count as several.
    pub fn count(&self, tenant: &str) -> usize {
        self.each().map(|slot| slot.count(tenant)).sum()
    }

    /// Returns the records found damaged or missing, as [`SavedSearches::damaged`].
    pub fn damaged(&self) -> BTreeMap<String, String> {
        self.each().flat_map(|slot| slot.damaged()).collect()
    }

    /// Totals over the saved searches that run here, for monitoring.
    pub fn figures(&self) -> SavedFigures {
        self.each().map(|slot| slot.figures()).fold(SavedFigures::default(), |sum, one| sum + one)
    }

    /// Returns what decides which part of each record is backed up, for one tenant or for all. Blocks.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn backup_parts(&self, only: Option<&str>) -> Result<BackupParts, StoreError> {
        let of = |tenant: &str| {
            let mut ids = BTreeSet::new();
            for slot in self.each() {
                ids.extend(slot.ids_of(tenant)?);
            }
            Ok::<_, StoreError>((tenant.to_owned(), ids))
        };
        Ok(BackupParts::new(only.map(of).transpose()?))
    }
}

/// Returns the settings of one slot: limits of memory and calls are divided, since one process may run all slots.
fn part_of(settings: &SavedSettings) -> SavedSettings {
    let part = |of: usize| of.div_ceil(usize::from(SLOTS)).max(1);
    let webhook = &settings.webhook;
    SavedSettings {
        queue_bytes: part(settings.queue_bytes),
        buffer_bytes_total: part(settings.buffer_bytes_total),
        objects_max: part(settings.objects_max),
        polls_at_once: part(settings.polls_at_once),
        webhook: WebhookSettings {
            dead_bytes_total: part(webhook.dead_bytes_total),
            at_once: part(webhook.at_once),
            ..webhook.clone()
        },
        ..settings.clone()
    }
}
