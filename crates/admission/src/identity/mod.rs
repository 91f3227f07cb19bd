//! Who calls: tokens, the tenants they belong to, and the identity that a credential stands for.
//!
//! A [`Registry`] holds all tokens and tenants in memory, for lookups without a lock, and keeps them in a [`Vault`].
//! What an identity may do is decided by [`meridian_model::policy::access`].

mod credential;
mod registry;
mod tenant;
#[cfg(test)]
mod tests;
mod token;

pub use credential::Credential;
pub use registry::{Fault, NewToken, Registry, Unknown, Vault};
pub use tenant::{DEFAULT_TENANT, Tenant};
pub use token::Token;

use crate::ledger::Ledger;
use meridian_model::policy::access::{Grant, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The identity of a caller, shared by everything that works for it.
pub type Caller = Arc<Identity>;

/// A caller's tenant and rights.
#[derive(Debug)]
pub struct Identity {
    /// The tenant whose data the caller sees.
    pub tenant: Arc<str>,
    /// What the tenant uses.
    pub ledger: Arc<Ledger>,
    /// What the caller may do there.
    pub grant: Grant,
    /// Names the caller in logs and as the owner of searches: `local`, `anonymous`, `socket`, or a token's id.
    pub name: Arc<str>,
    /// Microseconds since 1970 after which the identity is void; `i64::MAX` where it does not expire.
    expires: i64,
    /// Set when the credential is revoked; shared by the identities of one credential, absent where there is none.
    revoked: Option<Arc<AtomicBool>>,
}

impl Identity {
    /// An identity without a credential, which does not end, in a tenant without quotas.
    pub fn new(tenant: &str, grant: Grant, name: &str) -> Identity {
        Identity::of(&Arc::new(Ledger::new(tenant)), grant, name)
    }

    /// An identity without a credential, which does not end.
    pub fn of(ledger: &Arc<Ledger>, grant: Grant, name: &str) -> Identity {
        let (tenant, ledger) = (ledger.tenant().clone(), ledger.clone());
        Identity { tenant, ledger, grant, name: name.into(), expires: i64::MAX, revoked: None }
    }

    /// The same identity in another tenant, for operators, who belong to none.
    pub fn within(&self, ledger: &Arc<Ledger>) -> Identity {
        let (expires, revoked) = (self.expires, self.revoked.clone());
        Identity { expires, revoked, ..Identity::of(ledger, self.grant.clone(), &self.name) }
    }

    /// Whether the caller is an operator.
    pub fn is_operator(&self) -> bool {
        self.grant.role == Role::Operator
    }

    /// Microseconds since 1970 after which it is void; `None` where it does not expire.
    pub fn expires(&self) -> Option<i64> {
        Some(self.expires).filter(|expires| *expires < i64::MAX)
    }

    /// Whether it stands for a credential, which can be revoked.
    pub fn is_revocable(&self) -> bool {
        self.revoked.is_some()
    }

    /// Whether the credential was revoked or has expired, or the tenant was removed, since it was checked: long streams and
    /// bodies ask again.
    pub fn is_void(&self, now: i64) -> bool {
        now >= self.expires
            || self.ledger.is_closed()
            || self.revoked.as_ref().is_some_and(|revoked| revoked.load(Ordering::Relaxed))
    }

    fn revoke(&self) {
        if let Some(revoked) = &self.revoked {
            revoked.store(true, Ordering::Relaxed);
        }
    }
}
