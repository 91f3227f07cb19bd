//! Record fields written by a newer version of the program.
//!
//! They are preserved when this program changes a record. Their meaning is unknown here: in a token or a user, a field
//! may be a restriction. Such a record therefore admits no caller until all processes can read it
//! (`model::policy::level`).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Fields that this program does not know, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnknownFields(BTreeMap<String, Value>);

impl UnknownFields {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
