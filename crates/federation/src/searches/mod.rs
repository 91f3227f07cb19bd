//! All searches of a server: admission, joining, and lookup until they expire.

mod ending;
mod prepare;
mod registry;
mod retry_schedule;
mod start;
mod supervisor;

use crate::asker::SearchKey;
use crate::fetch::Http;
use crate::pipeline::Pipeline;
use crate::pipeline::plan::plan;
use crate::places::PlaceNames;
use crate::provider::{LocalProvider, Provider, RemoteProvider};
use crate::question::Question;
use crate::refusal::Refusal;
use crate::result_store::ResultStore;
use crate::search::{Search, last_bytes};
use crate::settings::Settings;
use crate::status::ProviderStatus;
use crate::tally::Tally;
use meridian_admission::ByteBudget;
use meridian_admission::gate::Gate;
use meridian_backend::{Backend, Clock, Random, View};
use meridian_model::Invalid;
use meridian_model::policy::queue::Class;
use meridian_model::policy::quota::Quota;
use meridian_observe::Tracer;
use parking_lot::Mutex;
use registry::{Admission, EndedSearch, Registry, RunningSlot};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::OnceCell;
use tokio::time::{Duration, Instant};

/// The searches of a server.
pub struct Searches {
    settings: Settings,
    providers: BTreeMap<String, Arc<dyn Provider>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    budget: ByteBudget,
    answers: ByteBudget,
    tally: Arc<Tally>,
    places: Arc<PlaceNames>,
    result_store: Option<Arc<dyn ResultStore>>,
    pipeline: OnceCell<Arc<Pipeline>>,
    registry: Mutex<Registry>,
    tracer: Tracer,
    /// Admits lookups of addresses.
    gate: Option<Gate>,
    /// First half of all ids, if they must identify their gateway.
    number: Option<u64>,
}

impl Settings {
    /// Max bytes of the last packet of a search, which names all providers. `packet_bytes` must be at least this.
    pub fn last_packet_bytes(&self) -> usize {
        let names: Vec<&str> =
            self.providers.iter().map(|declared| declared.name.as_str()).chain([LocalProvider::NAME]).collect();
        last_bytes(&names)
    }
}

/// A client that retries early is admitted only while at most one slot in this many is taken. The others are for new
/// clients and clients that retry on time.
const PLACES_FOR_THE_EARLY: usize = 4;

/// It also requires that work waits at most this fraction of `delay_max`, so that it slows no other search.
const WAIT_FOR_THE_EARLY: u32 = 16;

impl Searches {
    /// Creates searches over the remote providers of the settings and the collections of the caller. Place names are
    /// read from the collections of `tenant`, for everyone. No task runs before the first search.
    pub fn new(
        settings: Settings,
        backend: Arc<dyn Backend>,
        tenant: String,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Searches {
        let http = Arc::new(Http::new(settings.answer_bytes_total));
        let own: Arc<dyn Provider> = Arc::new(LocalProvider::new(clock.clone()));
        let outside = settings
            .providers
            .iter()
            .map(|d| Arc::new(RemoteProvider::new(d.clone(), http.clone())) as Arc<dyn Provider>);
        let providers = outside.chain([own]).map(|provider| (provider.name().to_owned(), provider)).collect();
        let budget = ByteBudget::new(settings.buffer_bytes_total);
        let answers = http.budget.clone();
        let registry = Mutex::new(Registry::new(settings.searches_max));
        let (tally, result_store, pipeline) = (Arc::default(), None, OnceCell::new());
        let (gazetteer, people) = (settings.gazetteer.clone(), settings.gazetteer_population);
        let places = Arc::new(PlaceNames::new(backend, tenant, gazetteer, people, clock.clone()));
        Searches {
            settings,
            providers,
            clock,
            random,
            budget,
            answers,
            tally,
            places,
            result_store,
            pipeline,
            registry,
            tracer: Tracer::default(),
            gate: None,
            number: None,
        }
    }

    /// Adds a provider implemented in Rust. It replaces a declared one of the same name.
    pub fn with(mut self, provider: Arc<dyn Provider>) -> Searches {
        self.providers.insert(provider.name().to_owned(), provider);
        self
    }

    /// Records searches and their outgoing requests.
    pub fn traced(self, tracer: Tracer) -> Searches {
        Searches { tracer, ..self }
    }

    /// Looks up addresses with permits, charged to the tenants of the callers.
    pub fn admitted_by(self, gate: Gate) -> Searches {
        Searches { gate: Some(gate), ..self }
    }

    /// Makes the ids of all searches begin with this number, by which others find the process that runs them.
    pub fn numbered(self, number: Option<u64>) -> Searches {
        Searches { number, ..self }
    }

    /// Returns the span sink.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Enables the question member `keep`.
    pub fn keeping(self, result_store: Arc<dyn ResultStore>) -> Searches {
        Searches { result_store: Some(result_store), ..self }
    }

    /// Guarantees each tenant a share of the slots and of the packet memory, by its weight.
    pub fn guarantee(&self, weights: &[(Arc<str>, u32)]) {
        self.budget.guarantee(weights.iter().cloned());
        self.registry.lock().slots.guarantee(weights.iter().cloned());
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn admit(
        self: &Arc<Searches>,
        key: &SearchKey,
        question: &Question,
        view: &View,
        arrived: Instant,
    ) -> Result<Admission, Refusal> {
        let delay = self.delay_of(question.priority.class(), view);
        let mut registry = self.registry.lock();
        // Checked again under the lock that takes the slot: another search may have taken the last one.
        if let Some(search) = self.look(&mut registry, key, view, delay)? {
            return Ok(Admission::Join(search));
        }
        let caller = view.caller();
        let held = caller.ledger.hold(Quota::Searches, caller.share()).map_err(Refusal::Quota)?;
        registry.retries.note_begin(key, Instant::now());
        // Two requests may arrive in the same instant; the number keeps their keys apart.
        registry.places += 1;
        let key = (arrived, registry.places);
        registry.running.insert(key, arrived + question.deadline);
        let tenant = view.caller().tenant.clone();
        // A slot is free: the check was under the same lock.
        registry.slots.force(tenant.clone(), 1);
        Ok(Admission::Running(RunningSlot { searches: self.clone(), key, tenant, _held: held }))
    }

    /// Decides admission after work has waited for `delay`: the search to join, `None` for a slot of its own, or a
    /// refusal.
    fn look(
        &self,
        registry: &mut Registry,
        key: &SearchKey,
        view: &View,
        delay: Duration,
    ) -> Result<Option<Arc<Search>>, Refusal> {
        if let Some(search) = registry.joined(key, self.settings.join) {
            self.tally.joined.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(search));
        }
        let (now, delay_max) = (Instant::now(), self.settings.delay_max);
        let (running, most) = (registry.running.len(), self.settings.searches_max);
        // A client with a retry time is refused for that reason first: it must not push back its turn by retrying.
        let spare = delay * WAIT_FOR_THE_EARLY <= delay_max && running * PLACES_FOR_THE_EARLY <= most;
        let refusal = if let Some(retry) = registry.retries.remaining(key, now).filter(|_| !spare) {
            Refusal::Early { retry }
        } else if delay > delay_max {
            Refusal::Busy { delay, retry: registry.retries.assign(key, now, Duration::ZERO) }
        } else if !registry.slots.fits(view.tenant(), 1) || registry.stopped {
            let min_wait = registry.free_in(now);
            Refusal::TooMany { running, retry: registry.retries.assign(key, now, min_wait) }
        } else {
            return Ok(None);
        };
        self.tally.refused.fetch_add(1, Ordering::Relaxed);
        Err(refusal)
    }

    /// Returns how long work of any tenant, of this class or a more urgent one, has waited for a processor.
    pub fn delay(&self, class: Class) -> Duration {
        self.pipeline.get().map_or(Duration::ZERO, |pipeline| pipeline.delay(class, None))
    }

    /// Returns how long work ahead of a new search has waited. Covers its own tenant, as others only take turns with
    /// it.
    fn delay_of(&self, class: Class, view: &View) -> Duration {
        self.pipeline.get().map_or(Duration::ZERO, |pipeline| pipeline.delay(class, Some(view.tenant())))
    }

    /// Drops ended searches until the budget suffices for the running ones: the oldest of the tenant that holds most
    /// bytes. Keeps `newest` and all that a reader may still return to.
    fn evict_ended(&self, registry: &mut Registry, newest: &str) {
        while self.budget.is_short() {
            let done = |search: &Arc<Search>| search.outbox.is_done_with(self.settings.gone, self.settings.wait);
            let goes = |id: &String| id != newest && registry.all.get(id).is_some_and(done);
            let going = registry.ended.iter().enumerate().filter(|(_, ended)| goes(&ended.id));
            let bytes =
                |(place, ended): &(usize, &EndedSearch)| (self.budget.of(&ended.tenant).held_here(), Reverse(*place));
            let Some((place, _)) = going.max_by_key(bytes) else { return };
            registry.forget(place);
        }
    }

    /// Returns the search of this id, while it runs or can still be read.
    pub fn get(&self, id: &str) -> Option<Arc<Search>> {
        self.registry.lock().all.get(id).cloned()
    }

    /// Returns the names of the remote providers.
    pub fn remote_names(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str).filter(|name| *name != LocalProvider::NAME)
    }

    /// Returns the remote providers that would be queried for a question.
    pub fn remote_takers(&self, question: &Question, view: &View) -> Result<Vec<String>, Invalid> {
        let asked = plan(question, view, &self.providers)?.asked;
        Ok(asked.iter().map(|provider| provider.name().to_owned()).filter(|name| name != LocalProvider::NAME).collect())
    }

    /// Returns the number of running searches.
    pub fn running(&self) -> usize {
        self.registry.lock().running.len()
    }

    /// Returns the bytes of kept packets and questions.
    pub fn bytes(&self) -> usize {
        self.budget.held()
    }

    /// Returns the bytes of responses being processed.
    pub fn answer_bytes(&self) -> usize {
        self.answers.held()
    }

    /// Returns the counters.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns all providers and their health, for `GET /providers`.
    pub fn providers(&self, view: &View) -> Vec<ProviderStatus> {
        let of = |provider: &Arc<dyn Provider>| {
            let report = match provider.report(view) {
                Value::Object(report) => report.into_iter().filter(|(_, value)| !value.is_null()).collect(),
                _ => Map::new(),
            };
            ProviderStatus { name: provider.name().to_owned(), title: provider.title().to_owned(), report }
        };
        self.providers.values().map(of).collect()
    }
}
