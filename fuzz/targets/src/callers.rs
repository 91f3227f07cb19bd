//! Credentials that callers present, and the records kept of them.

use meridian_admission::identity::{Credential, Registry, Vault, VaultError};
use meridian_model::{RecordChange, RecordChanges};
use std::sync::Arc;

/// Read-only records in memory.
pub struct Kept(pub Vec<(String, Vec<u8>)>);

impl Vault for Kept {
    fn since(&self, version: u64) -> Result<Option<RecordChanges>, VaultError> {
        let changes = self.0.iter().map(|(name, content)| RecordChange::put(name, content.clone())).collect();
        Ok((version == 0).then_some(RecordChanges { version: 1, whole: true, changes }))
    }

    fn commit(&self, _: u64, _: &[RecordChange]) -> Result<Option<u64>, VaultError> {
        Ok(Some(1))
    }

    fn is_shared(&self) -> bool {
        false
    }
}

/// The record of the token `mrd_0123456789abcdef_` plus 64 zeros.
const RECORD: &str = r#"{"id":"0123456789abcdef","tenant":"default","role":"reader","collections":"*","created":0,
    "digest":"60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55"}"#;

/// The value of an `Authorization` header: `Bearer` or `Basic` with a token.
pub fn credential(bytes: &[u8]) {
    let registry = Registry::open(Arc::new(Kept(vec![("token-0123456789abcdef".to_owned(), RECORD.into())]))).unwrap();
    if let Credential::Token(text) = Credential::of_header(bytes)
        && let Ok(caller) = registry.caller(&text, 0)
    {
        assert!(text.starts_with("mrd_0123456789abcdef_000"), "{text} is {caller:?}");
    }
}

/// The record of a token, and that of a tenant.
pub fn token_record(bytes: &[u8]) {
    for name in ["token-a", "tenant-a"] {
        if let Ok(registry) = Registry::open(Arc::new(Kept(vec![(name.to_owned(), bytes.to_vec())]))) {
            registry.anonymous();
            registry.tenants();
            for token in registry.tokens(None) {
                token.grant();
            }
        }
    }
}
