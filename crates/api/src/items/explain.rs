//! `explain=true`: what a question visits and prunes, instead of its answer.

use super::Asked;
use crate::contract::{Account, ExplainedItems};
use crate::problem::Result;
use crate::respond;
use crate::snapshot;
use crate::state::AppState;
use crate::stream::{self, Run};
use axum::response::Response;
use meridian_backend::{Collection, Head};
use meridian_query::Stats;
use std::sync::Arc;

/// Works the question out to the end of its page (or of the whole result) and answers what that cost.
pub(super) async fn answer(
    state: &AppState,
    run: Run,
    collection: Arc<dyn Collection>,
    asked: Asked,
) -> Result<Response> {
    let shared = state.clone();
    stream::run(run, move |control| {
        let read = collection.explain(asked.at(), &asked.items, control).map_err(snapshot::problem)?;
        let (head, told) = (read.head, read.value);
        let explained =
            ExplainedItems { account: account(&head, &told.stats), events_returned: told.returned, plan: told.plan };
        let mut response = respond::json("application/json", &explained)?;
        snapshot::set_headers(response.headers_mut(), &head, shared.now(), asked.consistency);
        Ok(response)
    })
    .await
}

/// The account of a question.
pub(crate) fn account(head: &Head, stats: &Stats) -> Account {
    Account {
        snapshot: head.seq.to_id(),
        rows: head.rows,
        parts: stats.parts,
        parts_pruned: stats.parts_pruned,
        nodes_visited: stats.nodes_visited,
        nodes_pruned: stats.nodes_pruned,
        nodes_whole: stats.nodes_whole,
        blocks_read: stats.blocks_read,
        edge_blocks: stats.edge_blocks,
        events_tested: stats.events_tested,
        events_matched: stats.events_matched,
        plan_ms: stats.plan_us as f64 / 1000.0,
        scan_ms: stats.scan_us as f64 / 1000.0,
    }
}
