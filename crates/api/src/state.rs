//! The state that all requests share.

use crate::backup;
use crate::config::ServerConfig;
use crate::errors;
use crate::limiter::Limiter;
use crate::live::EventStreams;
use crate::metrics::Metrics;
use crate::places::Places;
use crate::problem::{Problem, Result};
use crate::searches::keep::InCollections;
use crate::stream::Readers;
use meridian_admission::ByteBudget;
use meridian_backend::{Backend, Clock, Collection, Random, Seams};
use meridian_federation::Searches;
use meridian_query::Memory;
use meridian_saved::SavedSearches;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// Requests of operators and their monitors that run at once; as many may wait.
const RESERVED_MAX: usize = 16;

/// The server's state; cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<StateInner>);

/// The fields of [`AppState`].
pub struct StateInner {
    /// The collections.
    pub backend: Arc<dyn Backend>,
    /// The operator's settings.
    pub config: ServerConfig,
    /// Permits to run, for requests of clients.
    pub limiter: Limiter,
    /// Permits of operators and their monitors.
    pub reserved: Limiter,
    /// Bytes of request bodies in memory.
    pub bodies: ByteBudget,
    /// Bytes of responses that clients have not taken yet, and of the queries parked meanwhile.
    pub answers: ByteBudget,
    /// Memory for what queries collect before they can answer.
    pub memory: Arc<Memory>,
    /// The clients with a streamed response.
    pub readers: Readers,
    /// Permits for backups, which keep a thread while their clients do not read.
    pub backups: Arc<Semaphore>,
    /// Counters.
    pub metrics: Metrics,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// What the places profile keeps between requests.
    pub places: Places,
    /// Federated searches.
    pub searches: Arc<Searches>,
    /// Saved searches.
    pub saved: Arc<SavedSearches>,
    /// Streams of events.
    pub live: Arc<EventStreams>,
    /// Counts open WebSockets: each holds a clone.
    pub sockets: Arc<()>,
    /// Set when a shutdown began: the server is no longer ready.
    pub stopping: AtomicBool,
    request_prefix: u64,
    requests: AtomicU64,
}

impl AppState {
    /// State over a server's collections; clock and randomness come from the same seams as theirs.
    pub fn new(backend: Arc<dyn Backend>, seams: &Seams, config: ServerConfig) -> AppState {
        let searches = Searches::new(
            config.search.clone(),
            backend.clone(),
            config.tenant.clone(),
            seams.clock.clone(),
            seams.random.clone(),
        );
        let keeper = InCollections::new(backend.clone(), config.tenant.clone(), seams.clock.clone());
        let searches = Arc::new(searches.keeping(Arc::new(keeper)));
        let live = Arc::new(EventStreams::default());
        backend.subscribe(live.clone());
        let (clock, random) = (seams.clock.clone(), seams.random.clone());
        AppState(Arc::new(StateInner {
            limiter: Limiter::new(config.requests_running_max, config.requests_waiting_max, config.admission_wait),
            reserved: Limiter::new(RESERVED_MAX, RESERVED_MAX, config.admission_wait),
            bodies: ByteBudget::new(config.body_bytes_total),
            answers: ByteBudget::new(config.answer_bytes_total),
            memory: Arc::new(Memory::new(config.query_bytes_total)),
            readers: Readers::default(),
            backups: Arc::new(Semaphore::new(backup::RUNNING_MAX)),
            metrics: Metrics::default(),
            clock: seams.clock.clone(),
            random: seams.random.clone(),
            places: Places::default(),
            saved: SavedSearches::open(
                searches.clone(),
                backend.clone(),
                config.tenant.clone(),
                config.saved.clone(),
                clock,
                random,
            ),
            searches,
            live,
            sockets: Arc::new(()),
            stopping: AtomicBool::new(false),
            request_prefix: seams.random.next_u64(),
            requests: AtomicU64::new(0),
            backend,
            config,
        }))
    }

    /// The collection of this name; 503 where it is damaged, 404 where there is none.
    pub fn collection(&self, name: &str) -> Result<Arc<dyn Collection>> {
        let (backend, tenant) = (&self.backend, &self.config.tenant);
        backend.collection(tenant, name).ok_or_else(|| match backend.why_damaged(tenant, name) {
            Some(damaged) => errors::damaged_problem(&damaged),
            None => Problem::not_found(format!("there is no collection {name:?}")),
        })
    }

    /// Microseconds since 1970.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// An id for a request that came without one: 16 hexadecimal digits, unique in this process.
    pub fn next_request_id(&self) -> String {
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        // An odd multiplier permutes the 64-bit numbers, so ids do not repeat and consecutive ones look different.
        format!("{:016x}", (n ^ self.request_prefix).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl Deref for AppState {
    type Target = StateInner;

    fn deref(&self) -> &StateInner {
        &self.0
    }
}
