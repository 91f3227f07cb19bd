//! The components from which saved searches are opened.

use super::census::Census;
use super::ledgers::Ledgers;
use super::records::RECORDS;
use super::settings::SavedSettings;
use super::slot::{Slot, SlotRecords};
use meridian_backend::{Backend, Clock, Random, Records};
use meridian_federation::Searches;
use meridian_model::Background;
use std::sync::Arc;

/// Components from which saved searches are opened, each time.
#[derive(Clone)]
pub struct Parts {
    /// Queries, and searches for polls.
    pub searches: Arc<Searches>,
    /// The collections, and the records.
    pub backend: Arc<dyn Backend>,
    /// Tenants.
    pub ledgers: Ledgers,
    /// Matches events on behalf of their tenants.
    pub background: Arc<dyn Background>,
    /// The operator's settings.
    pub settings: SavedSettings,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

/// The components, and which of the saved searches are opened from them.
#[derive(Clone)]
pub(super) struct SlotParts {
    pub(super) parts: Parts,
    /// The slot; `None` for all.
    pub(super) slot: Option<Slot>,
    /// Totals over all slots, if there are several.
    pub(super) census: Option<Arc<Census>>,
}

impl SlotParts {
    /// For all saved searches.
    pub(super) fn whole(parts: Parts) -> SlotParts {
        SlotParts { parts, slot: None, census: None }
    }

    /// Returns the same components, enabled or not.
    pub(super) fn enabled(&self, enabled: bool) -> SlotParts {
        let settings = SavedSettings { enabled, ..self.parts.settings.clone() };
        SlotParts { parts: Parts { settings, ..self.parts.clone() }, ..self.clone() }
    }

    /// Returns their records.
    pub(super) fn records(&self) -> Arc<dyn Records> {
        let records = self.parts.backend.records(RECORDS);
        match self.slot {
            Some(slot) => Arc::new(SlotRecords::new(slot, records)),
            None => records,
        }
    }
}
