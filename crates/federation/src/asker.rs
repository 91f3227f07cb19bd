//! The asking client of a search.

use meridian_backend::View;

/// The client that starts a search.
#[derive(Debug, Clone)]
pub struct Asker {
    /// Identifies the client for joining, retries and the ownership of its searches.
    pub key: String,
    /// The collections that its searches read, and write with `keep`.
    pub view: View,
}
