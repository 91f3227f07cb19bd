//! The events that saved searches have missed, for the catch-up.

use meridian_backend::Collection;
use std::collections::HashMap;
use std::sync::Arc;

/// The events of a collection to process.
#[derive(Debug)]
pub(super) struct MissedEvents {
    pub(super) tenant: Arc<str>,
    pub(super) collection: Arc<dyn Collection>,
    /// Up to this position. Later events arrive through the queue.
    pub(super) upto: meridian_model::Positions,
    /// The position after which each saved search needs events, by number.
    pub(super) from: HashMap<u64, meridian_model::Positions>,
}
