//! How a search starts: it is joined or admitted, prepared, and passed to the pipeline.

use super::Searches;
use super::registry::Admission;
use super::supervisor::SearchSupervisor;
use crate::asker::{SearchClient, SearchKey};
use crate::pipeline::plan::plan;
use crate::pipeline::{Pipeline, Work};
use crate::provider::Leg;
use crate::question::Question;
use crate::refusal::Refusal;
use crate::search::Search;
use crate::supervise::supervise;
use meridian_model::policy::queue::Class;
use meridian_observe::{self as observe, Kind, Span, WorkContext};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

/// A search that starts; true if it was joined. Boxed, so that stages and searches are compiled in this crate: a future
/// is compiled where it is polled (decision 082).
pub type Starting<'a> = Pin<Box<dyn Future<Output = Result<(Arc<Search>, bool), Refusal>> + Send + 'a>>;

impl Searches {
    /// Starts a search, or joins the one that the same client started with the same rights and question less than
    /// `join` ago; `true` if joined. Its packets can be read when this returns.
    pub fn start<'a>(
        self: &'a Arc<Searches>,
        asked: &'a Value,
        asker: &'a SearchClient,
        arrived: Instant,
    ) -> Starting<'a> {
        Box::pin(self.read_and_begin(asked, asker, arrived))
    }

    async fn read_and_begin(
        self: &Arc<Searches>,
        asked: &Value,
        asker: &SearchClient,
        arrived: Instant,
    ) -> Result<(Arc<Search>, bool), Refusal> {
        let key = SearchKey::of(asker, &asked.to_string());
        // Checked before the question is parsed, so that a refusal under load costs little.
        let delay = self.delay_of(Class::Quick, &asker.view);
        if let Some(search) = self.look(&mut self.registry.lock(), &key, &asker.view, delay)? {
            return Ok((search, true));
        }
        let question = Question::read(asked, &self.settings)?;
        self.admit_and_begin(question, key, asker, arrived).await
    }

    /// Like [`Searches::start`], with a parsed question.
    pub fn begin<'a>(
        self: &'a Arc<Searches>,
        question: Question,
        key: SearchKey,
        asker: &'a SearchClient,
        arrived: Instant,
    ) -> Starting<'a> {
        Box::pin(self.admit_and_begin(question, key, asker, arrived))
    }

    async fn admit_and_begin(
        self: &Arc<Searches>,
        question: Question,
        key: SearchKey,
        asker: &SearchClient,
        arrived: Instant,
    ) -> Result<(Arc<Search>, bool), Refusal> {
        let view = &asker.view;
        let plan = plan(&question, view, &self.providers)?;
        // Admitted before geocoding: refused requests must not cost a lookup in a collection.
        let place = match self.admit(&key, &question, view, arrived)? {
            Admission::Join(search) => return Ok((search, true)),
            // From here on, every early return drops the slot, and so does a client that disconnects.
            Admission::Running(place) => place,
        };
        let question = self.located(question, view, arrived).await?;
        self.ready_to_keep(&question, view).await?;
        let number = self.number.unwrap_or_else(|| self.random.next_u64());
        let id = format!("{number:016x}{:016x}", self.random.next_u64());
        let tenant = &view.caller().tenant.clone();
        let (current, span) = self.trace();
        let search = Search::new(
            id.clone(),
            question,
            (asker.key.clone(), view.clone()),
            arrived,
            &self.settings,
            self.budget.of(tenant),
            self.tally.clone(),
        );
        let search = Arc::new(search.traced(span, current));
        // Started with the first search: a server without searches runs no stage.
        let pipeline = self
            .pipeline
            .get_or_init(async || {
                let (providers, result_store) = (self.providers.values(), self.result_store.clone());
                Pipeline::new(&self.settings, providers, &self.places, result_store, &self.tally)
            })
            .await;
        for (provider, why) in plan.skipped {
            search.skip(&provider, why);
        }
        // All legs are registered before the first provider is queried. Otherwise the search could seem ended after a
        // fast one.
        let legs: Vec<_> = plan.asked.into_iter().map(|provider| search.begin(provider)).collect();
        {
            let mut registry = self.registry.lock();
            registry.all.insert(id.clone(), search.clone());
            // Joinable only now: a second client must not join a search that may still be refused.
            registry.joinable.insert(key, id);
        }
        self.tally.begun.fetch_add(1, Ordering::Relaxed);
        let supervisor = SearchSupervisor::new(self.clone(), search.clone(), place, key);
        tokio::spawn(supervise("search supervisor", move || supervisor.clone().watch()));
        // A task of its own: queues may be full, and the client gets its id at once.
        tokio::spawn(feed(pipeline.clone(), search.clone(), legs));
        Ok((search, false))
    }

    /// Returns the parent of a new search: the request, or a trace of its own if no request began it.
    fn trace(&self) -> (WorkContext, Span) {
        // Its stages cost processor time, which is not charged to the request, since the response does not wait for
        // them.
        let mut current = WorkContext { work: None, ..observe::current() };
        if current.request.is_some() {
            let span = current.span("search");
            return (current, span);
        }
        let (trace, span) = self.tracer.begin(|| None, "search", Kind::Internal);
        current.trace = trace;
        (current, span)
    }
}

/// Queues the legs of a search before their providers. A leg without space until the search ends is dropped, and so
/// reported as timed out.
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
