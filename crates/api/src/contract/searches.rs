//! Searches, saved searches and providers.

use super::Link;
use meridian_federation::{ProviderStatus, SearchStatus};
use meridian_saved::SavedSearchStatus;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A search and its status.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchAnswer {
    /// The status.
    #[serde(flatten)]
    pub status: SearchStatus,
    /// The URL of its packets.
    pub packets: String,
    /// Whether the same caller's search was already running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<bool>,
}

/// A saved search and its status.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SavedSearchAnswer {
    /// The status.
    #[serde(flatten)]
    pub status: SavedSearchStatus,
    /// The URL of its packets.
    pub packets: String,
}

/// A page of saved searches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SavedSearchList {
    /// Saved searches of this page.
    #[serde(rename = "numberReturned")]
    pub number_returned: u64,
    /// Each of them.
    pub saved_searches: Vec<SavedSearchAnswer>,
    /// The next page.
    pub links: Vec<Link>,
    /// Records that were damaged: their names, and what is wrong or was done.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub damaged: BTreeMap<String, String>,
}

/// The providers, including Meridian's own collections.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProviderList {
    /// Each of them.
    pub providers: Vec<ProviderStatus>,
}
