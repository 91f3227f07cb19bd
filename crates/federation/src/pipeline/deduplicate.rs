//! Deduplicate: sends an item once, even if two providers return it or one returns it twice. `seen.rs` decides which
//! results are duplicates.

use super::{Stage, Work, WorkLane};
use crate::search_result::SearchResult;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The stage.
pub struct Deduplicate {
    /// The next stage.
    pub next: WorkLane<Vec<SearchResult>>,
}

impl Stage for Deduplicate {
    type Body = Vec<SearchResult>;
    const NAME: &'static str = "deduplicate";

    async fn run(self: Arc<Self>, work: Work<Vec<SearchResult>>) {
        let Work { leg, mut body } = work;
        let (before, mut duplicates) = (body.len(), 0);
        {
            // The lock covers check and count, so that providers that finish together cannot both send an item.
            let mut seen = leg.search.seen.lock();
            // The limit counts sent results, which match and are not duplicates. A result over the limit is not marked
            // as seen, since another provider may still send it.
            let (room, mut new) = (leg.remaining(), 0);
            body.retain(|found| {
                if new == room {
                    return false;
                }
                let is_new = seen.is_new(leg.provider.name(), found);
                new += usize::from(is_new);
                duplicates += u64::from(!is_new);
                is_new
            });
            leg.accept(before, new);
        }
        leg.search.tally.duplicates.fetch_add(duplicates, Ordering::Relaxed);
        if !body.is_empty() {
            self.next.push(Work { leg, body }).await;
        }
    }
}
