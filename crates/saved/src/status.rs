//! How saved searches stand, as clients are told.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a saved search stands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SavedSearchStatus {
    /// Its name.
    pub id: String,
    /// When it was made.
    #[schemars(extend("format" = "date-time"))]
    pub created: String,
    /// Results told.
    pub results: u64,
    /// Number of the first packet that is kept.
    pub first_packet: u64,
    /// Number of the packet to come.
    pub next_packet: u64,
    /// Packets that gave way before anybody had taken them.
    pub lost_packets: u64,
    /// Events that were not matched: too many came at once, or came while no server ran.
    pub dropped_events: u64,
    /// How sending to its webhook goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookReport>,
    /// How asking outside providers goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polls: Option<PollReport>,
    /// Its question and settings.
    #[serde(flatten)]
    pub definition: Map<String, Value>,
}

/// How sending to a webhook goes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WebhookReport {
    /// Where packets go.
    pub url: String,
    /// Number of the packet that is sent next.
    pub next_packet: u64,
    /// Packets taken.
    pub sent: u64,
    /// Packets that gave way before they were sent.
    pub lost: u64,
    /// Packets given up.
    pub dead: u64,
    /// Why the last call failed, if it did.
    pub failing: Option<String>,
    /// The last packets given up; only where one saved search is asked for.
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

/// How asking outside providers goes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PollReport {
    /// Polls done.
    pub count: u64,
    /// When the last one was done.
    pub last: Option<String>,
    /// How each provider stood.
    pub providers: BTreeMap<String, String>,
    /// Why the last poll could not begin.
    pub failing: Option<String>,
}
