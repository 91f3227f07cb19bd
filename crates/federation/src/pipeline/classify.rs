//! Classify: sets the kind of a result and, for questions that need it, its language. If the question requires a
//! language, results in others are dropped here.

use super::{Stage, Work, WorkLane};
use crate::classification::classify;
use crate::search_result::SearchResult;
use std::sync::Arc;

/// The stage.
pub struct Classify {
    /// The next stage.
    pub next: WorkLane<Vec<SearchResult>>,
}

impl Stage for Classify {
    type Body = Vec<SearchResult>;
    const NAME: &'static str = "classify";

    async fn run(self: Arc<Self>, work: Work<Vec<SearchResult>>) {
        let Work { leg, mut body } = work;
        body.iter_mut().for_each(|found| classify(found, &leg.search.question));
        if let Some(sought) = &leg.search.question.language
            && !leg.provider.sure_of().iter().any(|part| part == "language")
        {
            let before = body.len();
            body.retain(|found| found.language.as_ref() == Some(sought));
            leg.unmatched(before - body.len());
        }
        if !body.is_empty() {
            self.next.push(Work { leg, body }).await;
        }
    }
}
