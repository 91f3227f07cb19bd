//! The asking client of a search, and what identifies the search for it.

use meridian_backend::View;
use sha2::{Digest, Sha256};

/// The client that starts a search.
#[derive(Debug, Clone)]
pub struct Asker {
    /// Identifies the client for joining, retries and the ownership of its searches.
    pub key: String,
    /// The collections that its searches read, and write with `keep`.
    pub view: View,
}

/// Client, rights and question: the identity of a search for joining and retries. A digest, as it outlives the question and
/// must not hold its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SearchKey([u8; 32]);

impl SearchKey {
    /// That of a question of a client, with the rights that the client has now: narrower or wider ones make another key.
    pub fn of(asker: &Asker, question: &str) -> SearchKey {
        let grant = &asker.view.caller().grant;
        let parts = [&*asker.key, grant.role.name(), &grant.collections.to_string(), question];
        let mut digest = Sha256::new();
        for part in parts {
            // Lengths first, so that parts cannot run together.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        SearchKey(digest.finalize().into())
    }
}
