//! Events that came while nobody looked: before a crash, and while the server was not there. A start looks at them first.
//!
//! Of too many the newest are looked at, and each saved search is told what was left out.

use super::checkpoint::{Checkpoint, Positions};
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_backend::{Collection, StoreError};
use meridian_federation::provider::LocalProvider;
use meridian_model::Seq;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What of a collection is to be looked at.
#[derive(Debug)]
pub(super) struct CatchUp {
    collection: Arc<dyn Collection>,
    /// Up to this position; what comes later is heard.
    upto: u64,
    /// Behind which position each saved search wants it, by number.
    from: HashMap<u64, u64>,
}

impl SavedSearches {
    /// Notes what these saved searches have missed; beside each stands where collections stood when it was made. Before anything is
    /// written.
    pub(super) fn note_missed(&self, searches: &[(Arc<SavedSearch>, Option<Positions>)], checkpoint: &Checkpoint) {
        let hearing = || searches.iter().filter(|(search, _)| search.definition.reads_collections());
        for collection in self.backend.list(&self.tenant) {
            let (upto, made) = (collection.position(), collection.created());
            let from = |(search, since): &(Arc<SavedSearch>, Option<Positions>)| {
                let from = checkpoint.from(&search.id, since.as_ref(), collection.name(), made, upto);
                (from < upto).then_some((search.number, from))
            };
            let from: HashMap<u64, u64> = hearing().filter_map(from).collect();
            if !from.is_empty() {
                self.missed.lock().push(CatchUp { collection, upto, from });
            }
        }
    }

    /// Looks at what was missed; `false` where it was stopped on the way: then the next start does it again.
    pub(super) fn catch_up(&self) -> bool {
        let all = std::mem::take(&mut *self.missed.lock());
        for missed in all {
            match self.process_missed(&missed) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(e) => {
                    let name = missed.collection.name();
                    tracing::error!(collection = name, error = %e, "what came while saved searches did not look cannot be read");
                    self.report_missed(
                        &missed,
                        0,
                        &format!("events of {name:?} that came while nobody looked cannot be read: {e}"),
                    );
                }
            }
            self.progress.mark_processed(&missed.collection.name().into(), missed.collection.created(), missed.upto);
        }
        self.progress.set_caught_up();
        true
    }

    fn process_missed(&self, missed: &CatchUp) -> Result<bool, StoreError> {
        let (name, most) = (missed.collection.name(), self.settings.catch_up);
        let collection: Arc<str> = name.into();
        let after = missed.from.values().copied().min().unwrap_or(missed.upto);
        let mut changes = missed.collection.changes_between(after, missed.upto, most)?;
        let left_out = changes.left_out();
        if left_out > 0 {
            let detail = format!(
                "{left_out} events of {name:?} that came while nobody looked are left out: only the newest {most} are looked at"
            );
            self.report_missed(missed, left_out, &detail);
        }
        if let Some(problem) = changes.missing().first() {
            let detail = format!(
                "events of {name:?} that came while nobody looked may be missing, as some of it is damaged: {problem}"
            );
            self.report_missed(missed, 0, &detail);
        }
        while let Some((batch, seqs)) = changes.read()? {
            if self.event_queue.is_stopped() {
                return Ok(false);
            }
            let wants = |search: &SavedSearch, seq: Seq| {
                missed.from.get(&search.number).is_some_and(|from| seq.position() > *from)
            };
            self.process(&collection, &batch, &seqs, &wants);
        }
        Ok(true)
    }

    /// Says in the streams of those who missed something what of it they do not get.
    fn report_missed(&self, missed: &CatchUp, left_out: u64, detail: &str) {
        self.left_out.fetch_add(left_out, Ordering::Relaxed);
        let registry = self.registry.lock();
        let searches: Vec<Arc<SavedSearch>> = registry.all.values().map(|entry| entry.search.clone()).collect();
        drop(registry);
        for search in searches.iter().filter(|search| missed.from.contains_key(&search.number)) {
            search.counts.left_out.fetch_add(left_out, Ordering::Relaxed);
            search.report(&self.retention, LocalProvider::NAME, "error", detail, 0, 0);
        }
    }

    /// Says in all streams that nobody knows what was missed.
    pub(super) fn report_unknown(&self, why: &str) {
        let detail =
            format!("up to where events were looked at is not known ({why}): some that came before may be missing");
        let registry = self.registry.lock();
        for entry in registry.all.values().filter(|entry| entry.search.definition.reads_collections()) {
            entry.search.report(&self.retention, LocalProvider::NAME, "error", &detail, 0, 0);
        }
    }
}
