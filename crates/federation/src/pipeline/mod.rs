//! The way of a search: plan, ask, map, enrich, filter, classify, deduplicate, deliver, and keep where the question says so;
//! before deliver stands images, where the operator names a model.
//!
//! Each stage is one file, a type that implements [`Stage`], with a bounded queue before it and so many pieces of work at
//! once. All searches share the stages; each provider has an "ask" of its own, so that a slow one is waited for by nobody
//! else. What every stage needs (to be dropped when late, to be contained when it panics) is done here, once.

mod ask;
pub mod classify;
pub mod deduplicate;
mod deliver;
mod enrich;
pub mod filter;
mod images;
mod keep;
mod lane;
mod map;
pub mod plan;
mod sink;

#[cfg(test)]
mod tests;

pub use deduplicate::Seen;
pub use lane::{Lane, Urgent, Waits};
pub use sink::Sink;

use crate::found::Found;
use crate::keep::Keeper;
use crate::leg::Leg;
use crate::places::PlaceNames;
use crate::provider::{Fault, Provider};
use crate::search::Tally;
use crate::settings::Settings;
use crate::supervise::{Contained, supervise};
use map::Answer;
use meridian_model::policy::queue::{Class, Taken};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Results that wait for slow readers hold at most this part of what all packets may.
const WAITING_SHARE: usize = 4;

/// Work for a stage, and the part of a search that it is done for.
pub struct Work<B> {
    /// Whose it is; its provider is done when the last of these is gone.
    pub leg: Arc<Leg>,
    /// What is to be done.
    pub body: B,
}

impl<B> Urgent for Work<B> {
    fn class(&self) -> Class {
        self.leg.search.question.priority.class()
    }

    fn deadline(&self) -> Instant {
        self.leg.search.deadline
    }
}

/// One step of the way. To add a stage: implement this, and put it between two others in [`Pipeline::new`].
pub trait Stage: Send + Sync + 'static {
    /// What it takes.
    type Body: Send + 'static;
    /// Its name, for those who read what was lost in it.
    const NAME: &'static str;

    /// Does a piece of work, and hands what comes of it to the next stage. Dropped when the search is over.
    fn run(self: Arc<Self>, work: Work<Self::Body>) -> impl Future<Output = ()> + Send;
}

/// A queue of work.
pub type WorkLane<B> = Arc<Lane<Work<B>>>;

/// The stages at work; they stop when it is dropped.
pub struct Pipeline {
    asks: HashMap<String, WorkLane<()>>,
    map: WorkLane<Answer>,
    enrich: WorkLane<Vec<Found>>,
    /// The queues before stages that need only this server's processors.
    waits: Vec<Arc<dyn Waits>>,
    _stages: JoinSet<()>,
}

impl Pipeline {
    /// Starts the stages, from the last to the first.
    pub fn new<'a>(
        settings: &Settings,
        providers: impl IntoIterator<Item = &'a Arc<dyn Provider>>,
        places: &Arc<PlaceNames>,
        keeper: Option<Arc<dyn Keeper>>,
        tally: &Arc<Tally>,
    ) -> Arc<Pipeline> {
        let mut stages = JoinSet::new();
        let (queue, at_once) = (settings.queue, settings.at_once);
        let keep = start(&mut stages, Arc::new(keep::Keep { keeper }), queue, at_once, tally);
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
        let mut waits: Vec<Arc<dyn Waits>> = vec![map.clone(), enrich.clone(), filter, classify, deduplicate, deliver];
        waits.extend(images.map(|images| images as Arc<dyn Waits>));
        Arc::new_cyclic(|pipeline| {
            let ask = Arc::new(ask::Ask { pipeline: pipeline.clone() });
            // Admission bounds the searches, and each asks a provider once.
            let room = settings.searches_max;
            let asks = providers
                .into_iter()
                .map(|p| (p.name().to_owned(), start(&mut stages, ask.clone(), room, p.at_once(), tally)))
                .collect();
            Pipeline { asks, map, enrich, waits, _stages: stages }
        })
    }

    /// For how long the oldest work that goes before a new one of this class has waited for a processor: a server that keeps
    /// up has next to none.
    pub(crate) fn delay(&self, class: Class) -> Duration {
        self.waits.iter().map(|lane| lane.oldest(class)).max().unwrap_or_default()
    }

    /// The queue before a provider.
    pub(crate) fn ask(&self, provider: &str) -> Option<&WorkLane<()>> {
        self.asks.get(provider)
    }
}

/// Starts a stage; the queue before it is returned.
fn start<S: Stage>(
    stages: &mut JoinSet<()>,
    stage: Arc<S>,
    queue: usize,
    at_once: usize,
    tally: &Arc<Tally>,
) -> WorkLane<S::Body> {
    let lane = Arc::new(Lane::new(queue));
    let (serving, places, tally) = (lane.clone(), Arc::new(Semaphore::new(at_once.max(1))), tally.clone());
    stages.spawn(supervise(S::NAME, move || serve(stage.clone(), serving.clone(), places.clone(), tally.clone())));
    lane
}

/// Takes work as it comes, as long as the server lives. The work itself runs in tasks of its own: whatever happens in one, this
/// goes on.
async fn serve<S: Stage>(stage: Arc<S>, lane: WorkLane<S::Body>, places: Arc<Semaphore>, tally: Arc<Tally>) {
    while let Ok(place) = places.clone().acquire_owned().await {
        let work = match lane.pop().await {
            Taken::Due(work) if !work.leg.search.is_over() => work,
            Taken::Due(work) | Taken::Expired(work) => {
                tally.late.fetch_add(1, Ordering::Relaxed);
                work.leg.end(Err(late()));
                continue;
            }
        };
        begin(stage.clone(), work, place, tally.clone());
    }
}

/// Does a piece of work in a task of its own, from which nothing comes out but what it hands on; `place` is given back when it
/// is done.
fn begin<S: Stage>(stage: Arc<S>, work: Work<S::Body>, place: impl Send + 'static, tally: Arc<Tally>) {
    let leg = work.leg.clone();
    tokio::spawn(async move {
        tokio::select! {
            done = Contained::new(stage.run(work)) => if let Err(panic) = done {
                tally.lost.fetch_add(1, Ordering::Relaxed);
                tracing::error!(stage = S::NAME, provider = leg.provider.name(), panic, "work was lost to a panic");
                leg.lose(format!("a fault of this server in the stage {} lost some of its results", S::NAME));
            },
            () = leg.search.ended() => {
                tally.late.fetch_add(1, Ordering::Relaxed);
            }
        }
        drop(place);
    });
}

fn late() -> Fault {
    Fault::Timeout("the search was over before all its results were through".to_owned())
}
