//! `explain=true`: reports the visited and pruned parts of a query instead of its result.

use super::ItemsRequest;
use crate::contract::{Account, ExplainedItems};
use crate::protocol::problem::Result;
use crate::request::blocking::{self, Run};
use crate::request::errors;
use crate::response::respond;
use crate::state::AppState;
use axum::response::Response;
use meridian_backend::{Collection, Head};
use meridian_query::Stats;
use std::sync::Arc;

/// Runs the query to the end of its page (or of the complete result) and responds with its cost.
pub(super) async fn answer(
    state: &AppState,
    run: Run,
    collection: Arc<dyn Collection>,
    request: ItemsRequest,
) -> Result<Response> {
    let shared = state.clone();
    blocking::run(run, move |control| {
        let read = collection.explain(request.at(), &request.items, control).map_err(errors::query_problem)?;
        let (head, explanation) = (read.head, read.value);
        let explained = ExplainedItems {
            account: account(&head, &explanation.stats),
            events_returned: explanation.returned,
            plan: explanation.plan,
        };
        let mut response = respond::json("application/json", &explained)?;
        respond::set_read_headers(response.headers_mut(), &head, shared.now(), request.consistency.name);
        Ok(response)
    })
    .await
}

/// Returns the cost of a query.
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
        bytes_read: stats.bytes_read,
        edge_blocks: stats.edge_blocks,
        events_tested: stats.events_tested,
        events_matched: stats.events_matched,
        plan_ms: stats.plan_us as f64 / 1000.0,
        scan_ms: stats.scan_us as f64 / 1000.0,
    }
}
