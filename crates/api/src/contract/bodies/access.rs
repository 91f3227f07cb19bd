//! New tokens, tenants and users, and changes of them.

use meridian_model::policy::access::Role;
use meridian_model::policy::quota::Quota;
use meridian_model::unrepeated::unrepeated_map;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A new token.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Operators only; the caller's own where it is absent.
    pub tenant: Option<String>,
    /// The rights of its callers.
    #[schemars(extend("enum" = roles()))]
    pub role: String,
    /// Names of collections, separated by commas; a name may end in `*`.
    pub collections: Option<String>,
    /// An RFC 3339 instant, or an ISO 8601 duration from now.
    pub expires: Option<String>,
}

/// A new user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Small letters, digits, `-`, `_`, `.`, `+`, `@`; unique in the tenant.
    #[schemars(length(max = 100))]
    pub name: String,
    /// Operators only; the caller's own where it is absent.
    pub tenant: Option<String>,
    /// The user's rights.
    #[schemars(extend("enum" = roles()))]
    pub role: String,
    /// Names of collections, separated by commas; a name may end in `*`.
    pub collections: Option<String>,
    /// At least 12 characters.
    #[schemars(length(min = 12, max = 1024), extend("format" = "password"))]
    pub password: String,
}

/// Changes of a user; absent settings stay.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// The user's rights.
    #[schemars(extend("enum" = roles()))]
    pub role: Option<String>,
    /// Names of collections, separated by commas; a name may end in `*`.
    pub collections: Option<String>,
    /// At least 12 characters.
    #[schemars(length(min = 12, max = 1024), extend("format" = "password"))]
    pub password: Option<String>,
    /// Whether the user may not sign in.
    pub disabled: Option<bool>,
}

/// A new tenant, or changes of one; absent settings stay.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTenant {
    /// Its name, which a new tenant needs and a change keeps.
    pub name: Option<String>,
    /// Share of the server beside other tenants; 1 by default.
    #[schemars(range(min = 1, max = 1000))]
    pub weight: Option<u32>,
    /// Whether its callers are refused.
    pub suspended: Option<bool>,
    /// Names of collections that callers without a token may read, separated by commas; a name may end in `*`. Null in
    /// a change takes the right away.
    #[serde(default, deserialize_with = "present")]
    #[schemars(extend("nullable" = true))]
    pub anonymous: Option<Option<String>>,
    /// Limits on the tenant's use; null in a change removes one. Unnamed ones stay.
    // Parsed one by one later, so that an error names its quota.
    #[serde(default, deserialize_with = "unrepeated_map")]
    #[schemars(schema_with = "quotas")]
    pub quotas: BTreeMap<String, Value>,
}

/// Distinguishes a null member from an absent one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn roles() -> [&'static str; 4] {
    Role::ALL.map(Role::name)
}

fn quotas(_: &mut SchemaGenerator) -> Schema {
    let limit = |quota: Quota| {
        let min = u64::from(quota.is_rate());
        (quota.name().to_owned(), json!({ "type": ["integer", "null"], "minimum": min, "nullable": true }))
    };
    let limits: Map<String, Value> = Quota::ALL.map(limit).into_iter().collect();
    let mut schema = Schema::default();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema.insert("properties".to_owned(), Value::Object(limits));
    schema
}
