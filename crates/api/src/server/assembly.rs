//! Assembles the state of a server from its features.

use crate::access::records::{RECORDS, RecordVault};
use crate::access::{issuer_files, tenants};
use crate::cluster::member::Member;
use crate::config::{ADMINISTRATION_BYTES, ServerConfig};
use crate::operation::backup;
use crate::searches::keep::CollectionResults;
use crate::server::background::GatedBackground;
#[cfg(feature = "geopackage")]
use crate::state::answer_files::AnswerFiles;
use crate::state::audit_log::Audit;
use crate::state::brief_runs::BriefRuns;
use crate::state::change_queues::{self, ChangeQueues};
use crate::state::event_streams::EventStreams;
use crate::state::exchanges::Exchanges;
use crate::state::metrics::Metrics;
use crate::state::passwords::Passwords;
use crate::state::readers::Readers;
use crate::state::readiness::Readiness;
use crate::state::slow::SlowRequests;
use crate::state::usage_history::History;
use crate::state::{AppState, Callers, StateInner};
use meridian_admission::ByteBudget;
use meridian_admission::gate::{Gate, Settings};
use meridian_admission::identity::jwt::Issuers;
use meridian_admission::identity::{DEFAULT_TENANT, Fault, Registry, Throttle};
use meridian_backend::{Backend, Seams};
use meridian_federation::Searches;
use meridian_federation::provider::LocalProvider;
use meridian_observe::Tracer;
use meridian_saved::{Parts, SavedSlots};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::Semaphore;

/// Max concurrent requests of operators and their monitors; the same number may wait.
const RESERVED_MAX: usize = 16;

/// The conditions of streams get one part in this many of the memory for responses.
const CONDITIONS_PART: usize = 8;
/// Max part of the memory for responses that encoders hold, as a divisor.
const ENCODERS_PART: usize = 4;

impl AppState {
    /// Creates the state over a server's collections; clock and randomness come from the same seams as theirs.
    ///
    /// # Errors
    /// Those of [`Registry::open`], and files of issuers' keys that cannot be read.
    pub fn new(backend: Arc<dyn Backend>, seams: &Seams, config: ServerConfig) -> Result<AppState, Fault> {
        AppState::with(backend, seams, config, Tracer::default(), None)
    }

    /// Creates the same state, with requests recorded by `tracer`. `member` is the server's place in its cluster;
    /// `None` if it is a single process.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn with(
        backend: Arc<dyn Backend>,
        seams: &Seams,
        config: ServerConfig,
        tracer: Tracer,
        member: Option<Member>,
    ) -> Result<AppState, Fault> {
        let records = backend.records(RECORDS);
        let shares_registry = records.is_shared();
        let issuers = Issuers::new(config.issuers.clone());
        let registry = Arc::new(Registry::open_trusting(Arc::new(RecordVault::new(records)), issuers)?);
        for (id, why) in registry.damaged_tokens() {
            tracing::error!(token = id, "a damaged token admits nobody: {why}");
        }
        issuer_files::read_files(registry.issuers(), seams.disk.as_ref())?;
        let tenants = registry.clone();
        let ledgers = move |tenant: &str| tenants.ledger(tenant);
        let gate = Gate::new(config.admission());
        // Before the first request: flushes of the opened store are charged from the start.
        let background = Arc::new(GatedBackground::new(gate.clone(), registry.clone(), tracer.clone()));
        backend.charge_to(background.clone());
        let searches = Searches::new(
            config.search.clone(),
            backend.clone(),
            DEFAULT_TENANT.to_owned(),
            seams.clock.clone(),
            seams.random.clone(),
        );
        let keeper = CollectionResults::new(registry.clone(), seams.clock.clone());
        let own = LocalProvider::new(seams.clock.clone()).admitted_by(gate.clone());
        let searches = searches.traced(tracer.clone()).admitted_by(gate.clone());
        let searches = searches.numbered(config.gateways.as_ref().map(|own| own.number()));
        let searches = Arc::new(searches.keeping(Arc::new(keeper)).with(Arc::new(own)));
        let live = Arc::new(EventStreams::new(config.streams_max));
        backend.subscribe(live.clone());
        let (clock, random, ticks) = (seams.clock.clone(), seams.random.clone(), seams.clock.clone());
        let state = AppState::of(StateInner {
            callers: Callers::new(&registry),
            passwords: Passwords::default(),
            exchanges: Exchanges::of(registry.issuers()),
            throttle: Throttle::default(),
            audit: Audit::new(backend.audit(), seams.clock.clone()),
            registry,
            shares_registry,
            changes: ChangeQueues::new(change_queues::RUNNING_MAX, change_queues::WAITING_MAX),
            removals: Arc::new(Semaphore::new(tenants::REMOVALS_MAX)),
            gate,
            brief: BriefRuns::default(),
            // A separate gate: a full server must still answer health checks and operators.
            reserved: Gate::new(Settings {
                slots: RESERVED_MAX,
                slots_max: RESERVED_MAX,
                started_max: RESERVED_MAX,
                waiting_max: RESERVED_MAX,
                ..config.admission()
            }),
            bodies: ByteBudget::new(config.body_bytes_total),
            batches: ByteBudget::new(config.batch_bytes_total),
            answers: ByteBudget::new(config.answer_bytes_total - config.answer_bytes_total / CONDITIONS_PART),
            http2: ByteBudget::new(config.http2_bytes()),
            encoders: ByteBudget::new(config.answer_bytes_total / ENCODERS_PART),
            administration: ByteBudget::new(ADMINISTRATION_BYTES),
            conditions: ByteBudget::new(config.answer_bytes_total / CONDITIONS_PART),
            memory: ByteBudget::new(usize::try_from(config.query_bytes_total).unwrap_or(usize::MAX)),
            readers: Readers::default(),
            #[cfg(feature = "geopackage")]
            files: AnswerFiles::open(&config, &seams.disk),
            backups: Arc::new(Semaphore::new(backup::RUNNING_MAX)),
            metrics: Metrics::default(),
            scrapes: Arc::new(Semaphore::new(1)),
            readiness: Readiness::default(),
            disk: seams.disk.clone(),
            clock: seams.clock.clone(),
            random: seams.random.clone(),
            places_creation: Mutex::default(),
            saved: saved_of(&config)(Parts {
                searches: searches.clone(),
                backend: backend.clone(),
                ledgers: Arc::new(ledgers),
                background,
                settings: config.saved.clone(),
                clock,
                random,
            }),
            searches,
            live,
            stopping: AtomicBool::new(false),
            drained: AtomicBool::new(false),
            tracer,
            stopwatch: Arc::new(move || u64::try_from(ticks.elapsed()).unwrap_or(0) * 1_000),
            slow: SlowRequests::default(),
            load_history: History::default(),
            member,
            // Random, so that the ids of two runs differ in logs.
            request_prefix: seams.random.next_u64(),
            backend,
            config,
        });
        state.share_out();
        Ok(state)
    }
}

/// Returns how this process opens saved searches: a gateway runs those of some slots; any other process runs all or
/// none.
fn saved_of(config: &ServerConfig) -> fn(Parts) -> SavedSlots {
    match config.gateways {
        Some(_) => SavedSlots::divided,
        None => SavedSlots::whole,
    }
}
