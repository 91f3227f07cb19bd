//! Filter: drops results that do not match the question, even if their source returned them.

use super::{Stage, Work, WorkLane};
use crate::matching::matches;
use crate::search_result::SearchResult;
use std::sync::Arc;

/// The stage.
pub struct Filter {
    /// The next stage.
    pub next: WorkLane<Vec<SearchResult>>,
}

impl Stage for Filter {
    type Body = Vec<SearchResult>;
    const NAME: &'static str = "filter";

    async fn run(self: Arc<Self>, work: Work<Vec<SearchResult>>) {
        let Work { leg, mut body } = work;
        let (question, before) = (leg.search.question.clone(), body.len());
        body.retain(|found| matches(found, &question, leg.provider.sure_of()));
        leg.unmatched(before - body.len());
        if !body.is_empty() {
            self.next.push(Work { leg, body }).await;
        }
    }
}
