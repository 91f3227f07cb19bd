//! Opens saved searches, in a process that has them to itself or has claimed them in a cluster.

use super::claim::{AssignmentCheck, Claim};
use super::event_queue::{EventQueue, Feed};
use super::fences::TenantFences;
use super::parts::{Parts, SlotParts};
use super::poll_schedule::PollSchedule;
use super::progress::Progress;
use super::records::{RECORDS, StoredRecords};
use super::registry::{Registry, SavedSearches};
use super::retention::PacketRetention;
use super::webhook::WebhookClient;
use meridian_backend::{Records, StoreError};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

impl SavedSearches {
    /// Opens the saved searches of a process that has them to itself. Unreadable records are logged, listed and left
    /// unchanged. Events are queued from now on, but matching and sending begin with [`SavedSearches::run`]. Opens none
    /// unless [`super::SavedSettings::enabled`].
    pub(super) fn open(parts: &SlotParts, feed: &Feed) -> Arc<SavedSearches> {
        let saved = SavedSearches::new(parts, parts.records(), None, Arc::new(|| true));
        if saved.settings.enabled {
            // Before anything is read: between the checkpoint and the queue no event may be missed.
            feed.begin(&saved.event_queue);
            if let Err(error) = saved.read_all(&saved.by_record()) {
                // The process has these searches to itself, so no other one could run them: they run with a reported
                // gap.
                tracing::error!(%error, "what saved searches have missed cannot be determined");
                saved.report_unknown(&error.to_string());
            }
        }
        saved
    }

    /// Opens the saved searches that this process has claimed.
    ///
    /// # Errors
    /// Those of the backend: missed events cannot be determined now.
    pub(super) fn open_claimed(
        parts: &SlotParts,
        feed: &Feed,
        claim: Claim,
        holds: AssignmentCheck,
    ) -> Result<Arc<SavedSearches>, StoreError> {
        let saved = SavedSearches::new(&parts.enabled(true), claim.records.clone(), Some(claim.first), holds);
        // Changes are followed from the version whose records are read here.
        *saved.followed.lock() = claim.version;
        feed.begin(&saved.event_queue);
        // From the claim and not from the backend, where other processes may have changed records since.
        let all = StoredRecords {
            names: claim.all.keys().cloned().collect(),
            get: Box::new(|name| Ok(claim.all.get(name).cloned())),
        };
        match saved.read_all(&all) {
            Ok(()) => Ok(saved),
            Err(error) => {
                // Another attempt, here or elsewhere, opens with a queue of its own. This one would fill without a
                // matcher.
                feed.end(&saved.event_queue);
                saved.abandon();
                Err(error)
            }
        }
    }

    /// Opens none: they are assigned to another process.
    pub(super) fn none(parts: &SlotParts) -> Arc<SavedSearches> {
        // Without a claim it must write nothing, so the check of its assignment always fails.
        SavedSearches::new(&parts.enabled(false), parts.records(), None, Arc::new(|| false))
    }

    fn new(
        parts: &SlotParts,
        records: Arc<dyn Records>,
        first: Option<u64>,
        holds: AssignmentCheck,
    ) -> Arc<SavedSearches> {
        let SlotParts { parts, slot, census } = parts.clone();
        let Parts { searches, backend, ledgers, background, settings, clock, random } = parts;
        let webhooks = WebhookClient::new(
            settings.webhook.clone(),
            clock.clone(),
            random.clone(),
            ledgers.clone(),
            holds.clone(),
            searches.tracer().clone(),
        );
        Arc::new(SavedSearches {
            slot,
            census,
            records,
            backend,
            ledgers,
            background,
            event_queue: Arc::new(EventQueue::new(settings.queue_bytes)),
            match_indexes: RwLock::default(),
            frequencies: Arc::default(),
            fences: Mutex::new(TenantFences::new(settings.objects_max)),
            retention: PacketRetention::new(settings.buffer_bytes_total),
            progress: Progress::default(),
            opened_at: Mutex::default(),
            missed: Mutex::default(),
            webhooks: Arc::new(webhooks),
            polls_due: PollSchedule::new(settings.polls_at_once),
            registry: Mutex::new(Registry::new(settings.max)),
            followed: Mutex::default(),
            first,
            holds,
            matches: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            polls: AtomicU64::new(0),
            searches,
            clock,
            random,
            settings,
        })
    }

    /// Returns the records for reading one by one, as a damaged one may be restored from its copy.
    fn by_record(&self) -> StoredRecords<'_> {
        let names = self.records.names().unwrap_or_else(|e| {
            self.note_damage(RECORDS, e.to_string());
            Vec::new()
        });
        StoredRecords { names, get: Box::new(|name| self.records.get(name)) }
    }

    /// Returns true if another process may claim the records.
    pub(super) fn is_claimed(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the number at which packets continue after a crash: above all assigned before.
    pub(super) fn first_number(&self) -> u64 {
        // Without a claim no other process assigns numbers. The time in microseconds exceeds earlier ones, as packets
        // are far fewer than microseconds.
        self.first.unwrap_or_else(|| self.clock.now().max(0) as u64)
    }
}
