//! Tenants.

use super::newer::Newer;
use meridian_model::policy::access::Pattern;
use meridian_model::policy::quota::Quotas;
use serde::{Deserialize, Serialize};

/// The tenant of requests that name none, and of data folders from before tenants existed.
pub const DEFAULT_TENANT: &str = "default";

/// A tenant, as its record has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// When it was created, in microseconds since 1970; zero if the record has no time, as for the default tenant. It distinguishes a
    /// later tenant of the same name.
    #[serde(default)]
    pub created: i64,
    /// Its weight in the sharing of the server; 1 by default.
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
    /// What a newer program has written: a change that is made here keeps it.
    #[serde(flatten)]
    pub newer: Newer,
}

fn one() -> u32 {
    1
}

impl Tenant {
    /// A tenant with nothing set.
    pub fn new(name: &str) -> Tenant {
        let (name, quotas) = (name.to_owned(), Quotas::default());
        Tenant { name, created: 0, weight: 1, suspended: false, anonymous: None, quotas, newer: Newer::default() }
    }
}
