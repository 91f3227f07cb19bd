//! Callers identified by another issuer.

use super::jwt::{Issuers, Verified};
use super::sessions::micros;
use super::{Caller, DEFAULT_TENANT, Fault, Identity, Registry, Session, SessionLimits, Unknown};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Registry {
    /// The same registry, trusting these issuers.
    pub fn trusting(self, issuers: Issuers) -> Registry {
        Registry { issuers, ..self }
    }

    /// The issuers whose JSON Web Tokens are trusted.
    pub fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// The caller that a JSON Web Token identifies.
    pub(super) fn of_issuer(&self, text: &str, now: i64) -> Result<Caller, Unknown> {
        if self.issuers.is_empty() {
            return Err(Unknown::Credential);
        }
        self.issuers.caller(text, now, |verified, end| self.identity(verified, end).map(Arc::new))
    }

    /// Begins a session of the user that an ID token of this issuer names; returns its text, which is not kept. It has no
    /// record: rules may change with a restart, after which the issuer is asked again.
    pub fn begin_session_at(
        &self,
        issuer: &str,
        id_token: &str,
        nonce: &str,
        limits: &SessionLimits,
        now: i64,
    ) -> Result<Result<(Arc<Session>, String), Unknown>, Fault> {
        let named = self.issuers.with_sign_in().find(|(at, _)| at.settings().name == issuer);
        let verified = match named {
            Some((issuer, sign_in)) => {
                let longest = sign_in.session.min(limits.lifetime);
                let verified = Issuers::id_token((issuer, sign_in), id_token, nonce, now);
                verified.map(|verified| Verified { expires: now.saturating_add(micros(longest)), ..verified })
            }
            None => Err(Unknown::Jwt("nobody signs in at this issuer")),
        };
        let verified = match verified {
            Ok(verified) => verified,
            Err(why) => return Ok(Err(why)),
        };
        // Held from the check of the tenant until the session is entered, so that a suspension finds it.
        let mut seen = self.changing.lock();
        match self.identity(verified, Arc::default()) {
            Ok(identity) => self.enter_session(&mut seen, identity, now).map(Ok),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The identity that a verified token gives until it expires or `end` is set.
    fn identity(&self, verified: Verified, end: Arc<AtomicBool>) -> Result<Identity, Unknown> {
        let Verified { name, tenant, grant, expires } = verified;
        let state = self.now.load();
        // An operator works in the default tenant unless a request names another one.
        let member = state.tenants.get(tenant.as_deref().unwrap_or(DEFAULT_TENANT)).ok_or(Unknown::NoTenant)?;
        let identity = Identity::of(&member.ledger, grant, &name);
        let identity = Identity { expires, gives_until: expires, revoked: Some(end), ..identity };
        if state.serves(&identity) { Ok(identity) } else { Err(Unknown::Suspended) }
    }
}
