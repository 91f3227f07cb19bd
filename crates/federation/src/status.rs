//! How searches and providers stand, as clients are told.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a search stands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SearchStatus {
    /// Its name.
    pub search: String,
    /// `running`; after its end `complete`, `partial` or `absent`.
    pub state: &'static str,
    /// Milliseconds from its arrival to its deadline.
    pub deadline_ms: u64,
    /// Packets with results.
    pub result_packets: u64,
    /// Results.
    pub results: u64,
    /// Providers by their names.
    pub providers: BTreeMap<String, LegStatus>,
    /// Longitude and latitude that are searched around, where an address was found, among others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<[f64; 2]>,
    /// Metres around them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
}

/// How a provider stands in a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LegStatus {
    /// `asked`, then how it ended.
    pub state: &'static str,
    /// Why it ended so.
    pub detail: String,
    /// Results.
    pub results: u64,
    /// Milliseconds from the arrival of the search to its last result or its end.
    pub ms: u64,
    /// Whether it may have more than it was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A provider: what it takes, and how it has been.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProviderStatus {
    /// Its name in questions and packets.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it says of itself: whether it is ready, what it takes, its breaker, its budget.
    #[serde(flatten)]
    pub report: Map<String, Value>,
}
