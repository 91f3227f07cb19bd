//! All saved searches of a server. They are opened in `opening.rs`, recovered from disk in `recovery.rs`, and created
//! and deleted in `changes.rs`. They start and stop in `lifecycle.rs`.

use super::census::Census;
use super::checkpoint::Positions;
use super::claim::AssignmentCheck;
use super::clean_state::SearchState;
use super::dead_letters::WebhookState;
use super::definition::Definition;
use super::event_queue::EventQueue;
use super::fences::TenantFences;
use super::index::WordFrequencies;
use super::ledgers::{Ledgers, ledger_of};
use super::match_index::MatchIndex;
use super::missed::MissedEvents;
use super::poll_schedule::PollSchedule;
use super::progress::Progress;
use super::retention::PacketRetention;
use super::search::{Counts, PollState, SavedSearch};
use super::settings::SavedSettings;
use super::slot::Slot;
use super::status::SavedSearchStatus;
use super::webhook::WebhookClient;
use meridian_admission::identity::Identity;
use meridian_backend::{Backend, Clock, Random, Records, View};
use meridian_federation::Searches;
use meridian_federation::delivery::Outbox;
use meridian_federation::supervise;
use meridian_model::Background;
use meridian_model::policy::access::{Grant, Role};
use meridian_model::policy::pool::Pool;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A page of the list ends with the question that reaches this many bytes.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// The saved searches of a server, for all tenants, or those of a slot.
pub struct SavedSearches {
    pub(super) searches: Arc<Searches>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) ledgers: Ledgers,
    /// Matches events on behalf of their tenants.
    pub(super) background: Arc<dyn Background>,
    pub(super) records: Arc<dyn Records>,
    /// Their slot; `None` if these are all saved searches.
    pub(super) slot: Option<Slot>,
    /// Totals over all slots, if there are several.
    pub(super) census: Option<Arc<Census>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) settings: SavedSettings,
    pub(super) event_queue: Arc<EventQueue>,
    /// Saved searches that receive events, by tenant.
    pub(super) match_indexes: RwLock<HashMap<Arc<str>, MatchIndex>>,
    pub(super) frequencies: Arc<WordFrequencies>,
    pub(super) fences: Mutex<TenantFences>,
    pub(super) retention: PacketRetention,
    /// The position up to which events were processed.
    pub(super) progress: Progress,
    /// By tenant, the positions of collections at the opening: the catch-up covers the events up to them, and the queue
    /// later ones.
    pub(super) opened_at: Mutex<HashMap<Arc<str>, Positions>>,
    /// Events to catch up on.
    pub(super) missed: Mutex<Vec<MissedEvents>>,
    pub(super) webhooks: Arc<WebhookClient>,
    pub(super) polls_due: PollSchedule,
    pub(super) registry: Mutex<Registry>,
    /// Version of the records up to which changes by others are applied.
    pub(super) followed: Mutex<u64>,
    /// First number of packets that no clean stop has kept; `None`: from the time.
    pub(super) first: Option<u64>,
    /// Returns true while the saved searches are assigned to this process.
    pub(super) holds: AssignmentCheck,
    /// Matches of events with saved searches.
    pub(super) matches: AtomicU64,
    /// Events left out of the catch-up because there were too many.
    pub(super) left_out: AtomicU64,
    pub(super) polls: AtomicU64,
}

pub(super) struct Registry {
    pub(super) all: BTreeMap<String, Entry>,
    /// Their number by tenant, including those being created: each tenant is guaranteed a share.
    pub(super) counts: Pool<Arc<str>>,
    /// Records found damaged or missing: name, and the damage or repair.
    pub(super) damaged: BTreeMap<String, String>,
    /// Records without a copy.
    pub(super) uncopied: Vec<String>,
    /// Ids of searches being created here.
    pub(super) creating: BTreeSet<String>,
    pub(super) running: bool,
    /// The tasks for polls, the checkpoint and shared records.
    pub(super) tasks: Vec<AbortHandle>,
    pub(super) matcher: Option<std::thread::JoinHandle<()>>,
}

impl Registry {
    pub(super) fn new(max: usize) -> Registry {
        Registry {
            all: BTreeMap::new(),
            counts: Pool::new(max),
            damaged: BTreeMap::new(),
            uncopied: Vec::new(),
            creating: BTreeSet::new(),
            running: false,
            tasks: Vec::new(),
            matcher: None,
        }
    }

    /// Returns true if matching, polling and sending run.
    pub(super) fn is_running(&self) -> bool {
        self.running
    }
}

pub(super) struct Entry {
    pub(super) search: Arc<SavedSearch>,
    /// Its number in the index, if it searches the collections of this server.
    pub(super) slot: Option<u32>,
    /// The task that sends to its webhook.
    pub(super) sender: Option<AbortHandle>,
}

impl SavedSearches {
    pub(super) fn search(&self, id: String, created: i64, definition: Definition, kept: SearchState) -> SavedSearch {
        let settings = &self.settings;
        let budget = self.retention.budget(&definition.tenant);
        let outbox = Arc::new(Outbox::from(kept.first, settings.buffer_bytes, budget, Instant::now()));
        for packet in kept.packets {
            self.retention.keep(&definition.tenant, &outbox, |_| packet);
        }
        let webhook_state = kept.webhook_state.unwrap_or_else(|| WebhookState::from(kept.first));
        let webhook_state =
            definition.webhook.is_some().then(|| self.webhooks.letters.enter(&definition.tenant, webhook_state));
        SavedSearch {
            number: id.get(..16).and_then(|half| u64::from_str_radix(half, 16).ok()).unwrap_or_default(),
            id,
            created,
            outbox,
            since: self.event_queue.newest(),
            origins: Mutex::new(kept.origins.into()),
            webhook_state,
            definition,
            polled: Mutex::new(PollState::default()),
            polling: tokio::sync::Mutex::default(),
            counts: Counts {
                results: kept.results.into(),
                result_packets: kept.result_packets.into(),
                ..Counts::default()
            },
            packet_bytes: self.searches.settings().packet_bytes,
        }
    }

    /// Adds it to the registry and the index.
    pub(super) fn enter(&self, search: SavedSearch) -> Arc<SavedSearch> {
        let tenant = search.definition.tenant.clone();
        let mut match_indexes = self.match_indexes.write();
        // Under the lock: events queued from here on are matched with this saved search.
        if search.definition.reads_collections() {
            self.event_queue.listen(&tenant);
        }
        let (since, dropped) = (self.event_queue.newest(), self.event_queue.dropped(&tenant));
        let counts = Counts { told_dropped: dropped.into(), dropped_before: dropped.into(), ..search.counts };
        let search = Arc::new(SavedSearch { since, counts, ..search });
        let slot = search.definition.reads_collections().then(|| {
            let new = || MatchIndex::new(self.frequencies.clone());
            let match_index = match_indexes.entry(tenant.clone()).or_insert_with(new);
            if search.definition.is_fence() {
                match_index.fences.insert(search.number, search.clone());
            }
            match_index.index.insert(Arc::new(search.definition.question.clone()), search.clone())
        });
        drop(match_indexes);
        let mut registry = self.registry.lock();
        // Room for a new one was reserved before it was written, and existing ones are kept in any case.
        registry.counts.force(tenant.clone(), search.definition.counts_as());
        let sender = (registry.running && search.webhook_state.is_some()).then(|| self.sender(&search));
        registry.all.insert(search.id.clone(), Entry { search: search.clone(), slot, sender });
        search
    }

    /// Starts the task that sends to the webhook of a saved search.
    pub(super) fn sender(&self, search: &Arc<SavedSearch>) -> AbortHandle {
        let (webhooks, search) = (self.webhooks.clone(), search.clone());
        tokio::spawn(supervise("postman", move || webhooks.clone().run(search.clone()))).abort_handle()
    }

    /// Returns true if these are assigned to this process.
    pub(super) fn is_enabled(&self) -> bool {
        self.settings.enabled
    }

    /// Number of saved searches.
    pub(super) fn len(&self) -> usize {
        self.registry.lock().all.len()
    }

    /// Returns the saved search with this id.
    pub fn get(&self, id: &str) -> Option<Arc<SavedSearch>> {
        self.registry.lock().all.get(id).map(|entry| entry.search.clone())
    }

    /// Returns the state of a saved search, with the dead letters of its webhook.
    pub fn status(&self, search: &SavedSearch) -> SavedSearchStatus {
        search.status(self.event_queue.dropped(&search.definition.tenant), true)
    }

    /// Returns the access rights of a saved search: those of its creator.
    pub(super) fn view_of(&self, search: &SavedSearch) -> View {
        let grant = Grant { role: Role::Admin, collections: search.definition.collections.clone() };
        let ledger = ledger_of(&self.ledgers, &search.definition.tenant);
        View::new(self.backend.clone(), Arc::new(Identity::of(&ledger, grant, &search.id)))
    }

    /// Returns the states of the saved searches visible to a caller, ordered by id, and whether there are more. At most
    /// `limit` after this one; fewer if their questions are large.
    pub fn list(&self, view: &View, after: &str, limit: usize) -> (Vec<SavedSearchStatus>, bool) {
        let registry = self.registry.lock();
        let rest = registry.all.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let mut rest =
            rest.map(|(_, entry)| &entry.search).filter(|search| search.definition.is_seen_by(view)).peekable();
        let (mut some, mut bytes) = (Vec::new(), 0);
        while some.len() < limit
            && bytes < PAGE_BYTES_MAX
            && let Some(search) = rest.next()
        {
            bytes += search.definition.question_bytes();
            some.push(search.clone());
        }
        let more = rest.peek().is_some();
        drop(rest);
        drop(registry);
        let dropped = self.event_queue.dropped(view.tenant());
        (some.iter().map(|search| search.status(dropped, false)).collect(), more)
    }

    /// Guarantees each tenant a share of the max number of saved searches, in proportion to its weight.
    pub fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.registry.lock().counts.guarantee(weights);
    }

    /// Saved searches of a tenant, including those being created; large ones count as several.
    pub fn count(&self, tenant: &str) -> usize {
        self.registry.lock().counts.held_by(tenant)
    }

    /// Records found damaged or missing, of all tenants, and the damage of each, including those repaired from their
    /// copies.
    pub fn damaged(&self) -> BTreeMap<String, String> {
        self.registry.lock().damaged.clone()
    }
}

impl Drop for SavedSearches {
    fn drop(&mut self) {
        self.event_queue.stop();
    }
}
