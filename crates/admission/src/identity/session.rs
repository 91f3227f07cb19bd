//! A session, in its record and in memory.

use super::federated::Federated;
use super::registry::Fault;
use super::secret::{self, Digest};
use super::{Caller, Identity, Login};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How long sessions last.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Without a request.
    pub idle: Duration,
    /// In all.
    pub lifetime: Duration,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits { idle: Duration::from_secs(12 * 3600), lifetime: Duration::from_secs(7 * 86_400) }
    }
}

/// A session, as its record has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub id: String,
    /// The id of its user; the name of an issuer's user, `jwt:ISSUER:SUBJECT`.
    pub user: String,
    /// The stamp that its user had at the start; that of the issuer's rules.
    pub stamp: String,
    /// When it began, was last used (as recorded), and ends at the latest, in microseconds since 1970.
    pub created: i64,
    pub seen: i64,
    pub expires: i64,
    /// SHA-256 of its secret, in hexadecimal.
    pub digest: String,
    /// What an issuer's user may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub federated: Option<Federated>,
}

impl Record {
    pub fn written(&self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(self).map_err(|e| Fault::Vault(e.to_string()))
    }
}

/// A session in memory.
#[derive(Debug)]
pub struct Session {
    pub(super) record: Record,
    /// What its user signed in with; none for a user of an issuer.
    login: Option<Login>,
    pub(super) digest: Digest,
    pub(super) caller: Caller,
    /// When it was last used, in microseconds since 1970.
    pub(super) seen: AtomicI64,
    /// The same as recorded.
    pub(super) recorded: AtomicI64,
}

impl Session {
    /// A session as of its record; `None` where that has no digest of a secret.
    pub(super) fn new(record: Record, login: Option<Login>, caller: Identity) -> Option<Session> {
        let digest = secret::digest(&record.digest)?;
        let (seen, recorded) = (record.seen.into(), record.seen.into());
        Some(Session { login, digest, caller: Arc::new(caller), seen, recorded, record })
    }

    /// The user's identity.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What its user signed in with; none for a user of an issuer.
    pub fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Names its user: what the user signed in with, or `jwt:ISSUER:SUBJECT`.
    pub fn user(&self) -> &str {
        self.caller.user().unwrap_or_default()
    }

    /// When it ends at the latest, in microseconds since 1970.
    pub fn expires(&self) -> i64 {
        self.record.expires
    }

    /// Its id, which names its record.
    pub(super) fn id(&self) -> &str {
        &self.record.id
    }

    pub(super) fn is_over(&self, limits: &SessionLimits, now: i64) -> bool {
        let idle = now.saturating_sub(self.seen.load(Ordering::Relaxed));
        self.caller.is_void(now) || idle >= micros(limits.idle)
    }
}

pub(super) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
