//! Keep: what was delivered is written into a collection, where the question says so.

use super::{Stage, Work};
use crate::found::Found;
use crate::keep::Keeper;
use std::sync::Arc;

/// The stage. Its work holds the provider's part of the search, which is complete only when its results are kept.
pub struct Keep {
    /// Who writes; without one, no question asks for it.
    pub keeper: Option<Arc<dyn Keeper>>,
}

impl Stage for Keep {
    type Body = Vec<Found>;
    const NAME: &'static str = "keep";

    async fn run(self: Arc<Self>, work: Work<Vec<Found>>) {
        let Work { leg, body } = work;
        let (Some(keeper), Some(keep)) = (self.keeper.clone(), leg.search.question.keep.clone()) else { return };
        let (search, provider, results) = (leg.search.id.clone(), leg.provider.name().to_owned(), body.len());
        let written = tokio::task::spawn_blocking(move || keeper.keep(&keep, &search, &provider, &body)).await;
        match written {
            Ok(Ok(())) => leg.search.kept(results),
            Ok(Err(why)) => leg.search.not_kept(leg.provider.name(), why),
            Err(e) => leg.search.not_kept(leg.provider.name(), format!("a fault of this server lost results: {e}")),
        }
    }
}
