//! The saved searches of a tenant by what they match.

use super::index::{Index, WordFrequencies};
use super::search::SavedSearch;
use std::collections::HashMap;
use std::sync::Arc;

/// The saved searches of a tenant by what they match.
#[derive(Debug)]
pub(super) struct MatchIndex {
    pub(super) index: Index<Arc<SavedSearch>>,
    /// Saved searches that report moving objects, by number.
    pub(super) fences: HashMap<u64, Arc<SavedSearch>>,
}

impl MatchIndex {
    pub(super) fn new(frequencies: Arc<WordFrequencies>) -> MatchIndex {
        MatchIndex { index: Index::new(frequencies), fences: HashMap::new() }
    }
}
