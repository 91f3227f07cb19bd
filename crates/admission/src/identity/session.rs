//! A session, as a record and in memory.

use super::fault::Fault;
use super::secret::{self, Digest};
use super::{Caller, Identity, Login, token};
use meridian_model::policy::access::{Pattern, Role};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How long sessions last.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Max time without a request.
    pub idle: Duration,
    /// Max total duration.
    pub lifetime: Duration,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits { idle: Duration::from_secs(12 * 3600), lifetime: Duration::from_secs(7 * 86_400) }
    }
}

/// A session, as stored in its record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub id: String,
    /// The id of its user; the name of an issuer's user, `jwt:ISSUER:SUBJECT`.
    pub user: String,
    /// The stamp of its user at the start, or that of the issuer's rules.
    pub stamp: String,
    /// Start, last recorded use and latest end, in microseconds since 1970.
    pub created: i64,
    pub seen: i64,
    pub expires: i64,
    /// SHA-256 of its secret, in hexadecimal.
    pub digest: String,
    /// The rights of an issuer's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub federated: Option<Federated>,
}

impl Record {
    pub fn written(&self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(self).map_err(|e| Fault::Vault(e.to_string()))
    }
}

/// The rights of an issuer's user in a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Federated {
    /// The issuer, by its name in the settings.
    pub issuer: String,
    /// The tenant; `None` for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(with = "token::text")]
    pub role: Role,
    #[serde(with = "token::text")]
    pub collections: Pattern,
}

/// A session in memory.
#[derive(Debug)]
pub struct Session {
    pub(super) record: Record,
    /// The user's login; `None` for a user of an issuer.
    login: Option<Login>,
    pub(super) digest: Digest,
    pub(super) caller: Caller,
    /// Time of the last use, in microseconds since 1970.
    pub(super) seen: AtomicI64,
    /// Time of the last use as recorded.
    pub(super) recorded: AtomicI64,
}

impl Session {
    /// Creates a session from its record; `None` if the record holds no valid digest.
    pub(super) fn new(record: Record, login: Option<Login>, caller: Identity) -> Option<Session> {
        let digest = secret::digest(&record.digest)?;
        let (seen, recorded) = (record.seen.into(), record.seen.into());
        Some(Session { login, digest, caller: Arc::new(caller), seen, recorded, record })
    }

    /// Returns the user's identity.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the user's login; `None` for a user of an issuer.
    pub fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Returns the user's name: the login, or `jwt:ISSUER:SUBJECT`.
    pub fn user(&self) -> &str {
        self.caller.user().unwrap_or_default()
    }

    /// Returns its latest possible end, in microseconds since 1970.
    pub fn expires(&self) -> i64 {
        self.record.expires
    }

    /// Returns its id, which names its record.
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
