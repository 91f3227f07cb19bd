//! Tenants.

use meridian_model::policy::access::Pattern;
use meridian_model::policy::quota::Quotas;
use serde::{Deserialize, Serialize};

/// The tenant of everything that names none, and of data folders from before there were tenants.
pub const DEFAULT_TENANT: &str = "default";

/// A tenant, as its record has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// When it was created, in microseconds since 1970; zero where the record does not say, as for the default one. A later tenant of
    /// the same name is another.
    #[serde(default)]
    pub created: i64,
    /// Its share of the server beside others, 1 where nothing else is said.
    #[serde(default = "one")]
    pub weight: u32,
    /// Whether its callers are refused. Its data stays.
    #[serde(default)]
    pub suspended: bool,
    /// The collections that callers without a credential may read, as a pattern; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::token::optional_text")]
    pub anonymous: Option<Pattern>,
    /// Limits on what it uses.
    #[serde(default, skip_serializing_if = "Quotas::is_empty")]
    pub quotas: Quotas,
}

fn one() -> u32 {
    1
}

impl Tenant {
    /// A tenant with nothing set.
    pub fn new(name: &str) -> Tenant {
        let (name, quotas) = (name.to_owned(), Quotas::default());
        Tenant { name, created: 0, weight: 1, suspended: false, anonymous: None, quotas }
    }
}
