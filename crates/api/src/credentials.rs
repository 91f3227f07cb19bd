//! Where tokens and tenants are kept: in records beside the collections.

use meridian_admission::identity::Vault;
use meridian_backend::Records;
use std::sync::Arc;

/// The kind of the records.
pub const RECORDS: &str = "access";

/// The vault of a server.
pub struct InRecords(pub Arc<dyn Records>);

impl Vault for InRecords {
    fn all(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let names = self.0.names().map_err(|e| e.to_string())?;
        let read = names.into_iter().filter_map(|name| {
            let content = self.0.get(&name).transpose()?;
            Some(content.map(|content| (name, content)).map_err(|e| e.to_string()))
        });
        read.collect()
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), String> {
        // Twice: a damaged record would otherwise keep the server from starting.
        self.0.put_twice(name, content).map_err(|e| e.to_string())
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        self.0.remove(name).map_err(|e| e.to_string())
    }
}
