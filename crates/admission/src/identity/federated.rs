//! Callers identified by an external issuer.

use super::jwt::{Issuers, Verified};
use super::registry::State;
use super::session::{Federated, Record, micros};
use super::sessions::new_secret;
use super::{Caller, DEFAULT_TENANT, Fault, Identity, Registry, Session, SessionLimits, Unknown, secret};
use meridian_model::policy::access::Grant;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Registry {
    /// Returns the issuers whose JSON Web Tokens are trusted.
    pub fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// Returns the caller that a JSON Web Token from this address identifies.
    pub(super) fn of_issuer(&self, text: &str, from: Option<IpAddr>, now: i64) -> Result<Caller, Unknown> {
        if self.issuers.is_empty() {
            return Err(Unknown::Credential);
        }
        self.issuers.caller(text, from, now, |verified, end| self.identity(verified, end).map(Arc::new))
    }

    /// Starts a session for the user named by an ID token of this issuer. Returns the session's text, which is not
    /// stored. The record holds the rights that the rules grant now. If the rules change later, the session no longer
    /// counts and the issuer is asked again.
    pub fn begin_session_at(
        &self,
        issuer: &str,
        id_token: &str,
        nonce: &str,
        limits: &SessionLimits,
        now: i64,
    ) -> Result<Result<(Arc<Session>, String), Unknown>, Fault> {
        let named = self.issuers.with_sign_in().find(|(at, _)| at.settings().name == issuer);
        let Some((at, sign_in)) = named else { return Ok(Err(Unknown::Jwt("nobody signs in at this issuer"))) };
        let Verified { name, tenant, grant, .. } = match Issuers::id_token((at, sign_in), id_token, nonce, now) {
            Ok(verified) => verified,
            Err(why) => return Ok(Err(why)),
        };
        let expires = now.saturating_add(micros(sign_in.session.min(limits.lifetime)));
        let federated =
            Federated { issuer: issuer.to_owned(), tenant, role: grant.role, collections: grant.collections };
        self.change(|seen| {
            let state = self.now.load_full();
            let secret::NewSecret { id, text, digest } = new_secret()?;
            let (user, stamp) = (name.clone(), at.stamp().to_owned());
            let federated = Some(federated.clone());
            let begun = Record { id, user, stamp, created: now, seen: now, expires, digest, federated };
            match state.session_at(begun) {
                Ok(session) => self.enter(seen, &state, session).map(|session| Ok((session, text))),
                Err(why) => Ok(Err(why)),
            }
        })
    }

    /// Returns the identity granted by a verified token, valid until it expires or `end` is set.
    fn identity(&self, verified: Verified, end: Arc<AtomicBool>) -> Result<Identity, Unknown> {
        self.now.load().identity(verified, end)
    }
}

impl State {
    /// Restores the session of an issuer's user from its record.
    ///
    /// # Errors
    /// The tenant is gone or suspended, or the record is not one of such a session.
    pub(super) fn session_at(&self, record: Record) -> Result<Session, Unknown> {
        let Some(Federated { tenant, role, collections, .. }) = record.federated.clone() else {
            return Err(Unknown::Credential);
        };
        let (name, grant, expires) = (record.user.clone(), Grant { role, collections }, record.expires);
        let identity = self.identity(Verified { name, tenant, grant, expires }, Arc::default())?;
        Session::new(record, None, Identity { in_session: true, ..identity }).ok_or(Unknown::Credential)
    }

    fn identity(&self, verified: Verified, end: Arc<AtomicBool>) -> Result<Identity, Unknown> {
        let Verified { name, tenant, grant, expires } = verified;
        // An operator works in the default tenant unless a request names another one.
        let member = self.tenants.get(tenant.as_deref().unwrap_or(DEFAULT_TENANT)).ok_or(Unknown::NoTenant)?;
        let identity = Identity::of(&member.ledger, grant, &name);
        let identity = Identity { expires, gives_until: expires, revoked: Some(end), ..identity };
        if self.serves(&identity) { Ok(identity) } else { Err(Unknown::Suspended) }
    }
}
