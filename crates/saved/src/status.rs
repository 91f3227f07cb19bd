//! The states of saved searches, as reported to clients.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The state of a saved search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SavedSearchStatus {
    /// Its id.
    pub id: String,
    /// When it was created.
    #[schemars(extend("format" = "date-time"))]
    pub created: String,
    /// Results sent.
    pub results: u64,
    /// Number of the oldest packet kept.
    pub first_packet: u64,
    /// Number of the next packet.
    pub next_packet: u64,
    /// Packets evicted before any reader took them.
    pub lost_packets: u64,
    /// Events that were not matched: too many arrived at once, or while no server ran.
    pub dropped_events: u64,
    /// The state of its webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookReport>,
    /// The state of its polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polls: Option<PollReport>,
    /// Its question and settings.
    #[serde(flatten)]
    pub definition: Map<String, Value>,
}

/// The state of a webhook.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WebhookReport {
    /// The URL that packets are sent to.
    pub url: String,
    /// Number of the packet to send next.
    pub next_packet: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets evicted before they were sent.
    pub lost: u64,
    /// Packets given up.
    pub dead: u64,
    /// Why the last call failed, if it did.
    pub failing: Option<String>,
    /// The last packets given up; only in the response for one saved search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<Vec<DeadLetterReport>>,
}

/// A packet given up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeadLetterReport {
    /// Its number.
    pub seq: u64,
    /// When it was given up.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// Calls made for it.
    pub tries: u32,
    /// Why the last of them failed.
    pub why: String,
    /// The packet.
    pub packet: Value,
}

/// The state of polls.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PollReport {
    /// Polls done.
    pub count: u64,
    /// When the last one ended.
    pub last: Option<String>,
    /// The state of each provider.
    pub providers: BTreeMap<String, String>,
    /// Why the last poll could not start.
    pub failing: Option<String>,
}
