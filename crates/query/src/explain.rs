//! The cost of a query, in numbers and words.

use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::items::{Items, Order, items};
use meridian_store::Snapshot;

/// The cost of a query for events.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Explanation {
    /// How it was processed, one sentence each.
    pub plan: Vec<String>,
    /// Its cost.
    pub stats: Stats,
    /// Events returned on the requested page.
    pub returned: u64,
}

/// Runs a query for events to the end of its page, discards the events, and returns the cost.
pub fn explain(snapshot: &Snapshot, question: &Items, control: &Control) -> Result<Explanation, QueryError> {
    let mut answer = items(snapshot, question, control)?;
    let mut returned = 0;
    for hits in answer.by_ref() {
        returned += hits?.batch.rows() as u64;
    }
    let stats = answer.stats();
    let memory = snapshot.parts.iter().filter(|p| p.in_memory()).count();
    let mut plan = vec![format!(
        "reads {memory} memory trees and {} segments with {} rows, dead ones included",
        snapshot.parts.len() - memory,
        snapshot.rows()
    )];
    match question.predicate.ids() {
        Some(ids) => plan.push(format!("looks {} ids up in the sidecars of keys", ids.len())),
        None if question.predicate.is_all() => plan.push("walks the trees; every event matches".to_owned()),
        None => plan.push(format!(
            "walks the trees: of {} nodes visited, {} ruled out all their events and {} took them without a test",
            stats.nodes_visited, stats.nodes_pruned, stats.nodes_whole
        )),
    }
    plan.push(format!("reads {} blocks and tests {} events one by one", stats.blocks_read, stats.events_tested));
    plan.push(match (&question.order, answer.is_listed()) {
        (Order::Natural, false) => "gives events in natural order as they are found".to_owned(),
        (Order::Natural, true) => "sorts the few events found into natural order".to_owned(),
        (Order::Near { .. }, false) => "gives events nearest first from one heap of nodes and events".to_owned(),
        (Order::Near { .. }, true) => "measures all events found and sorts them by distance".to_owned(),
        (Order::Fields(keys), _) => format!("keeps the first events by {} sort keys in a bounded heap", keys.len()),
    });
    Ok(Explanation { plan, stats, returned })
}
