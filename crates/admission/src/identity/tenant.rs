//! Tenants.

use super::newer::UnknownFields;
use meridian_model::policy::access::Pattern;
use meridian_model::policy::quota::Quotas;
use serde::{Deserialize, Serialize};

/// The tenant of requests that name none, and of data folders from before tenants existed.
pub const DEFAULT_TENANT: &str = "default";
/// The name of callers without a credential, who read what an operator opened to all.
pub const ANONYMOUS: &str = "anonymous";

/// A tenant, as stored in its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// When it was created, in microseconds since 1970; zero if the record has no time, as for the default tenant. It
    /// distinguishes a later tenant of the same name.
    #[serde(default)]
    pub created: i64,
    /// Its weight when the server is shared; 1 by default.
    #[serde(default = "one")]
    pub weight: u32,
    /// Whether its callers are refused. Its data stays.
    #[serde(default)]
    pub suspended: bool,
    /// The collections that callers without a credential may read, as a pattern; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::token::optional_text")]
    pub anonymous: Option<Pattern>,
    /// Limits on its use of the server.
    #[serde(default, skip_serializing_if = "Quotas::is_empty")]
    pub quotas: Quotas,
    /// Fields written by a newer program; changes made here preserve them.
    #[serde(flatten)]
    pub newer: UnknownFields,
}

fn one() -> u32 {
    1
}

impl Tenant {
    /// Creates a tenant with default settings.
    pub fn new(name: &str) -> Tenant {
        let (name, quotas) = (name.to_owned(), Quotas::default());
        Tenant {
            name,
            created: 0,
            weight: 1,
            suspended: false,
            anonymous: None,
            quotas,
            newer: UnknownFields::default(),
        }
    }
}
