//! The pipeline: plan, ask, map, enrich, filter, classify, deduplicate, deliver, and keep if the question requests it.
//! With a model in the settings, `images` runs before `deliver`.
//!
//! Each stage is one file and a type that implements [`Stage`], behind a bounded queue and with bounded concurrency.
//! All searches share the stages, in which tenants take turns. Each provider has its own `ask` stage, so that a slow
//! one delays no other. Tasks common to all stages are done here: dropping late work and catching panics.

mod ask;
mod classify;
pub mod deduplicate;
mod deliver;
mod enrich;
mod filter;
mod images;
mod keep;
mod lane;
mod map;
pub mod plan;

#[cfg(test)]
pub(crate) mod tests;

pub use lane::{Lane, LaneItem, QueueAge};

use crate::places::PlaceNames;
use crate::provider::{Fault, Intake, Leg, Provider, Push, Response};
use crate::result_store::ResultStore;
use crate::search_result::SearchResult;
use crate::settings::Settings;
use crate::supervise::{CatchPanic, supervise};
use crate::tally::Tally;
use meridian_model::policy::queue::{Class, Dequeued};
use meridian_observe as observe;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

/// Divisor of the packet budget: results that wait for slow readers hold at most this share of it.
const WAITING_SHARE: usize = 4;

/// Work for a stage, for one leg of a search.
pub struct Work<B> {
    /// The leg. Its provider is done when the last reference is dropped.
    pub leg: Arc<Leg>,
    /// The input of the stage.
    pub body: B,
}

impl<B> LaneItem for Work<B> {
    fn tenant(&self) -> &Arc<str> {
        &self.leg.search.view.caller().tenant
    }

    fn weight(&self) -> u32 {
        self.leg.search.view.caller().ledger.weight()
    }

    fn class(&self) -> Class {
        self.leg.search.question.priority.class()
    }

    fn deadline(&self) -> Instant {
        self.leg.search.deadline
    }
}

/// One step of the pipeline. To add a stage, implement this and insert it in [`Pipeline::new`].
pub trait Stage: Send + Sync + 'static {
    /// Its input.
    type Body: Send + 'static;
    /// Its name, in log messages and provider states.
    const NAME: &'static str;

    /// Processes a piece of work and passes the output to the next stage. Dropped when the search ends.
    fn run(self: Arc<Self>, work: Work<Self::Body>) -> impl Future<Output = ()> + Send;
}

/// A queue of work.
pub type WorkLane<B> = Arc<Lane<Work<B>>>;

/// The running stages; they stop when this is dropped.
pub struct Pipeline {
    asks: HashMap<String, WorkLane<()>>,
    map: WorkLane<Response>,
    enrich: WorkLane<Vec<SearchResult>>,
    /// The queues of stages that need only this server's processors.
    queues: Vec<Arc<dyn QueueAge>>,
    _stages: JoinSet<()>,
}

impl Pipeline {
    /// Starts the stages, last to first.
    pub fn new<'a>(
        settings: &Settings,
        providers: impl IntoIterator<Item = &'a Arc<dyn Provider>>,
        places: &Arc<PlaceNames>,
        result_store: Option<Arc<dyn ResultStore>>,
        tally: &Arc<Tally>,
    ) -> Arc<Pipeline> {
        let mut stages = JoinSet::new();
        let (queue, at_once) = (settings.queue, settings.at_once);
        let keep = start(&mut stages, Arc::new(keep::KeepStage { result_store }), queue, at_once, tally);
        let deliver = deliver::Deliver::new(keep, settings.buffer_bytes_total / WAITING_SHARE);
        let deliver = start(&mut stages, Arc::new(deliver), queue, at_once, tally);
        let images = settings.images.as_ref().map(|model| {
            let images = images::Images::of(model, deliver.clone(), tally.clone());
            start(&mut stages, Arc::new(images), queue, at_once, tally)
        });
        let deduplicate = deduplicate::Deduplicate { next: images.as_ref().unwrap_or(&deliver).clone() };
        let deduplicate = start(&mut stages, Arc::new(deduplicate), queue, at_once, tally);
        let classify = classify::Classify { next: deduplicate.clone() };
        let classify = start(&mut stages, Arc::new(classify), queue, at_once, tally);
        let filter = filter::Filter { next: classify.clone() };
        let filter = start(&mut stages, Arc::new(filter), queue, at_once, tally);
        let enrich = enrich::Enrich { places: places.clone(), next: filter.clone() };
        let enrich = start(&mut stages, Arc::new(enrich), queue, at_once, tally);
        let map = start(&mut stages, Arc::new(map::Map { next: enrich.clone() }), queue, at_once, tally);
        let mut queues: Vec<Arc<dyn QueueAge>> =
            vec![map.clone(), enrich.clone(), filter, classify, deduplicate, deliver];
        queues.extend(images.map(|images| images as Arc<dyn QueueAge>));
        Arc::new_cyclic(|pipeline| {
            let ask = Arc::new(ask::AskStage { pipeline: pipeline.clone() });
            // Admission bounds the searches, and each queries a provider once, so this queue is never full.
            let room = settings.searches_max;
            let asks = providers
                .into_iter()
                .map(|p| (p.name().to_owned(), start(&mut stages, ask.clone(), room, p.at_once(), tally)))
                .collect();
            Pipeline { asks, map, enrich, queues, _stages: stages }
        })
    }

    /// Returns how long the oldest work ahead of new work of this class has waited for a processor, for one tenant or
    /// for all. Near zero unless the server is overloaded.
    pub(crate) fn delay(&self, class: Class, tenant: Option<&str>) -> Duration {
        self.queues.iter().map(|lane| lane.oldest(class, tenant)).max().unwrap_or_default()
    }

    /// Returns the queue of a provider.
    pub(crate) fn ask(&self, provider: &str) -> Option<&WorkLane<()>> {
        self.asks.get(provider)
    }
}

impl Intake for Pipeline {
    fn results(&self, leg: Arc<Leg>, found: Vec<SearchResult>) -> Push<'_> {
        Box::pin(self.enrich.push(Work { leg, body: found }))
    }

    fn response(&self, leg: Arc<Leg>, response: Response) -> Push<'_> {
        Box::pin(self.map.push(Work { leg, body: response }))
    }
}

/// Starts a stage and returns its queue.
fn start<S: Stage>(
    stages: &mut JoinSet<()>,
    stage: Arc<S>,
    queue: usize,
    at_once: usize,
    tally: &Arc<Tally>,
) -> WorkLane<S::Body> {
    let lane = Arc::new(Lane::new(queue));
    let (serving, permits, tally) = (lane.clone(), Arc::new(Semaphore::new(at_once.max(1))), tally.clone());
    stages.spawn(supervise(S::NAME, move || serve(stage.clone(), serving.clone(), permits.clone(), tally.clone())));
    lane
}

/// Takes work for as long as the server runs. The work runs in tasks of its own, so that none can stop this loop.
async fn serve<S: Stage>(stage: Arc<S>, lane: WorkLane<S::Body>, permits: Arc<Semaphore>, tally: Arc<Tally>) {
    while let Ok(permit) = permits.clone().acquire_owned().await {
        // The permit comes first: work taken from the queue before it could expire while waiting for one.
        let work = match lane.pop().await {
            Dequeued::Due(work) if !work.leg.search.is_over() => work,
            Dequeued::Due(work) | Dequeued::Expired(work) => {
                tally.late.fetch_add(1, Ordering::Relaxed);
                work.leg.end(Err(late()));
                continue;
            }
        };
        begin(stage.clone(), work, permit, tally.clone());
    }
}

/// Processes a piece of work in a task of its own that catches its panic. `permit` is released when it is done.
fn begin<S: Stage>(stage: Arc<S>, work: Work<S::Body>, permit: impl Send + 'static, tally: Arc<Tally>) {
    // Held by the task: the leg must outlive a panic in the stage in order to report it.
    let leg = work.leg.clone();
    let span = leg.current.span(S::NAME);
    tokio::spawn(observe::within(span.within(leg.current.clone()), async move {
        let _span = span;
        tokio::select! {
            done = CatchPanic::new(stage.run(work)) => if let Err(panic) = done {
                tally.lost.fetch_add(1, Ordering::Relaxed);
                tracing::error!(stage = S::NAME, provider = leg.provider.name(), panic, "work was lost to a panic");
                leg.lose(format!("a fault of this server in the stage {} lost some of its results", S::NAME));
            },
            // Dropping the stage's future cancels its calls, so that no work outlives its search.
            () = leg.search.ended() => {
                tally.late.fetch_add(1, Ordering::Relaxed);
            }
        }
        drop(permit);
    }));
}

fn late() -> Fault {
    Fault::Timeout("the search ended before all its results were processed".to_owned())
}
