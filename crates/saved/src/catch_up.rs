//! Catch-up: at a start, the matcher first processes the events written since the checkpoint, before a crash or by
//! other tools.
//!
//! If there are too many, only the newest are processed, and each saved search reports what was left out.

use super::checkpoint::{LogPosition, Positions, unopened_of};
use super::checkpoints::Checkpoints;
use super::missed::MissedEvents;
use super::progress::Origin;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_backend::StoreError;
use meridian_federation::provider::LocalProvider;
use meridian_model::Seq;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Retry interval for reads of events whose server does not respond.
const RETRY: Duration = Duration::from_millis(250);

/// A saved search from before the start, and the positions of collections at its creation, if its record has them.
pub(super) type RecoveredSearch = (Arc<SavedSearch>, Option<Positions>);

impl SavedSearches {
    /// Records what these saved searches have missed, up to positions that the queue's events follow or overlap.
    ///
    /// # Errors
    /// Those of [`meridian_backend::Backend::list`] and [`meridian_backend::Backend::damaged`].
    pub(super) fn note_missed(
        &self,
        searches: &[RecoveredSearch],
        checkpoints: &Checkpoints,
    ) -> Result<(), StoreError> {
        let mut hearing: BTreeMap<&Arc<str>, Vec<&RecoveredSearch>> = BTreeMap::new();
        for one in searches.iter().filter(|(search, _)| search.definition.reads_collections()) {
            hearing.entry(&one.0.definition.tenant).or_default().push(one);
        }
        for (tenant, searches) in hearing {
            // Read before the list, which may contain one that is opened meanwhile.
            let unopened = unopened_of(self.backend.as_ref(), tenant)?;
            let there = self.backend.list(tenant)?;
            for name in unopened.iter().filter(|name| there.iter().all(|collection| collection.name() != **name)) {
                let detail = format!("{name:?} cannot be opened now: events that were written to it may be missing");
                for (search, _) in searches.iter().filter(|(search, _)| search.definition.covers(name)) {
                    search.report(&self.retention, LocalProvider::NAME, "error", &detail, 0, 0);
                }
            }
            for collection in there {
                // The queue already receives events, so there is no gap; the queue skips events in both.
                let (upto, made) = (collection.position(), collection.created());
                let at = LogPosition { made, position: upto.clone() };
                self.opened_at.lock().entry(tenant.clone()).or_default().insert(collection.name().to_owned(), at);
                let from = |(search, since): &&RecoveredSearch| {
                    let from = checkpoints.of(&search.id).from(
                        &search.id,
                        tenant,
                        since.as_ref(),
                        collection.name(),
                        made,
                        &upto,
                    );
                    (from != upto).then_some((search.number, from))
                };
                let covering = searches.iter().filter(|(search, _)| search.definition.covers(collection.name()));
                let from: HashMap<u64, meridian_model::Positions> = covering.filter_map(from).collect();
                if !from.is_empty() {
                    self.missed.lock().push(MissedEvents { tenant: tenant.clone(), collection, upto, from });
                }
            }
        }
        Ok(())
    }

    /// Returns true if a write existed when these saved searches were opened.
    pub(super) fn was_opened_after(&self, place: Origin<'_>, made: i64, partition: usize, position: u64) -> bool {
        let opened_at = self.opened_at.lock();
        let at = opened_at.get(place.tenant).and_then(|places| places.get(&**place.collection));
        at.is_some_and(|at| at.made == made && position <= at.position.at(partition))
    }

    /// Processes missed events. Returns `false` if it was stopped: the next start then repeats it.
    pub(super) fn catch_up(&self) -> bool {
        let all = std::mem::take(&mut *self.missed.lock());
        for missed in all {
            // A panic costs the rest of this collection, and neither that of others nor the record of the end.
            let failed = match catch_unwind(AssertUnwindSafe(|| self.process_patiently(&missed))) {
                Ok(Ok(true)) => None,
                Ok(Ok(false)) => return false,
                Ok(Err(e)) => Some(e.to_string()),
                Err(_) => Some("a fault of the program".to_owned()),
            };
            if let Some(why) = failed {
                let name = missed.collection.name();
                tracing::error!(collection = name, error = %why, "events missed by saved searches cannot be read");
                // Reported, and then marked as processed: repeating a damaged read at each start would never end.
                self.report_missed(&missed, 0, &format!("missed events of {name:?} cannot be read: {why}"));
            }
            let collection = missed.collection.name().into();
            let place = Origin { tenant: &missed.tenant, collection: &collection };
            self.progress.mark_processed(place, missed.collection.created(), missed.upto.clone());
        }
        self.progress.set_caught_up();
        true
    }

    /// Processes missed events; retries until the server that has them responds.
    fn process_patiently(&self, missed: &MissedEvents) -> Result<bool, StoreError> {
        let mut done = BTreeMap::new();
        loop {
            match self.process_missed(missed, &mut done) {
                Err(StoreError::Busy(_) | StoreError::Unknown(_)) if self.event_queue.is_stopped() => return Ok(false),
                Err(StoreError::Busy(why) | StoreError::Unknown(why)) => {
                    tracing::debug!(why, "missed events of saved searches cannot be read now: trying again");
                    self.clock.sleep(RETRY);
                }
                ended => return ended,
            }
        }
    }

    /// `done`: the last event of each partition that an earlier attempt has processed.
    fn process_missed(&self, missed: &MissedEvents, done: &mut BTreeMap<usize, Seq>) -> Result<bool, StoreError> {
        let (name, most) = (missed.collection.name(), self.settings.catch_up);
        let collection: Arc<str> = name.into();
        // One pass for all saved searches, from the earliest position of any; `wants` excludes what each has seen.
        let after = missed.from.values().cloned().reduce(|min, from| min.earlier(&from));
        let after = after.unwrap_or_else(|| missed.upto.clone());
        let layout = missed.upto.ends().layout();
        let mut changes = missed.collection.changes_between(&after, &missed.upto, most)?;
        let left_out = changes.left_out();
        if left_out > 0 {
            let detail =
                format!("{left_out} missed events of {name:?} are left out: only the newest {most} are processed");
            self.report_missed(missed, left_out, &detail);
        }
        if let Some(problem) = changes.missing().first() {
            let detail =
                format!("missed events of {name:?} may be incomplete, as part of the collection is damaged: {problem}");
            self.report_missed(missed, 0, &detail);
        }
        while let Some((batch, seqs)) = changes.read()? {
            // A stop must not wait for a long catch-up. The checkpoint is unchanged, so the next start repeats it.
            if self.event_queue.is_stopped() {
                return Ok(false);
            }
            // Each read returns events of a single partition.
            let partition = seqs.first().map_or(0, |seq| usize::from(layout.partition(*seq)));
            let before = done.get(&partition).copied();
            let wants = |search: &SavedSearch, seq: Seq| {
                let is_new = before.is_none_or(|before| seq > before);
                is_new && missed.from.get(&search.number).is_some_and(|from| seq.position() > from.at(partition))
            };
            let place = Origin { tenant: &missed.tenant, collection: &collection };
            self.process(place, partition, &batch, &seqs, &wants);
            done.extend(seqs.last().map(|last| (partition, before.map_or(*last, |before| before.max(*last)))));
        }
        Ok(true)
    }

    /// Reports to the affected saved searches what they have lost.
    fn report_missed(&self, missed: &MissedEvents, left_out: u64, detail: &str) {
        self.left_out.fetch_add(left_out, Ordering::Relaxed);
        let registry = self.registry.lock();
        let searches: Vec<Arc<SavedSearch>> = registry.all.values().map(|entry| entry.search.clone()).collect();
        // Released before packets are written: evicting them takes other locks.
        drop(registry);
        for search in searches.iter().filter(|search| missed.from.contains_key(&search.number)) {
            search.counts.left_out.fetch_add(left_out, Ordering::Relaxed);
            search.report(&self.retention, LocalProvider::NAME, "error", detail, 0, 0);
        }
    }

    /// Reports to all saved searches that the missed events are unknown.
    pub(super) fn report_unknown(&self, why: &str) {
        let detail =
            format!("the position up to which events were processed is unknown ({why}): earlier events may be missing");
        let registry = self.registry.lock();
        for entry in registry.all.values().filter(|entry| entry.search.definition.reads_collections()) {
            entry.search.report(&self.retention, LocalProvider::NAME, "error", &detail, 0, 0);
        }
    }
}
