//! All searches of a server: who may begin one, who joins one, and how each is brought to its end.

mod retry_schedule;
mod supervisor;

use crate::area::Area;
use crate::keep::Keeper;
use crate::leg::Leg;
use crate::pipeline::plan::plan;
use crate::pipeline::{Pipeline, Work};
use crate::places::PlaceNames;
use crate::provider::{Http, Outside, Own, Provider, locate};
use crate::question::{Location, Question};
use crate::search::{Search, Tally};
use crate::settings::Settings;
use crate::status::ProviderStatus;
use crate::supervise::supervise;
use meridian_admission::ByteBudget;
use meridian_backend::{Backend, Clock, Random, StoreError};
use meridian_model::Invalid;
use meridian_model::policy::queue::Class;
use meridian_query::{CancelFlag, Control, QueryError};
use parking_lot::Mutex;
use retry_schedule::RetrySchedule;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use supervisor::SearchSupervisor;
use tokio::sync::OnceCell;

/// Why a question is not taken.
#[derive(Debug)]
pub enum Refusal {
    /// It is at fault.
    Invalid(Invalid),
    /// As many searches run as may.
    TooMany {
        /// How many.
        running: usize,
        /// When a place may come free.
        retry: Duration,
    },
    /// Those that run wait too long for this server's processors.
    Busy {
        /// For how long work of theirs has waited.
        delay: Duration,
        /// When to come again.
        retry: Duration,
    },
    /// He was refused a moment ago and told when to come again, and that is not yet.
    Early {
        /// How long it still is until then.
        retry: Duration,
    },
    /// There are as many saved searches as may be.
    TooManySaved {
        /// How many.
        most: usize,
    },
    /// What was to be kept found no room on the disk.
    DiskFull(String),
    /// Something of ours failed.
    Failed(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error.is_full() {
            true => Refusal::DiskFull(error.to_string()),
            false => Refusal::Failed(error.to_string()),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Invalid(invalid) => invalid.fmt(f),
            Refusal::TooMany { running, .. } => write!(f, "{running} searches run, as many as may"),
            Refusal::Busy { delay, .. } => {
                write!(f, "the searches that run wait {} ms for a processor", delay.as_millis())
            }
            Refusal::Early { retry } => {
                write!(f, "the same was refused a moment ago, and its turn comes in {} ms", retry.as_millis())
            }
            Refusal::TooManySaved { most } => write!(f, "there are {most} saved searches, as many as may be"),
            Refusal::DiskFull(why) | Refusal::Failed(why) => f.write_str(why),
        }
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Refusal {
        Refusal::Invalid(invalid)
    }
}

/// The searches of a server.
pub struct Searches {
    settings: Settings,
    providers: BTreeMap<String, Arc<dyn Provider>>,
    backend: Arc<dyn Backend>,
    tenant: String,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    budget: ByteBudget,
    answers: ByteBudget,
    tally: Arc<Tally>,
    places: Arc<PlaceNames>,
    keeper: Option<Arc<dyn Keeper>>,
    pipeline: OnceCell<Arc<Pipeline>>,
    registry: Mutex<Registry>,
}

/// Who asks what.
pub(crate) type Key = (String, String);

/// Who comes before his turn is let in only while one place in so many is taken at most: the others are for those who come for
/// the first time, or when they were told to.
const PLACES_FOR_THE_EARLY: usize = 4;
/// And only while work waits for a processor one part in so many of the time that it may, so that he slows nobody.
const WAIT_FOR_THE_EARLY: u32 = 16;

/// Which searches there are.
#[derive(Default)]
struct Registry {
    all: HashMap<String, Arc<Search>>,
    /// Those that run: when each arrived, and its deadline.
    running: BTreeMap<RunningKey, Instant>,
    /// Places that were given.
    places: u64,
    /// Ended ones that can still be read, oldest first.
    ended: VecDeque<String>,
    /// Those that may be joined: asker and question, to name.
    joinable: HashMap<Key, String>,
    /// How long searches take: a mean in which the last ones weigh most.
    takes: Option<Duration>,
    /// When those who are refused may come again.
    retries: RetrySchedule,
    stopped: bool,
}

/// A place among those that run: when its search arrived, and a number.
type RunningKey = (Instant, u64);

impl Registry {
    /// The search that runs with this key, if it began less than `join` ago.
    fn joined(&self, key: &Key, join: Duration) -> Option<Arc<Search>> {
        let search = self.joinable.get(key).and_then(|id| self.all.get(id))?;
        (search.arrived.elapsed() < join && !search.is_over()).then(|| search.clone())
    }

    fn note_end(&mut self, took: Duration) {
        self.takes = Some(self.takes.map_or(took, |mean| (mean * 7 + took) / 8));
        self.retries.note_end(Instant::now());
    }

    /// When a place comes free: when the oldest search that runs has taken as long as they do, at its deadline at the latest.
    fn free_in(&self, now: Instant) -> Duration {
        let Some(((arrived, _), deadline)) = self.running.first_key_value() else { return Duration::ZERO };
        let end = self.takes.map_or(*deadline, |takes| (*deadline).min(*arrived + takes));
        end.saturating_duration_since(now)
    }
}

impl Searches {
    /// Over the collections of `tenant` and the outside providers of the settings. Nothing runs before the first search.
    pub fn new(
        settings: Settings,
        backend: Arc<dyn Backend>,
        tenant: String,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Searches {
        let http = Arc::new(Http::new(settings.answer_bytes_total));
        let own: Arc<dyn Provider> = Arc::new(Own::new(backend.clone(), tenant.clone(), clock.clone()));
        let outside =
            settings.providers.iter().map(|d| Arc::new(Outside::new(d.clone(), http.clone())) as Arc<dyn Provider>);
        let providers = outside.chain([own]).map(|provider| (provider.name().to_owned(), provider)).collect();
        let budget = ByteBudget::new(settings.buffer_bytes_total);
        let answers = http.budget.clone();
        let (tally, keeper, pipeline, registry) = (Arc::default(), None, OnceCell::new(), Mutex::default());
        let (gazetteer, people) = (settings.gazetteer.clone(), settings.gazetteer_population);
        let places = Arc::new(PlaceNames::new(backend.clone(), tenant.clone(), gazetteer, people, clock.clone()));
        Searches {
            settings,
            providers,
            backend,
            tenant,
            clock,
            random,
            budget,
            answers,
            tally,
            places,
            keeper,
            pipeline,
            registry,
        }
    }

    /// Adds a provider that is a Rust type; a declared one of its name gives way.
    pub fn with(mut self, provider: Arc<dyn Provider>) -> Searches {
        self.providers.insert(provider.name().to_owned(), provider);
        self
    }

    /// Lets questions have their results kept.
    pub fn keeping(self, keeper: Arc<dyn Keeper>) -> Searches {
        Searches { keeper: Some(keeper), ..self }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins a search, or joins the one that the same asker began a moment ago with the same question; `true` if joined.
    /// Its packets can be read from the moment that this returns.
    pub async fn start(
        self: &Arc<Searches>,
        asked: &Value,
        asker: &str,
        arrived: Instant,
    ) -> Result<(Arc<Search>, bool), Refusal> {
        let key = (asker.to_owned(), asked.to_string());
        // Who is refused whatever he asks costs no more than to say so.
        let delay = self.delay(Class::Quick);
        if let Some(search) = self.look(&mut self.registry.lock(), &key, delay)? {
            return Ok((search, true));
        }
        let question = Question::read(asked, &self.settings)?;
        self.begin(question, key, arrived).await
    }

    /// As [`Searches::start`], with a question that was read already; `key` says who asks what.
    pub async fn begin(
        self: &Arc<Searches>,
        question: Question,
        key: Key,
        arrived: Instant,
    ) -> Result<(Arc<Search>, bool), Refusal> {
        let plan = plan(&question, &self.providers)?;
        let place = match self.admit(&key, &question, arrived)? {
            Admitted::Join(search) => return Ok((search, true)),
            Admitted::Place(place) => place,
        };
        let question = self.located(question, arrived).await?;
        self.ready_to_keep(&question).await?;
        let id = format!("{:016x}{:016x}", self.random.next_u64(), self.random.next_u64());
        let search = Arc::new(Search::new(
            id.clone(),
            question,
            arrived,
            &self.settings,
            self.budget.clone(),
            self.tally.clone(),
        ));
        let pipeline = self
            .pipeline
            .get_or_init(async || {
                let (providers, keeper) = (self.providers.values(), self.keeper.clone());
                Pipeline::new(&self.settings, providers, &self.places, keeper, &self.tally)
            })
            .await;
        for (provider, why) in plan.skipped {
            search.skip(&provider, why);
        }
        // All are noted before the first is asked, so that the search is not taken for ended.
        let legs: Vec<_> = plan.asked.into_iter().map(|provider| search.begin(provider)).collect();
        {
            let mut registry = self.registry.lock();
            registry.all.insert(id.clone(), search.clone());
            registry.joinable.insert(key.clone(), id);
        }
        self.tally.begun.fetch_add(1, Ordering::Relaxed);
        let supervisor = SearchSupervisor::new(self.clone(), search.clone(), place, key);
        tokio::spawn(supervise("search supervisor", move || supervisor.clone().watch()));
        tokio::spawn(feed(pipeline.clone(), search.clone(), legs));
        Ok((search, false))
    }

    fn admit(self: &Arc<Searches>, key: &Key, question: &Question, arrived: Instant) -> Result<Admitted, Refusal> {
        let delay = self.delay(question.priority.class());
        let mut registry = self.registry.lock();
        if let Some(search) = self.look(&mut registry, key, delay)? {
            return Ok(Admitted::Join(search));
        }
        registry.retries.note_begin(key, Instant::now());
        registry.places += 1;
        let key = (arrived, registry.places);
        registry.running.insert(key, arrived + question.deadline);
        Ok(Admitted::Place(Running(self.clone(), key)))
    }

    /// Whether a search may begin before which work has waited for `delay`: the one that it joins, `None` for a place of its own,
    /// or a refusal.
    fn look(&self, registry: &mut Registry, key: &Key, delay: Duration) -> Result<Option<Arc<Search>>, Refusal> {
        if let Some(search) = registry.joined(key, self.settings.join) {
            self.tally.joined.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(search));
        }
        let (now, delay_max) = (Instant::now(), self.settings.delay_max);
        let (running, most) = (registry.running.len(), self.settings.searches_max);
        let spare = delay * WAIT_FOR_THE_EARLY <= delay_max && running * PLACES_FOR_THE_EARLY <= most;
        let refusal = if let Some(retry) = registry.retries.early(key, now).filter(|_| !spare) {
            Refusal::Early { retry }
        } else if delay > delay_max {
            Refusal::Busy { delay, retry: registry.retries.give(key, now, Duration::ZERO) }
        } else if running >= most || registry.stopped {
            let least = registry.free_in(now);
            Refusal::TooMany { running, retry: registry.retries.give(key, now, least) }
        } else {
            return Ok(None);
        };
        self.tally.refused.fetch_add(1, Ordering::Relaxed);
        Err(refusal)
    }

    /// For how long work that goes before a new search of this class has waited for a processor.
    pub fn delay(&self, class: Class) -> Duration {
        self.pipeline.get().map_or(Duration::ZERO, |pipeline| pipeline.delay(class))
    }

    /// A question with its address looked up.
    pub async fn located(&self, mut question: Question, arrived: Instant) -> Result<Question, Refusal> {
        let Some(Location::Address { name, radius_m }) = question.place.clone() else { return Ok(question) };
        let collection = self.backend.collection(&self.tenant, &self.settings.addresses).ok_or_else(|| {
            let name = &self.settings.addresses;
            if let Some(damaged) = self.backend.why_damaged(&self.tenant, name) {
                return Refusal::Failed(damaged.to_string());
            }
            Refusal::Invalid(Invalid::field(
                "address",
                format!("there is no collection {name:?} to look it up in: load one, or give near and radius"),
            ))
        })?;
        let left = question.deadline.saturating_sub(arrived.elapsed());
        let control = Control::new(self.clock.clone(), left, CancelFlag::new());
        let found = tokio::task::spawn_blocking(move || locate(collection.as_ref(), &name, &control)).await;
        match found.map_err(|e| Refusal::Failed(e.to_string()))? {
            Ok((lon, lat)) => {
                question.place = Some(Location::Area(Area::Circle { lon, lat, radius_m }));
                Ok(question)
            }
            Err(QueryError::Invalid(invalid)) => Err(Refusal::Invalid(Invalid::field("address", invalid.detail))),
            Err(e) => Err(Refusal::Failed(e.to_string())),
        }
    }

    /// Sees to the collection in which a question's results are to be kept.
    async fn ready_to_keep(&self, question: &Question) -> Result<(), Refusal> {
        let Some(keep) = question.keep.clone() else { return Ok(()) };
        let keeper = self.keeper.clone().ok_or_else(|| Invalid::field("keep", "this server keeps no results"))?;
        let ready = tokio::task::spawn_blocking(move || keeper.ready(&keep)).await;
        ready.map_err(|e| Refusal::Failed(e.to_string()))?
    }

    /// Forgets searches that ended, the oldest first, until there is room for those that run; but not the `newest`, and none
    /// whose asker may still come for what it has not read.
    fn make_room(&self, registry: &mut Registry, newest: &str) {
        let Registry { all, ended, .. } = registry;
        ended.retain(|id| {
            let done = |search: &Arc<Search>| search.outbox.is_done_with(self.settings.gone, self.settings.wait);
            let goes = self.budget.is_short() && id != newest && all.get(id).is_some_and(done);
            if goes {
                all.remove(id);
            }
            !goes
        });
    }

    /// The search of this name, if it runs or ended a moment ago.
    pub fn get(&self, id: &str) -> Option<Arc<Search>> {
        self.registry.lock().all.get(id).cloned()
    }

    /// Ends a search; its readers get the last packet. `false` where there is none of this name.
    pub fn stop(&self, id: &str) -> bool {
        let search = self.get(id);
        if let Some(search) = &search {
            search.seal("the search was stopped");
        }
        search.is_some()
    }

    /// Ends all searches and begins no more: the server stops.
    pub fn stop_all(&self) {
        let all: Vec<Arc<Search>> = {
            let mut registry = self.registry.lock();
            registry.stopped = true;
            registry.all.values().cloned().collect()
        };
        all.iter().for_each(|search| search.seal("the server is stopping"));
    }

    /// The names of the providers that are outside.
    pub fn outside(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str).filter(|name| *name != Own::NAME)
    }

    /// The outside providers that would be asked a question.
    pub fn takers(&self, question: &Question) -> Result<Vec<String>, Invalid> {
        let asked = plan(question, &self.providers)?.asked;
        Ok(asked.iter().map(|provider| provider.name().to_owned()).filter(|name| name != Own::NAME).collect())
    }

    /// Searches that run.
    pub fn running(&self) -> usize {
        self.registry.lock().running.len()
    }

    /// Bytes of packets kept.
    pub fn bytes(&self) -> usize {
        self.budget.held()
    }

    /// Bytes of answers in work.
    pub fn answer_bytes(&self) -> usize {
        self.answers.held()
    }

    /// The counters.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// All providers and how they have been, for `GET /providers`.
    pub fn providers(&self) -> Vec<ProviderStatus> {
        let of = |provider: &Arc<dyn Provider>| {
            let report = match provider.report() {
                Value::Object(report) => report.into_iter().filter(|(_, value)| !value.is_null()).collect(),
                _ => Map::new(),
            };
            ProviderStatus { name: provider.name().to_owned(), title: provider.title().to_owned(), report }
        };
        self.providers.values().map(of).collect()
    }
}

/// Puts the legs of a search into the queues before their providers; those that find no room until the search is over are told
/// as late, as any that are dropped.
async fn feed(pipeline: Arc<Pipeline>, search: Arc<Search>, legs: Vec<Arc<Leg>>) {
    let each = async {
        for leg in legs {
            if let Some(lane) = pipeline.ask(leg.provider.name()) {
                lane.push(Work { leg, body: () }).await;
            }
        }
    };
    tokio::select! {
        () = each => {}
        () = search.ended() => {}
    }
}

enum Admitted {
    Join(Arc<Search>),
    Place(Running),
}

/// A place among those that run; given back when dropped.
struct Running(Arc<Searches>, RunningKey);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.registry.lock().running.remove(&self.1);
    }
}
