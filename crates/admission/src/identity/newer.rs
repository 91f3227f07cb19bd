//! Fields of records that a newer program has written.
//!
//! They are kept where this program changes a record. What they mean is not known here: in a token or a user it may be a limit. So nobody gets in
//! by such a record, until all processes read it (`model::policy::level`).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Fields that this program does not know, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Newer(BTreeMap<String, Value>);

impl Newer {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
