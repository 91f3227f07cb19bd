//! The operator's rules: the rights granted by an issuer's tokens.

use super::IssuerSettings;
use meridian_model::policy::access::Grant;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Grants rights to tokens that carry a given claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The claim: its name, or a JSON Pointer (RFC 6901) to one within others; `None` for every token.
    pub claim: Option<String>,
    /// The required value of the claim, or of one element if the claim is a list.
    pub value: String,
    /// The tenant; `None` for operators.
    pub tenant: Option<String>,
    /// The rights.
    pub grant: Grant,
}

/// Returns a digest of everything that determines the rights of an issuer's users: the issuer's identity and its rules
/// in order.
pub(super) fn stamp(settings: &IssuerSettings) -> String {
    let rule = |rule: &Rule| {
        let Rule { claim, value, tenant, grant } = rule;
        json!([claim, value, tenant, grant.role.to_string(), grant.collections.to_string()])
    };
    let client = settings.sign_in.as_ref().map(|sign_in| &sign_in.client_id);
    let rules: Vec<Value> = settings.rules.iter().map(rule).collect();
    let text = json!([settings.name, settings.issuer, client, rules]).to_string();
    data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

impl Rule {
    /// Returns whether the rule applies to a token with these claims.
    pub(super) fn matches(&self, claims: &Map<String, Value>) -> bool {
        let Some(claim) = &self.claim else { return true };
        let found = match claim.strip_prefix('/').and_then(|rest| Some((rest, rest.split('/').next()?))) {
            None => claims.get(claim),
            Some((rest, first)) => {
                let within = claims.get(&first.replace("~1", "/").replace("~0", "~"));
                within.and_then(|value| value.pointer(&rest[first.len()..]))
            }
        };
        match found {
            // RFC 8693, 4.2: a space-separated list.
            Some(Value::String(scopes)) if claim == "scope" => scopes.split(' ').any(|scope| scope == self.value),
            Some(Value::Array(list)) => list.iter().any(|value| self.is(value)),
            Some(value) => self.is(value),
            None => false,
        }
    }

    fn is(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => *text == self.value,
            Value::Bool(_) | Value::Number(_) => {
                let text = value.to_string();
                text == self.value
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::policy::access::Role;
    use serde_json::json;

    #[test]
    fn a_rule_names_a_claim_and_a_value_of_it() {
        let claims = json!({
            "groups": ["gis", "all"], "org": "harbour", "level": 3, "scope": "openid meridian.read",
            "https://example.org/role": "writer", "realm_access": { "roles": ["admin"], "a/b": "c" }, "o": { "groups": "gis" }
        });
        let claims = claims.as_object().unwrap();
        let matches = |claim: &str, value: &str| {
            let grant = Grant::over_all(Role::Reader);
            Rule { claim: Some(claim.to_owned()), value: value.to_owned(), tenant: None, grant }.matches(claims)
        };
        for (claim, value) in [
            ("groups", "gis"),
            ("org", "harbour"),
            ("level", "3"),
            ("scope", "meridian.read"),
            ("https://example.org/role", "writer"),
            ("/realm_access/roles", "admin"),
            ("/realm_access/a~1b", "c"),
            ("/org", "harbour"),
        ] {
            assert!(matches(claim, value), "{claim} {value}");
        }
        for (claim, value) in [
            ("groups", "gi"),
            ("groups", "gis,all"),
            ("org", "Harbour"),
            ("org", ""),
            ("scope", "meridian"),
            ("scope", ""),
            ("realm_access", "admin"),
            ("/realm_access", "admin"),
            ("/realm_access/roles/1", "admin"),
            ("/", "admin"),
            ("o", "gis"),
            ("absent", ""),
        ] {
            assert!(!matches(claim, value), "{claim} {value}");
        }
    }
}
