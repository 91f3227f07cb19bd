//! Storing results: they are written into a collection as they are delivered, and kept for as long as the question
//! requests.
//!
//! This crate creates no collection. The owner of [`crate::Searches`] passes a [`ResultStore`].

use crate::keep_options::KeepOptions;
use crate::refusal::Refusal;
use crate::search_result::SearchResult;
use meridian_backend::View;
use meridian_model::policy::access::Action;

impl KeepOptions {
    /// Refuses a client that may not write to the collection.
    pub fn allowed(&self, view: &View) -> Result<(), Refusal> {
        match view.may(Action::Write, &self.collection) {
            true => Ok(()),
            false => {
                Err(Refusal::Forbidden(format!("keep: no right to write to the collection {:?}", self.collection)))
            }
        }
    }
}

/// Writes results into collections. Its calls block.
pub trait ResultStore: Send + Sync + 'static {
    /// Checks that the client may store results there. Called before the search begins, so that errors are reported at
    /// once.
    ///
    /// # Errors
    ///
    /// [`Refusal::Absent`] if the collection does not exist. Creating it is an administrative act of the client,
    /// carried out by its server.
    fn prepare(&self, view: &View, keep: &KeepOptions) -> Result<(), Refusal>;

    /// Writes results of a provider. The error is a sentence that names what was not written and why.
    fn write(
        &self,
        view: &View,
        keep: &KeepOptions,
        search: &str,
        provider: &str,
        found: &[SearchResult],
    ) -> Result<(), String>;
}
