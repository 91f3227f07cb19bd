//! The interface through which a provider delivers its results.

use super::{Fault, Leg};
use crate::declaration::SourceDeclaration;
use crate::fetch::RawResponse;
use crate::question::Question;
use crate::search_result::SearchResult;
use meridian_backend::View;
use meridian_query::CancelFlag;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};

/// A provider's handle to the pipeline.
#[derive(Clone)]
pub struct Sink {
    intake: Arc<dyn Intake>,
    leg: Arc<Leg>,
}

/// The receiver of a provider's results: the pipeline, which providers need not know.
pub(crate) trait Intake: Send + Sync + 'static {
    /// Takes results, once there is space for them.
    fn results(&self, leg: Arc<Leg>, found: Vec<SearchResult>) -> Push<'_>;

    /// Takes a response to be mapped, once there is space for it.
    fn response(&self, leg: Arc<Leg>, response: Response) -> Push<'_>;
}

/// Completes when the intake has taken its input.
pub(crate) type Push<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A response as received.
pub struct Response {
    /// The declaration that maps it.
    pub declared: Arc<SourceDeclaration>,
    /// Its body.
    pub raw: RawResponse,
    /// Replies to the provider, which needs the location of the next page.
    pub reply: oneshot::Sender<Result<PageSummary, String>>,
}

/// The content of a response.
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
    pub(crate) fn new(intake: Arc<dyn Intake>, leg: Arc<Leg>) -> Sink {
        Sink { intake, leg }
    }

    /// Returns the collections that the client sees.
    pub fn view(&self) -> &View {
        &self.leg.search.view
    }

    /// Returns the question.
    pub fn question(&self) -> &Arc<Question> {
        &self.leg.search.question
    }

    /// Returns the time until the search ends.
    pub fn time_left(&self) -> Duration {
        self.leg.search.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns a flag raised when the search ends.
    pub fn over(&self) -> CancelFlag {
        self.leg.search.over()
    }

    /// Waits while the reader is far behind.
    pub async fn wait_for_space(&self) {
        self.leg.search.outbox.wait_for_space().await;
    }

    /// Returns how many results are wanted beyond those delivered; 0 means no more. Waits while that depends on their
    /// outcome: the limit counts results that match and are not duplicates.
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

    /// Returns the number of results delivered if none of them matched the question, else `None`. Waits until the
    /// outcome of all is known.
    pub async fn all_unmatched(&self) -> Option<usize> {
        self.leg.all_unmatched().await
    }

    /// Delivers results.
    pub async fn found(&self, found: Vec<SearchResult>) -> Result<(), Fault> {
        // Counted before they are queued: otherwise `wanted` could see neither pending nor accepted results and ask
        // for too many.
        self.leg.expect(found.len());
        self.intake.results(self.leg.clone(), found).await;
        Ok(())
    }

    /// Delivers a response to be mapped by its declaration, and waits for its summary.
    pub async fn response(&self, declared: Arc<SourceDeclaration>, raw: RawResponse) -> Result<PageSummary, Fault> {
        let (reply, read) = oneshot::channel();
        self.intake.response(self.leg.clone(), Response { declared, raw, reply }).await;
        match read.await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(why)) => Err(Fault::Error(why)),
            // The reply was dropped unsent, so the stage panicked or was cancelled.
            Err(_) => Err(Fault::Error("a fault of this server in the stage map lost its answer".to_owned())),
        }
    }
}
