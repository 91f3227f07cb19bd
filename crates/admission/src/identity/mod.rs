//! Callers: tokens, users and their sessions, their tenants, and the identity of a credential.
//!
//! A [`Registry`] holds all of them in memory, so that lookups never wait for a change, and persists them in a
//! [`Vault`]. [`meridian_model::policy::access`] decides what an identity may do.

mod attempt;
mod credential;
mod fault;
mod federated;
mod follow;
pub mod jwt;
mod newer;
mod password;
mod records;
mod registry;
mod secret;
mod session;
mod sessions;
mod tenant;
mod tenants;
#[cfg(test)]
mod tests;
mod throttle;
mod token;
mod user;
mod users;

pub use attempt::SignInAttempt;
pub use credential::Credential;
pub use fault::{Fault, Unknown};
pub use password::{Password, PasswordDigest};
pub use records::backup_part;
pub use registry::{NewToken, Registry, Vault, VaultError};
pub use secret::equal;
pub use session::{Session, SessionLimits};
pub use sessions::derived;
pub use tenant::{ANONYMOUS, DEFAULT_TENANT, Tenant};
pub use throttle::{Attempt, Throttle, address_block};
pub use token::Token;
pub use user::{Login, User};
pub use users::{NewUser, UserChange};

use crate::ledger::{Ledger, Share};
use meridian_model::policy::access::{Grant, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The identity of a caller, shared by all work done for it.
pub type Caller = Arc<Identity>;

/// A caller's tenant and rights.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The tenant whose data the caller sees.
    pub tenant: Arc<str>,
    /// The tenant's ledger.
    pub ledger: Arc<Ledger>,
    /// What the caller may do in the tenant.
    pub grant: Grant,
    /// Names the caller in logs: `local`, `anonymous`, `socket`, a token's id, `user:` followed by the login, or
    /// `jwt:ISSUER:SUBJECT`.
    pub name: Arc<str>,
    /// The record of the user, since a later user of the same name has another one. `None` where names are never
    /// reused.
    record: Option<Arc<str>>,
    /// Microseconds since 1970 after which the identity is void; `i64::MAX` if it does not expire.
    expires: i64,
    /// Max expiry of rights that the caller grants to others. A token cannot grant anything that outlasts it. A session
    /// is short, but its user is not.
    gives_until: i64,
    /// Whether the identity belongs to a session.
    in_session: bool,
    /// Set when the credential is revoked. Shared by all identities of the credential; `None` without one.
    revoked: Option<Arc<AtomicBool>>,
}

impl Identity {
    /// Creates an identity without a credential or expiry, in a tenant without quotas.
    pub fn new(tenant: &str, grant: Grant, name: &str) -> Identity {
        Identity::of(&Arc::new(Ledger::new(tenant)), grant, name)
    }

    /// Creates an identity without a credential or expiry.
    pub fn of(ledger: &Arc<Ledger>, grant: Grant, name: &str) -> Identity {
        let (tenant, ledger) = (ledger.tenant().clone(), ledger.clone());
        let (expires, gives_until) = (i64::MAX, i64::MAX);
        let (name, record) = (name.into(), None);
        Identity { tenant, ledger, grant, name, record, expires, gives_until, in_session: false, revoked: None }
    }

    /// Returns the same identity in another tenant; operators belong to none.
    pub fn within(&self, ledger: &Arc<Ledger>) -> Identity {
        let Identity { expires, gives_until, in_session, .. } = *self;
        let (revoked, record) = (self.revoked.clone(), self.record.clone());
        let identity = Identity::of(ledger, self.grant.clone(), &self.name);
        Identity { expires, gives_until, in_session, revoked, record, ..identity }
    }

    /// Returns a key that distinguishes the caller from all others, including a later user of the same name.
    pub fn key(&self) -> String {
        match &self.record {
            Some(record) => format!("{} {record}", self.name),
            None => self.name.to_string(),
        }
    }

    /// Returns the user of a session: its login, or `jwt:ISSUER:SUBJECT`.
    pub fn user(&self) -> Option<&str> {
        self.in_session.then(|| self.name.strip_prefix(sessions::USER).unwrap_or(&self.name))
    }

    /// Returns whether the caller presented no credential and is not the owner of the folder.
    pub fn is_anonymous(&self) -> bool {
        self.revoked.is_none() && !self.is_operator()
    }

    /// Returns the caller's share of its tenant's places.
    pub fn share(&self) -> Share {
        if self.is_anonymous() { Share::Half } else { Share::Whole }
    }

    /// Returns whether the caller is an operator.
    pub fn is_operator(&self) -> bool {
        self.grant.role == Role::Operator
    }

    /// Returns the max expiry of rights that the caller grants to others, in microseconds since 1970; `None` without a
    /// limit.
    pub fn gives_until(&self) -> Option<i64> {
        Some(self.gives_until).filter(|end| *end < i64::MAX)
    }

    /// Returns whether the identity comes from a credential, which can be revoked.
    pub fn is_revocable(&self) -> bool {
        self.revoked.is_some()
    }

    /// Returns whether, since the credential was checked, it was revoked or expired, or the tenant was removed. Long
    /// streams and bodies check this repeatedly.
    pub fn is_void(&self, now: i64) -> bool {
        self.ledger.is_closed() || self.has_ended(now)
    }

    /// Returns whether the credential itself was revoked or has expired. Operators outlive a removed tenant.
    pub fn has_ended(&self, now: i64) -> bool {
        now >= self.expires || self.revoked.as_ref().is_some_and(|revoked| revoked.load(Ordering::Relaxed))
    }

    fn revoke(&self) {
        if let Some(revoked) = &self.revoked {
            revoked.store(true, Ordering::Relaxed);
        }
    }
}
