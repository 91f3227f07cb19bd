//! Callers that another issuer names.

use super::jwt::{Issuers, Verified};
use super::{Caller, DEFAULT_TENANT, Identity, Registry, Unknown};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Registry {
    /// The same, that believes these issuers.
    pub fn trusting(self, issuers: Issuers) -> Registry {
        Registry { issuers, ..self }
    }

    /// The issuers whose JSON Web Tokens are believed.
    pub fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// The caller that a JSON Web Token stands for.
    pub(super) fn of_issuer(&self, text: &str, now: i64) -> Result<Caller, Unknown> {
        if self.issuers.is_empty() {
            return Err(Unknown::Credential);
        }
        self.issuers.caller(text, now, |verified, end| self.identity(verified, end))
    }

    /// The identity that a verified token gives until it expires or `end` is set.
    fn identity(&self, verified: Verified, end: Arc<AtomicBool>) -> Result<Caller, Unknown> {
        let Verified { name, tenant, grant, expires } = verified;
        let state = self.now.load();
        // An operator works in the default tenant unless a request names another one.
        let member = state.tenants.get(tenant.as_deref().unwrap_or(DEFAULT_TENANT)).ok_or(Unknown::Suspended)?;
        let identity = Identity::of(&member.ledger, grant, &name);
        let caller = Arc::new(Identity { expires, gives_until: expires, revoked: Some(end), ..identity });
        if state.serves(&caller) { Ok(caller) } else { Err(Unknown::Suspended) }
    }
}
