//! The state that all requests share.

use crate::audit_log::Audit;
use crate::config::ServerConfig;
use crate::event_streams::EventStreams;
use crate::exchanges::Exchanges;
use crate::member::Member;
use crate::metrics::Metrics;
use crate::passwords::Passwords;
use crate::readers::Readers;
use crate::slow::SlowRequests;
use crate::usage_history::History;
use meridian_admission::gate::Gate;
use meridian_admission::identity::{Caller, DEFAULT_TENANT, Identity, Registry, Throttle};
use meridian_admission::{ByteBudget, Ledger};
use meridian_backend::{Backend, Clock, Collection, Damaged, Disk, Random, StoreError};
use meridian_federation::Searches;
use meridian_model::policy::access::{Grant, Pattern, Role};
use meridian_observe::{Stopwatch, Tracer};
use meridian_saved::{Holds, SavedSlots, Slot};
use parking_lot::Mutex;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// The server's state; cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<StateInner>);

/// The callers that show no token.
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
    /// Those of a server with this registry.
    pub fn new(registry: &Registry) -> Callers {
        let default = registry.ledger(DEFAULT_TENANT).unwrap_or_else(|| Arc::new(Ledger::new(DEFAULT_TENANT)));
        let caller = |grant, name| Arc::new(Identity::of(&default, grant, name));
        let nothing = Grant { role: Role::Reader, collections: Pattern::none() };
        Callers {
            socket: caller(Grant::over_all(Role::Operator), "socket"),
            local: caller(Grant::over_all(Role::Operator), LOCAL),
            // Not charged to a tenant: no tenant is behind these requests.
            nobody: Arc::new(Identity::new(DEFAULT_TENANT, nothing, "nobody")),
        }
    }

    /// Whether a caller is what it is whatever the records say.
    fn is_fixed(&self, caller: &Identity) -> bool {
        // By name: one that works in another tenant is a copy.
        [&self.socket, &self.nobody].iter().any(|fixed| fixed.name == caller.name)
    }
}

/// The fields of [`AppState`].
pub struct StateInner {
    /// The collections of all tenants. Handlers reach them through their caller's [`crate::scope::Scope`].
    pub backend: Arc<dyn Backend>,
    /// The record of administrative acts.
    pub audit: Audit,
    /// Tokens, tenants, users and sessions.
    pub registry: Arc<Registry>,
    /// Whether other servers change them too.
    pub shares_registry: bool,
    /// Permits for changes of the registry.
    pub changes: Arc<Semaphore>,
    /// The callers that show no token.
    pub callers: Callers,
    /// Work on passwords.
    pub passwords: Passwords,
    /// Codes of issuers that are being exchanged.
    pub exchanges: Exchanges,
    /// Attempts to sign in.
    pub throttle: Throttle,
    /// The operator's settings.
    pub config: ServerConfig,
    /// Permits to run, for requests of clients.
    pub gate: Gate,
    /// Permits of operators and their monitors.
    pub reserved: Gate,
    /// Bytes of request bodies in memory.
    pub bodies: ByteBudget,
    /// Bytes of events that are being read from bodies, until they are stored.
    pub batches: ByteBudget,
    /// Bytes of responses that clients have not taken yet, and of the queries parked meanwhile.
    pub answers: ByteBudget,
    /// Bytes of the conditions of open streams of events: no eviction frees them.
    pub conditions: ByteBudget,
    /// Memory that queries collect before they can answer.
    pub memory: ByteBudget,
    /// The clients with a streamed response.
    pub readers: Readers,
    /// Permits for backups, which keep a thread while their clients do not read.
    pub backups: Arc<Semaphore>,
    /// Counters.
    pub metrics: Metrics,
    /// The permit to count what collections hold, for scrapes.
    pub scrapes: Arc<Semaphore>,
    /// The disk, for files of the operator.
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
    /// Set when a shutdown began: the server is no longer ready.
    pub stopping: AtomicBool,
    /// Set while an operator has drained the server: it is not ready, and serves what still comes.
    pub drained: AtomicBool,
    /// Begins traces.
    pub tracer: Tracer,
    /// Measures stages.
    pub stopwatch: Stopwatch,
    /// The slow requests of the last minutes.
    pub slow: SlowRequests,
    /// Earlier use of tenants.
    pub load_history: History,
    /// The server's place in its cluster; `None`: it is one process.
    pub member: Option<Member>,
    /// Distinguishes the request ids of two runs.
    pub request_prefix: u64,
}

impl AppState {
    /// A state of these fields.
    pub fn of(fields: StateInner) -> AppState {
        AppState(Arc::new(fields))
    }

    /// Guarantees each tenant its part of all shared pools; called after tenants were created, changed or removed.
    pub fn share_out(&self) {
        let weights: Vec<_> =
            self.registry.ledgers().iter().map(|ledger| (ledger.tenant().clone(), ledger.weight())).collect();
        for budget in [&self.bodies, &self.batches, &self.answers, &self.conditions, &self.memory] {
            budget.guarantee(weights.iter().cloned());
        }
        self.backend.guarantee(&weights);
        self.live.guarantee(weights.iter().cloned());
        self.saved.guarantee(&weights);
        self.searches.guarantee(&weights);
    }

    /// Runs the saved searches of a slot for as long as `holds`, once they are assigned to this gateway in this epoch. Blocks.
    ///
    /// # Errors
    /// Those of [`SavedSlots::take`].
    pub fn take_saved(&self, slot: Slot, epoch: u64, holds: Holds) -> Result<(), StoreError> {
        self.saved.take(slot, epoch, holds)?;
        self.share_out();
        Ok(())
    }

    /// The collections of all tenants.
    ///
    /// # Errors
    /// Those of [`Backend::list`].
    pub fn all_collections(&self) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        self.of_all_tenants(|tenant| self.backend.list(tenant))
    }

    /// The collections of all tenants that cannot be opened.
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

    /// Microseconds since 1970.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Whether a caller's credential was revoked or has expired since it was checked, or that cannot be known. Of one without a credential
    /// it cannot be known whether it is still served.
    pub fn is_void(&self, caller: &Identity) -> bool {
        caller.is_void(self.now()) || self.registry.is_behind() && !self.callers.is_fixed(caller)
    }

    /// Whether a caller may become void: by its credential, or where other servers may have changed who is served.
    pub fn may_become_void(&self, caller: &Identity) -> bool {
        caller.is_revocable() || self.shares_registry && !self.callers.is_fixed(caller)
    }

    /// An id for a request that came without one, unique in this process.
    pub fn next_request_id(&self) -> u64 {
        let n = next_number();
        // An odd multiplier permutes the 64-bit numbers, so ids do not repeat and consecutive ones look different.
        (n ^ self.request_prefix).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A number that no other call in this process gets. Each thread counts for itself: a count of all threads would pass from processor to
/// processor with each request.
fn next_number() -> u64 {
    /// Numbers of one thread.
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
