//! The states of searches and providers, as reported to clients.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The state of a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SearchStatus {
    /// Its id.
    pub search: String,
    /// `running`; after its end `complete`, `partial` or `absent`.
    pub state: &'static str,
    /// Milliseconds from its arrival to its deadline.
    pub deadline_ms: u64,
    /// Packets with results.
    pub result_packets: u64,
    /// Results.
    pub results: u64,
    /// Providers by name.
    pub providers: BTreeMap<String, LegStatus>,
    /// Longitude and latitude of the centre of the search, for example of a geocoded address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<[f64; 2]>,
    /// Metres around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
}

/// The state of a provider in a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LegStatus {
    /// `asked`, then its outcome.
    pub state: &'static str,
    /// The reason of the outcome.
    pub detail: String,
    /// Results.
    pub results: u64,
    /// Milliseconds from the arrival of the search to the provider's last result or its end.
    pub ms: u64,
    /// Whether it may have more results than requested.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A provider: the questions it takes, and its health.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProviderStatus {
    /// Its name in questions and packets.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its report: whether it is ready, what it takes, its circuit breaker, its budget.
    #[serde(flatten)]
    pub report: Map<String, Value>,
}
