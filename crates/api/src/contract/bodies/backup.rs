//! The scope of a backup.

use meridian_model::unrepeated::unrepeated_map;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is to be backed up; everything if the body is empty.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// Files in the folder, with their checksums (CRC32C).
    #[serde(default, deserialize_with = "unrepeated_map")]
    #[schemars(extend("additionalProperties" = { "type": "integer", "minimum": 0, "maximum": u32::MAX }))]
    pub have: BTreeMap<String, u32>,
    /// The only tenant that is saved; without it all are.
    pub tenant: Option<String>,
    /// 32 bytes in base64 or hexadecimal, which seal secrets; without it they are left out.
    pub key: Option<String>,
}
