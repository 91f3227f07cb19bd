//! The asking client of a search, and what identifies the search for it.

use meridian_backend::View;
use sha2::{Digest, Sha256};

/// The client that starts a search.
#[derive(Debug, Clone)]
pub struct SearchClient {
    /// Identifies the client for joining, retries and the ownership of its searches.
    pub key: String,
    /// The collections that its searches may read, and write with `keep`.
    pub view: View,
}

/// Identity of a search for joining and retries: a digest of client, rights and question. It outlives the question and
/// must not hold its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SearchKey([u8; 32]);

impl SearchKey {
    /// Returns the key of a client's question under the client's current rights. Narrower or wider rights make another
    /// key.
    pub fn of(asker: &SearchClient, question: &str) -> SearchKey {
        let grant = &asker.view.caller().grant;
        let parts = [&*asker.key, grant.role.name(), &grant.collections.to_string(), question];
        let mut digest = Sha256::new();
        for part in parts {
            // Lengths come first, so that parts cannot run together.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        SearchKey(digest.finalize().into())
    }
}
