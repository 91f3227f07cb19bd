//! The state that saved searches keep over a clean stop: unread packets, numbers, dead letters, and positions of
//! objects.
//!
//! It is written at the stop and removed at the start, so that it does not exist after a crash. Numbers then continue
//! from the microseconds since 1970, which exceed any number assigned before. A reader that asks for a lost packet is
//! thus notified. The events of lost packets are processed again (`checkpoint.rs`).

use super::dead_letters::WebhookState;
use super::search::Origin;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of its record.
pub(super) const RECORD: &str = "state";

/// The state of all saved searches.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CleanState {
    pub(super) searches: BTreeMap<String, SearchState>,
    /// Objects: hash, time of the newest event, and the numbers of the saved searches that it is in.
    pub(super) objects: Vec<(u64, i64, Vec<u64>)>,
}

/// The state of one saved search.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SearchState {
    /// Number of the first unread packet, or of the next one.
    pub(super) first: u64,
    pub(super) packets: Vec<String>,
    /// The origins of unread packets.
    #[serde(default)]
    pub(super) origins: Vec<Origin>,
    pub(super) results: u64,
    pub(super) result_packets: u64,
    #[serde(rename = "post")]
    pub(super) webhook_state: Option<WebhookState>,
}
