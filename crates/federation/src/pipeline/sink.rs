//! The interface through which a provider delivers its results.

use super::map::Response;
use super::{Pipeline, Work};
use crate::leg::Leg;
use crate::provider::{Declared, Fault, Raw};
use crate::question::Question;
use crate::search_result::SearchResult;
use meridian_query::CancelFlag;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A provider's handle to the pipeline.
#[derive(Clone)]
pub struct Sink {
    pipeline: Arc<Pipeline>,
    leg: Arc<Leg>,
}

/// What a response contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSummary {
    /// Results in it, including unreadable ones.
    pub items: usize,
    /// The location of the next page, as the response gives it.
    pub next: Option<String>,
    /// Keys of `[answer.map]` for which no result has a value.
    pub missing: Vec<&'static str>,
}

impl Sink {
    pub(super) fn new(pipeline: Arc<Pipeline>, leg: Arc<Leg>) -> Sink {
        Sink { pipeline, leg }
    }

    /// The question.
    pub fn question(&self) -> &Arc<Question> {
        &self.leg.search.question
    }

    /// Time until the search ends.
    pub fn time_left(&self) -> Duration {
        self.leg.search.deadline.saturating_duration_since(Instant::now())
    }

    /// Raised when the search ends.
    pub fn over(&self) -> CancelFlag {
        self.leg.search.over()
    }

    /// Waits while the reader is far behind.
    pub async fn wait_for_space(&self) {
        self.leg.search.outbox.wait_for_space().await;
    }

    /// How many results are wanted beyond those delivered. Waits while that depends on their outcome: the limit counts
    /// results that match and are not duplicates. 0 means no more.
    pub async fn wanted(&self) -> usize {
        self.leg.wanted().await
    }

    /// Records that the provider may have more results, though the limit is not reached. `why` is a sentence.
    pub fn more(&self, why: String) {
        self.leg.more(why);
    }

    /// Records a remark that is reported even with a complete state.
    pub fn remark(&self, remark: String) {
        self.leg.remark(remark);
    }

    /// The number of results delivered if none of them matched the question, else `None`. Waits until all are decided.
    pub async fn all_unmatched(&self) -> Option<usize> {
        self.leg.all_unmatched().await
    }

    /// Delivers results.
    pub async fn found(&self, found: Vec<SearchResult>) -> Result<(), Fault> {
        self.leg.expect(found.len());
        let work = Work { leg: self.leg.clone(), body: found };
        self.pipeline.enrich.push(work).await;
        Ok(())
    }

    /// Delivers a response to be mapped by its declaration, and waits for its summary.
    pub async fn response(&self, declared: Arc<Declared>, raw: Raw) -> Result<PageSummary, Fault> {
        let (reply, read) = oneshot::channel();
        let work = Work { leg: self.leg.clone(), body: Response { declared, raw, reply } };
        self.pipeline.map.push(work).await;
        match read.await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(why)) => Err(Fault::Error(why)),
            Err(_) => Err(Fault::Error("a fault of this server in the stage map lost its answer".to_owned())),
        }
    }
}
