//! The state that all requests share, and its parts.

#[cfg(feature = "geopackage")]
pub mod answer_files;
pub mod audit_log;
pub mod brief_runs;
pub mod change_queues;
pub mod event_streams;
pub mod exchanges;
pub mod metrics;
pub mod passwords;
pub mod readers;
pub mod readiness;
pub mod slow;
pub mod usage_history;

use crate::cluster::member::Member;
use crate::config::ServerConfig;
#[cfg(feature = "geopackage")]
use answer_files::AnswerFiles;
use audit_log::Audit;
use brief_runs::BriefRuns;
use change_queues::ChangeQueues;
use event_streams::EventStreams;
use exchanges::Exchanges;
use meridian_admission::gate::Gate;
use meridian_admission::identity::{ANONYMOUS, Caller, DEFAULT_TENANT, Identity, Registry, Throttle};
use meridian_admission::{ByteBudget, Ledger};
use meridian_backend::{Backend, Clock, Collection, Damaged, Disk, Random, StoreError};
use meridian_federation::Searches;
use meridian_model::policy::access::{Grant, Pattern, Role};
use meridian_observe::{Stopwatch, Tracer};
use meridian_saved::{AssignmentCheck, SavedSlots, Slot};
use metrics::Metrics;
use parking_lot::Mutex;
use passwords::Passwords;
use readers::Readers;
use readiness::Readiness;
use slow::SlowRequests;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Semaphore;
use usage_history::History;

/// The server's state; cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<StateInner>);

/// The callers without a token.
pub struct Callers {
    /// A client of the control socket: the owner of the data folder.
    pub socket: Caller,
    /// A program on this machine, while no token exists.
    pub local: Caller,
    /// Any other caller, on routes that need no access.
    pub nobody: Caller,
}

/// The name of [`Callers::local`].
pub const LOCAL: &str = "local";

impl Callers {
    /// Creates the callers of a server with this registry.
    pub fn new(registry: &Registry) -> Callers {
        let default = registry.ledger(DEFAULT_TENANT).unwrap_or_else(|| Arc::new(Ledger::new(DEFAULT_TENANT)));
        let caller = |grant, name| Arc::new(Identity::of(&default, grant, name));
        let nothing = Grant { role: Role::Reader, collections: Pattern::none() };
        let mut nobody = Identity::new(DEFAULT_TENANT, nothing, "nobody");
        // Of no tenant: these requests are not charged to one, take none of its turns, and do not change its weight.
        nobody.ledger = Arc::new(Ledger::new(""));
        Callers {
            socket: caller(Grant::over_all(Role::Operator), "socket"),
            local: caller(Grant::over_all(Role::Operator), LOCAL),
            nobody: Arc::new(nobody),
        }
    }

    /// Returns whether a caller is independent of the records.
    fn is_fixed(&self, caller: &Identity) -> bool {
        // Compared by name, since a caller that works in another tenant is a copy.
        [&self.socket, &self.nobody].iter().any(|fixed| fixed.name == caller.name)
    }
}

/// The fields of [`AppState`].
pub struct StateInner {
    /// The collections of all tenants. Handlers reach them through their caller's [`crate::request::scope::Scope`].
    pub backend: Arc<dyn Backend>,
    /// The record of administrative acts.
    pub audit: Audit,
    /// Tokens, tenants, users and sessions.
    pub registry: Arc<Registry>,
    /// Whether other servers may change the registry too.
    pub shares_registry: bool,
    /// Queues of the changes of the registry.
    pub changes: ChangeQueues,
    /// Permits for removals of tenants, each of which occupies a thread while collections are removed.
    pub removals: Arc<Semaphore>,
    /// The callers without a token.
    pub callers: Callers,
    /// Work on passwords.
    pub passwords: Passwords,
    /// Permits for exchanges of codes with issuers.
    pub exchanges: Exchanges,
    /// Attempts to sign in.
    pub throttle: Throttle,
    /// The operator's settings.
    pub config: ServerConfig,
    /// Permits to run, for requests of clients.
    pub gate: Gate,
    /// Permits of operators and their monitors.
    pub reserved: Gate,
    /// Queries on threads that read requests.
    pub brief: BriefRuns,
    /// Bytes of request bodies in memory.
    pub bodies: ByteBudget,
    /// Bytes of events that are being read from bodies and are not stored yet.
    pub batches: ByteBudget,
    /// Bytes of responses that clients have not received yet, and of the queries parked meanwhile.
    pub answers: ByteBudget,
    /// Bytes of streams and heads of HTTP/2 beyond the reserves of their connections.
    pub http2: ByteBudget,
    /// Of the bytes of responses, those of encoders.
    pub encoders: ByteBudget,
    /// Bytes of requests and complete responses of operators who administer the server: they need nothing of a tenant.
    pub administration: ByteBudget,
    /// Bytes of the conditions of open event streams; no eviction frees them.
    pub conditions: ByteBudget,
    /// Memory in which queries collect data before they can respond.
    pub memory: ByteBudget,
    /// The clients whose responses are being streamed.
    pub readers: Readers,
    /// Files that responses are made in before they are sent.
    #[cfg(feature = "geopackage")]
    pub files: AnswerFiles,
    /// Permits for backups, each of which occupies a thread even while its client does not read.
    pub backups: Arc<Semaphore>,
    /// Counters.
    pub metrics: Metrics,
    /// The permit for a scrape to count the contents of collections.
    pub scrapes: Arc<Semaphore>,
    /// The collections that keep the server from being ready.
    pub readiness: Readiness,
    /// The disk, for the operator's files.
    pub disk: Arc<dyn Disk>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Held while the first write of the places profile creates its collection.
    pub places_creation: Mutex<()>,
    /// Federated searches.
    pub searches: Arc<Searches>,
    /// Saved searches, where this process runs them.
    pub saved: SavedSlots,
    /// Streams of events.
    pub live: Arc<EventStreams>,
    /// Set once a shutdown has begun: the server is no longer ready.
    pub stopping: AtomicBool,
    /// Set while the server is drained by an operator: it is not ready, but still serves requests.
    pub drained: AtomicBool,
    /// Begins traces.
    pub tracer: Tracer,
    /// Measures stages.
    pub stopwatch: Stopwatch,
    /// The slow requests of the last minutes.
    pub slow: SlowRequests,
    /// Past usage of tenants.
    pub load_history: History,
    /// The server's place in its cluster; `None` if it is a single process.
    pub member: Option<Member>,
    /// Distinguishes the request ids of two runs.
    pub request_prefix: u64,
}

impl AppState {
    /// Creates the state from its fields.
    pub fn of(fields: StateInner) -> AppState {
        AppState(Arc::new(fields))
    }

    /// Guarantees each tenant its part of all shared pools. Must be called after tenants were created, changed or
    /// removed.
    pub fn share_out(&self) {
        let weights: Vec<_> =
            self.registry.ledgers().iter().map(|ledger| (ledger.tenant().clone(), ledger.weight())).collect();
        for budget in [&self.bodies, &self.batches, &self.answers, &self.encoders, &self.conditions, &self.memory] {
            budget.guarantee(weights.iter().cloned());
        }
        #[cfg(feature = "geopackage")]
        self.files.guarantee(weights.iter().cloned());
        self.backend.guarantee(&weights);
        self.live.guarantee(weights.iter().cloned());
        self.saved.guarantee(&weights);
        self.searches.guarantee(&weights);
    }

    /// Runs the saved searches of a slot for as long as `holds`, once this gateway is assigned the slot in this epoch.
    /// Blocks.
    ///
    /// # Errors
    /// Those of [`SavedSlots::take`].
    pub fn take_saved(&self, slot: Slot, epoch: u64, holds: AssignmentCheck) -> Result<(), StoreError> {
        self.saved.take(slot, epoch, holds)?;
        self.share_out();
        Ok(())
    }

    /// Returns the collections of all tenants.
    ///
    /// # Errors
    /// Those of [`Backend::list`].
    pub fn all_collections(&self) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        self.of_all_tenants(|tenant| self.backend.list(tenant))
    }

    /// Returns the collections of all tenants that cannot be opened.
    ///
    /// # Errors
    /// Those of [`Backend::damaged`].
    pub fn all_damaged(&self) -> Result<Vec<Damaged>, StoreError> {
        self.of_all_tenants(|tenant| self.backend.damaged(tenant))
    }

    fn of_all_tenants<T>(&self, list: impl Fn(&str) -> Result<Vec<T>, StoreError>) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        for tenant in self.registry.tenants() {
            all.append(&mut list(&tenant.name)?);
        }
        Ok(all)
    }

    /// Returns the time in microseconds since 1970.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Returns whether a caller's access was withdrawn since it was checked, or whether that is unknown. While the
    /// registry is behind, it is unknown for every caller that is not fixed.
    pub fn is_void(&self, caller: &Identity) -> bool {
        caller.is_void(self.now())
            || !self.callers.is_fixed(caller) && (self.registry.is_behind() || self.is_withdrawn(caller))
    }

    /// Returns whether a caller without a credential would no longer be let in: the first credential closes the server
    /// to programs on its machine, and an operator may close collections that were open to all.
    fn is_withdrawn(&self, caller: &Identity) -> bool {
        match &*caller.name {
            // A command without a server acts under the name of a local caller, with a token of its own.
            _ if caller.is_revocable() => false,
            LOCAL => !self.registry.is_empty(),
            ANONYMOUS => !self.registry.opens(&caller.grant.collections),
            _ => false,
        }
    }

    /// Returns whether a caller may become void.
    pub fn may_become_void(&self, caller: &Identity) -> bool {
        !self.callers.is_fixed(caller)
    }

    /// Returns an id for a request that came without one, unique in this process.
    pub fn next_request_id(&self) -> u64 {
        let n = next_number();
        // An odd multiplier permutes the 64-bit numbers, so ids do not repeat and consecutive ones look different.
        (n ^ self.request_prefix).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Returns a number that is unique in this process. Each thread counts for itself: a shared counter's cache line would
/// move between processors with each request.
fn next_number() -> u64 {
    /// Size of the range of numbers of one thread.
    const OF_THREAD: u64 = 1 << 40;
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(OF_THREAD, Ordering::Relaxed));
    }
    NEXT.with(|next| next.replace(next.get() + 1))
}

impl Deref for AppState {
    type Target = StateInner;

    fn deref(&self) -> &StateInner {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_admission::gate::{Account, Class};
    use meridian_backend::{Embedded, Seams};
    use meridian_store::{Options, Store};

    #[tokio::test]
    async fn requests_without_a_credential_take_no_turns_of_a_tenant() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let state = AppState::new(Embedded::new(store), &seams, ServerConfig::default()).unwrap();
        let running = |caller: &Caller| {
            let account = Account { ledger: caller.ledger.clone(), class: Class::Interactive, is_write: false };
            let _permit = state.gate.try_enter(account).unwrap();
            let of_default = state.gate.by_tenant().into_iter().find(|(tenant, _)| **tenant == *DEFAULT_TENANT);
            (state.gate.counts().running, of_default.map_or(0, |(_, (running, _))| running))
        };
        assert_eq!(running(&state.callers.nobody), (1, 0));
        assert_eq!(running(&state.callers.local), (1, 1));
    }
}
