//! The records of saved searches: their names, and what is read from them without the rest.

use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::StoreError;
use serde_json::{Map, Value};

/// Name of the records in the data folder.
pub const RECORDS: &str = "saved";

/// Suffix of the record of results seen.
pub(super) const SEEN: &str = "-seen";

/// Name of the record of results seen.
pub(super) fn seen_of(id: &str) -> String {
    format!("{id}{SEEN}")
}

/// Reads a record by its name.
type Get<'a> = Box<dyn Fn(&str) -> Result<Option<Vec<u8>>, StoreError> + 'a>;

/// The records that an opening reads.
pub(super) struct StoredRecords<'a> {
    /// Their names, sorted.
    pub(super) names: Vec<String>,
    /// Returns a record; `None` if there is none with this name.
    pub(super) get: Get<'a>,
}

/// Removes the tenant from a record's members; records from before there were other tenants have none. `None` if it is
/// not a name.
pub(super) fn tenant_of(members: &mut Map<String, Value>) -> Option<String> {
    match members.shift_remove("tenant") {
        None => Some(DEFAULT_TENANT.to_owned()),
        Some(Value::String(tenant)) => Some(tenant),
        Some(_) => None,
    }
}

/// Returns true if a record with this name holds a saved search.
pub(super) fn is_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())
}
