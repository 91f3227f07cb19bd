//! Keep: stores delivered results in a collection, if the question requests it.

use super::{Stage, Work};
use crate::result_store::ResultStore;
use crate::search_result::SearchResult;
use std::sync::Arc;

/// The stage. Its work holds the provider's leg, so that the leg is complete only once its results are stored.
pub struct KeepStage {
    /// The store. Without one, no question with `keep` is admitted.
    pub result_store: Option<Arc<dyn ResultStore>>,
}

impl Stage for KeepStage {
    type Body = Vec<SearchResult>;
    const NAME: &'static str = "keep";

    async fn run(self: Arc<Self>, work: Work<Vec<SearchResult>>) {
        let Work { leg, body } = work;
        let (Some(result_store), Some(keep)) = (self.result_store.clone(), leg.search.question.keep.clone()) else {
            return;
        };
        let view = leg.search.view.clone();
        let (search, provider, results) = (leg.search.id.clone(), leg.provider.name().to_owned(), body.len());
        let written =
            tokio::task::spawn_blocking(move || result_store.write(&view, &keep, &search, &provider, &body)).await;
        match written {
            Ok(Ok(())) => leg.search.kept(results),
            Ok(Err(why)) => leg.search.not_kept(leg.provider.name(), why),
            Err(e) => leg.search.not_kept(leg.provider.name(), format!("a fault of this server lost results: {e}")),
        }
    }
}
