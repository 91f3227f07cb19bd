//! Sessions of users, from signing in until signing out.
//!
//! A session has a secret: the browser keeps it in a cookie, and this registry keeps its digest. A record lets it outlive a
//! restart. It ends when its user signs out, changes or is removed, and when its tenant is suspended. It also ends after some
//! time without a request, and at the latest after its lifetime. The time of the last request is in memory, and the record
//! follows in large steps. A session of an issuer's user has no record, and ends with the process.

use super::registry::{Fault, KINDS, Registry, State, Unknown, read, record};
use super::secret::{self, Digest, Parts};
use super::{Caller, Identity, Login, PasswordDigest};
use crate::ledger::Ledger;
use meridian_model::Invalid;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Prefix of the text of a session.
const PREFIX: &str = "mrs_";
/// Prefix of the names of identities.
pub(super) const USER: &str = "user:";
/// Max sessions of a server: all of them are in memory.
const SESSIONS_MAX: usize = 100_000;
/// Max sessions of a user; a further one ends the least recently used.
const SESSIONS_OF_USER_MAX: usize = 10;
/// The record of a session may be behind by this part (1/n) of the idle time.
const BEHIND: i64 = 8;

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
struct Record {
    id: String,
    /// The id of its user.
    user: String,
    /// The stamp that its user had at the start.
    stamp: String,
    /// When it began, was last used (as recorded), and ends at the latest, in microseconds since 1970.
    created: i64,
    seen: i64,
    expires: i64,
    /// SHA-256 of its secret, in hexadecimal.
    digest: String,
}

/// A session in memory.
#[derive(Debug)]
pub struct Session {
    record: Record,
    /// What its user signed in with; none for a user of an issuer.
    login: Option<Login>,
    digest: Digest,
    caller: Caller,
    /// When it was last used, in microseconds since 1970.
    seen: AtomicI64,
    /// The same as recorded; none if it has no record.
    recorded: Option<AtomicI64>,
}

impl Session {
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

    fn is_over(&self, limits: &SessionLimits, now: i64) -> bool {
        let idle = now.saturating_sub(self.seen.load(Ordering::Relaxed));
        self.caller.is_void(now) || idle >= micros(limits.idle)
    }
}

/// All sessions by id. Requests only read the map.
#[derive(Default)]
pub(super) struct Sessions(RwLock<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// Loads the sessions of these records that are still valid. Returns the names of the other records.
    pub fn load(&self, state: &State, records: Vec<(String, Vec<u8>)>) -> Vec<String> {
        let users: HashMap<&str, &Login> = state.users.iter().map(|(login, user)| (&*user.id, login)).collect();
        let mut stale = Vec::new();
        let mut sessions = self.0.write();
        for (name, content) in records {
            // A record that cannot be read costs its user a sign-in, and opens nothing.
            let session = read::<Record>(&name, &content).ok().and_then(|record| {
                let login = *users.get(&*record.user)?;
                state.session(login, record)
            });
            match session {
                Some(session) => drop(sessions.insert(session.record.id.clone(), Arc::new(session))),
                None => stale.push(name),
            }
        }
        stale
    }

    fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.0.read().get(id).cloned()
    }

    /// Ends sessions at once, and returns them. Their records are still there.
    fn take(&self, mut which: impl FnMut(&Session) -> bool) -> Vec<Arc<Session>> {
        let taken: Vec<_> =
            self.0.write().extract_if(|_, session| which(session)).map(|(_, session)| session).collect();
        taken.iter().for_each(|session| session.caller.revoke());
        taken
    }
}

impl State {
    /// A session of a user, unless the user has changed since, or its tenant is suspended.
    fn session(&self, login: &Login, record: Record) -> Option<Session> {
        let user = self.users.get(login).filter(|user| !user.disabled && user.stamp == record.stamp)?;
        let tenant = if user.tenant.is_empty() { super::DEFAULT_TENANT } else { &user.tenant };
        let ledger: &Arc<Ledger> = &self.tenants.get(tenant)?.ledger;
        let identity = Identity {
            expires: record.expires,
            revoked: Some(Arc::default()),
            in_session: true,
            record: Some(user.id.as_str().into()),
            // An operator belongs to no tenant, and does not end with the one that it works in.
            ..Identity::of(ledger, user.grant(), &format!("{USER}{login}"))
        };
        let digest = secret::digest(&record.digest)?;
        let (seen, recorded) = (record.seen.into(), Some(record.seen.into()));
        let session =
            Session { login: Some(login.clone()), digest, caller: Arc::new(identity), seen, recorded, record };
        self.serves(&session.caller).then_some(session)
    }
}

impl Registry {
    /// Begins a session of a user whose password was verified against this digest. Returns its text, which is not kept. `None` if the
    /// user may not sign in, or has changed meanwhile.
    pub fn begin_session(
        &self,
        login: &Login,
        password: &PasswordDigest,
        limits: &SessionLimits,
        now: i64,
    ) -> Result<Option<(Arc<Session>, String)>, Fault> {
        let _changing = self.changing.lock();
        let state = self.now.load();
        // The check took some 30 ms without the lock; the password may have changed since.
        let Some(user) = state.users.get(login).filter(|user| user.password.is_still(password)) else {
            return Ok(None);
        };
        let secret::Made { id, text, digest } = secret::make(PREFIX).map_err(|e| Fault::Vault(e.to_string()))?;
        let expires = now.saturating_add(micros(limits.lifetime));
        let (user, stamp) = (user.id.clone(), user.stamp.clone());
        let record = Record { id, user, stamp, created: now, seen: now, expires, digest };
        let Some(session) = state.session(login, record) else { return Ok(None) };
        self.make_room(&session.caller.name)?;
        // The record first: a session that works must survive a restart.
        self.write(KINDS.session, &session.record.id, &session.record)?;
        let session = Arc::new(session);
        self.sessions.0.write().insert(session.record.id.clone(), session.clone());
        Ok(Some((session, text)))
    }

    /// Begins a session that lasts as long as its identity, without a record. The holder of `changing` calls it.
    pub(super) fn enter_session(&self, identity: Identity, now: i64) -> Result<(Arc<Session>, String), Fault> {
        let secret::Made { id, text, digest } = secret::make(PREFIX).map_err(|e| Fault::Vault(e.to_string()))?;
        let bytes = secret::digest(&digest).ok_or_else(|| Fault::Vault("a digest that was just made".to_owned()))?;
        let (user, stamp, expires) = (String::new(), String::new(), identity.expires);
        let record = Record { id, user, stamp, created: now, seen: now, expires, digest };
        self.make_room(&identity.name)?;
        let (caller, seen) = (Arc::new(Identity { in_session: true, ..identity }), now.into());
        let session = Arc::new(Session { record, login: None, digest: bytes, caller, seen, recorded: None });
        self.sessions.0.write().insert(session.record.id.clone(), session.clone());
        Ok((session, text))
    }

    /// Ends the oldest session of a user at the limit, by the name of its caller. The holder of `changing` calls it.
    fn make_room(&self, user: &str) -> Result<(), Fault> {
        let (count, mut own) = {
            let sessions = self.sessions.0.read();
            let of_user = sessions.values().filter(|session| *session.caller.name == *user);
            let own = of_user.map(|session| (session.seen.load(Ordering::Relaxed), session.record.id.clone()));
            (sessions.len(), own.collect::<Vec<_>>())
        };
        own.sort_unstable();
        if own.len() >= SESSIONS_OF_USER_MAX {
            let (_, oldest) = &own[0];
            return self.forget(&self.sessions.take(|session| session.record.id == *oldest));
        }
        match count >= SESSIONS_MAX {
            true => Err(Invalid::new(format!("there are {SESSIONS_MAX} sessions, the limit: try again later")).into()),
            false => Ok(()),
        }
    }

    /// The session with this text. Counts as a use of it.
    pub fn session(&self, text: &str, limits: &SessionLimits, now: i64) -> Result<Arc<Session>, Unknown> {
        let parts = Parts::read(PREFIX, text).ok_or(Unknown::Credential)?;
        let session = self.sessions.get(parts.id).filter(|session| parts.matches(&session.digest));
        let session = session.ok_or(Unknown::Credential)?;
        if session.is_over(limits, now) {
            return Err(Unknown::Expired);
        }
        // Suspension and removal end sessions; this holds for the moment in between.
        if !self.now.load().serves(&session.caller) {
            return Err(Unknown::Suspended);
        }
        // Requests of one session run concurrently: a slower one must not set the time back.
        session.seen.fetch_max(now, Ordering::Relaxed);
        Ok(session)
    }

    /// Ends the session with this text. Returns it if there was one.
    pub fn end_session(&self, text: &str) -> Result<Option<Arc<Session>>, Fault> {
        let Some(parts) = Parts::read(PREFIX, text) else { return Ok(None) };
        let _changing = self.changing.lock();
        // In memory first: it has ended even if its record stays, which the next start would load.
        let mut ended = self.sessions.take(|session| session.record.id == parts.id && parts.matches(&session.digest));
        self.forget(&ended)?;
        Ok(ended.pop())
    }

    /// Ends sessions whose users' records already make them void. The caller holds `changing`.
    pub(super) fn end_sessions(&self, of: impl Fn(&Session) -> bool) {
        // A record that stays is stale, and removed at the next start.
        let _ = self.forget(&self.sessions.take(|session| of(session)));
    }

    fn forget(&self, ended: &[Arc<Session>]) -> Result<(), Fault> {
        let recorded = ended.iter().filter(|session| session.recorded.is_some());
        let remove = |session: &Arc<Session>| self.vault.remove(&record(KINDS.session, &session.record.id));
        // All of them, whatever happens to one.
        recorded.map(remove).fold(Ok(()), Result::and).map_err(Fault::Vault)
    }

    /// Removes sessions that are over. Records when the others were last used, if that has moved far enough. Called every
    /// minute.
    pub fn tend_sessions(&self, limits: &SessionLimits, now: i64) -> Result<(), Fault> {
        let over = self.sessions.take(|session| session.is_over(limits, now));
        let moved = |session: &&Arc<Session>| {
            let behind = |recorded: &AtomicI64| session.seen.load(Ordering::Relaxed) - recorded.load(Ordering::Relaxed);
            session.recorded.as_ref().is_some_and(|recorded| behind(recorded) >= micros(limits.idle) / BEHIND)
        };
        // Collected first: no request may wait for a disk under the lock of the map.
        let moved: Vec<_> = self.sessions.0.read().values().filter(moved).cloned().collect();
        self.forget(&over)?;
        for session in moved {
            let _changing = self.changing.lock();
            // A session that has ended meanwhile must not reappear.
            if self.sessions.get(&session.record.id).is_some() {
                let seen = session.seen.load(Ordering::Relaxed);
                self.write(KINDS.session, &session.record.id, &Record { seen, ..session.record.clone() })?;
                session.recorded.iter().for_each(|recorded| recorded.store(seen, Ordering::Relaxed));
            }
        }
        Ok(())
    }

    /// The number of sessions.
    pub fn count_sessions(&self) -> usize {
        self.sessions.0.read().len()
    }
}

/// A secret for one purpose, derived from a session's text: only its holder can compute it. `None` if this is no session's
/// text.
pub fn derived(text: &str, purpose: &str) -> Option<String> {
    Parts::read(PREFIX, text).map(|parts| parts.derive(purpose))
}

pub(super) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
