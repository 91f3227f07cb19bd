//! What saved searches keep over a clean stop: packets that wait, numbers, dead letters, who is where.
//!
//! It is written when the server stops and taken away when it starts, so that after a crash it is not there: then numbers go on
//! from the microseconds since 1970, which are greater than any number given before, so that a reader who asks for what is lost
//! hears so; what packets told of is looked at again (`checkpoint.rs`).

use super::dead_letters::WebhookState;
use super::search::Origin;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of its record.
pub(super) const RECORD: &str = "state";

/// All saved searches.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CleanState {
    pub(super) searches: BTreeMap<String, SearchState>,
    /// Objects, the time of the newest event of each, and the numbers of the saved searches that it is in.
    pub(super) objects: Vec<(u64, i64, Vec<u64>)>,
}

/// One of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SearchState {
    /// Number of the first packet that waits, or of the next to come.
    pub(super) first: u64,
    pub(super) packets: Vec<String>,
    /// What those of them tell of that nobody has taken.
    #[serde(default)]
    pub(super) origins: Vec<Origin>,
    pub(super) results: u64,
    pub(super) result_packets: u64,
    #[serde(rename = "post")]
    pub(super) webhook_state: Option<WebhookState>,
}
