//! Small records of the owner.

use super::link::Link;
use crate::wire::call::{Do, RecordsAsk};
use crate::wire::fault::Fault;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use meridian_backend::{Records, StoreError};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The records of one kind. Each call asks the owner; all may be repeated, as a record is replaced as a whole.
#[derive(Debug)]
pub(super) struct RemoteRecords {
    pub(super) link: Arc<Link>,
    pub(super) kind: &'static str,
}

impl RemoteRecords {
    fn value<T: DeserializeOwned>(&self, ask: RecordsAsk) -> Result<T, StoreError> {
        let ask = Do::Records { kind: self.kind.to_owned(), ask };
        self.link.value(ask, &self.link.patience()).map_err(Fault::into_store)
    }

    fn write(&self, name: &str, content: &[u8], twice: bool) -> Result<(), StoreError> {
        self.value(RecordsAsk::Put { name: name.to_owned(), content: STANDARD.encode(content), twice })
    }
}

impl Records for RemoteRecords {
    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.value(RecordsAsk::Names)
    }

    fn copied(&self) -> Result<Vec<String>, StoreError> {
        self.value(RecordsAsk::Copied)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let content: Option<String> = self.value(RecordsAsk::Get { name: name.to_owned() })?;
        let decoded = content.map(|text| STANDARD.decode(text)).transpose();
        decoded.map_err(|e| Fault::internal(format!("a record cannot be read: {e}")).into_store())
    }

    fn mended(&self) -> Vec<(String, String)> {
        self.value(RecordsAsk::Mended).unwrap_or_default()
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.write(name, content, false)
    }

    fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.write(name, content, true)
    }

    fn copy(&self, name: &str) -> Result<(), StoreError> {
        self.value(RecordsAsk::Copy { name: name.to_owned() })
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.value(RecordsAsk::Remove { name: name.to_owned() })
    }
}
