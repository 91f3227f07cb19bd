//! Where a provider puts what it gets.

use super::map::Answer;
use super::{Pipeline, Work};
use crate::found::Found;
use crate::leg::Leg;
use crate::provider::{Declared, Fault, Raw};
use crate::question::Question;
use meridian_query::CancelFlag;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A provider's end of the pipeline.
#[derive(Clone)]
pub struct Sink {
    pipeline: Arc<Pipeline>,
    leg: Arc<Leg>,
}

/// What was in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Results in it.
    pub items: usize,
    /// Where the answer says that the next page is.
    pub next: Option<String>,
    /// The keys of `[answer.map]` under which none of the results has anything.
    pub missing: Vec<&'static str>,
}

impl Sink {
    pub(super) fn new(pipeline: Arc<Pipeline>, leg: Arc<Leg>) -> Sink {
        Sink { pipeline, leg }
    }

    /// What is asked.
    pub fn question(&self) -> &Arc<Question> {
        &self.leg.search.question
    }

    /// Time until the search is over.
    pub fn time_left(&self) -> Duration {
        self.leg.search.deadline.saturating_duration_since(Instant::now())
    }

    /// Raised when the search is over.
    pub fn over(&self) -> CancelFlag {
        self.leg.search.over()
    }

    /// Waits while whoever asked is far behind with reading.
    pub async fn room(&self) {
        self.leg.search.outbox.room().await;
    }

    /// How many results are wanted beside those that were handed on; waits while that depends on what becomes of these: the
    /// limit counts what answers the question and was not sent before. 0 where no more are wanted.
    pub async fn wanted(&self) -> usize {
        self.leg.wanted().await
    }

    /// Notes that it may have more results than it was asked for, though the limit is not reached; in a sentence.
    pub fn more(&self, why: String) {
        self.leg.more(why);
    }

    /// Notes a sentence that is told of it though it is complete.
    pub fn remark(&self, remark: String) {
        self.leg.remark(remark);
    }

    /// How many results were handed on, where all of them were left out because they do not answer the question; waits until
    /// that is known.
    pub async fn all_unmatched(&self) -> Option<usize> {
        self.leg.all_unmatched().await
    }

    /// Hands on results.
    pub async fn found(&self, found: Vec<Found>) -> Result<(), Fault> {
        self.leg.expect(found.len());
        let work = Work { leg: self.leg.clone(), body: found };
        self.pipeline.enrich.push(work).await;
        Ok(())
    }

    /// Hands on an answer to be read as its declaration says, and waits for what was in it.
    pub async fn answer(&self, declared: Arc<Declared>, raw: Raw) -> Result<Read, Fault> {
        let (reply, read) = oneshot::channel();
        let work = Work { leg: self.leg.clone(), body: Answer { declared, raw, reply } };
        self.pipeline.map.push(work).await;
        match read.await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(why)) => Err(Fault::Error(why)),
            Err(_) => Err(Fault::Error("a fault of this server in the stage map lost its answer".to_owned())),
        }
    }
}
