//! The state that saved searches keep across a clean stop: unread packets, numbers, dead letters, and positions of
//! objects.
//!
//! It is written at the stop and removed at the start, so that it does not exist after a crash. Numbers then continue
//! from the microseconds since 1970, which exceed any number assigned before. A reader that asks for a lost packet is
//! thus notified. The events of lost packets are processed again (`checkpoint.rs`).

use super::dead_letters::WebhookState;
use super::fences::Objects;
use super::search::Origin;
use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::StoreError;
use meridian_model::Invalid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Name of its record.
pub(super) const RECORD: &str = "state";

/// The state of all saved searches.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CleanState {
    pub(super) searches: BTreeMap<String, SearchState>,
    /// Objects of the tenant `default`: states from before there were other tenants have only these.
    pub(super) objects: Objects,
    /// Objects of the other tenants, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) objects_of: BTreeMap<String, Objects>,
}

impl CleanState {
    /// Reads the record, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is unreadable.
    pub(super) fn read(bytes: Option<Vec<u8>>) -> Result<Option<CleanState>, StoreError> {
        let kept = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        kept.map_err(|e| Invalid::new(format!("it does not read: {e}")).into())
    }

    /// Returns its part for one tenant with these saved searches.
    pub(super) fn only(mut self, tenant: &str, ids: &BTreeSet<String>) -> CleanState {
        if tenant != DEFAULT_TENANT {
            self.objects.clear();
        }
        self.objects_of.retain(|name, _| name == tenant);
        self.searches.retain(|id, _| ids.contains(id));
        self
    }
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
