//! User sessions, from sign-in to sign-out.
//!
//! Each session has a secret: the browser keeps it in a cookie, and this registry keeps its digest. A record lets the
//! session outlive a restart. A session ends when its user signs out, changes or is removed, and when its tenant is
//! suspended. It also ends after a period without requests, and at the latest after its lifetime. The time of the last
//! request is kept in memory; the record is updated only in large steps. If processes share the records, a session in
//! use at one may be refused early at another, until the other learns of the use. Its record is removed later still.
//! Their clocks should agree. A session of an issuer's user has the rights that the rules granted, and is valid only at
//! servers that have the same rules.

use super::fault::{Fault, Unknown};
use super::jwt::Issuers;
use super::registry::{KINDS, Registry, State, read, record};
use super::secret::{self, Parts};
use super::session::{Federated, Record, Session, SessionLimits, micros};
use super::{Identity, Login, PasswordDigest, User};
use crate::ledger::Ledger;
use meridian_model::{Invalid, RecordChange};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Prefix of the text of a session.
const PREFIX: &str = "mrs_";
/// Prefix of the names of identities.
pub(super) const USER: &str = "user:";
/// Max sessions of a server: all of them are in memory.
const SESSIONS_MAX: usize = 100_000;
/// Max sessions of a user; a further one ends the least recently used.
const SESSIONS_OF_USER_MAX: usize = 10;
/// Max lag of a session's record, as a fraction (1/n) of the idle time.
const BEHIND: i64 = 8;
/// How often sessions are tended, in microseconds.
const TENDED: i64 = 60_000_000;
/// Max session records written in one commit, if processes share them.
const TOGETHER_MAX: usize = 256;
/// Up to this many changes, users are found by a linear scan: building a map costs more.
const FEW: usize = 8;

/// All sessions by id. Requests only read the map.
#[derive(Default)]
pub(super) struct Sessions {
    map: RwLock<HashMap<String, Arc<Session>>>,
    /// Ids of records to remove: of ended sessions, and of sessions that never began because the user changed or is
    /// gone.
    stale: Mutex<BTreeSet<String>>,
    /// Sessions that are valid only at other servers, whose rules differ, by id. Their records stay until the sessions
    /// end.
    foreign: Mutex<HashMap<String, ForeignSession>>,
}

/// What determines the end of a foreign session: its time, and its tenant (`None` for an operator).
struct ForeignSession {
    expires: i64,
    tenant: Option<String>,
}

impl Sessions {
    /// Applies changes of records, which processes may share. Each change has an id and the record's content, or `None`
    /// for a removal.
    pub fn take_changes(
        &self,
        (state, issuers): (&State, &Issuers),
        changes: Vec<(String, Option<Vec<u8>>)>,
        shared: bool,
    ) {
        if changes.is_empty() {
            return;
        }
        let by_id = || state.users.iter().map(|(login, user)| (&*user.id, login)).collect::<HashMap<&str, &Login>>();
        let by_id = (changes.len() > FEW).then(by_id);
        let (mut sessions, mut stale, mut foreign) = (self.map.write(), self.stale.lock(), self.foreign.lock());
        for (id, content) in changes {
            let Some(content) = content else {
                stale.remove(&id);
                foreign.remove(&id);
                sessions.remove(&id).iter().for_each(|ended| ended.caller.revoke());
                continue;
            };
            // The session has ended, but its record could not be removed yet.
            if stale.contains(&id) {
                continue;
            }
            // An unreadable record costs its user a sign-in and admits no one. A record shared with newer processes
            // stays, since they may be able to read it.
            let Ok(record) = read::<Record>(&id, &content) else {
                if !shared {
                    stale.insert(id);
                }
                continue;
            };
            if let Some(session) = sessions.get(&id) {
                // Another process reports when the session was used there.
                session.seen.fetch_max(record.seen, Ordering::Relaxed);
                session.recorded.store(record.seen, Ordering::Relaxed);
                continue;
            }
            let session = match record.federated.clone() {
                Some(Federated { issuer, tenant, .. }) => {
                    let (is_of_here, expires) = (issuers.have_stamp(&issuer, &record.stamp), record.expires);
                    let session = state.session_at(record).ok();
                    // The tenant exists and is not suspended.
                    if session.is_some() && !is_of_here {
                        foreign.insert(id, ForeignSession { expires, tenant });
                        continue;
                    }
                    session
                }
                None => {
                    let login = login_of(state, by_id.as_ref(), &record.user);
                    login.and_then(|login| state.session(login, record))
                }
            };
            match session {
                Some(session) => drop(sessions.insert(id, Arc::new(session))),
                None => {
                    stale.insert(id);
                }
            }
        }
    }

    /// Remembers the records of ended sessions for removal.
    pub fn keep_stale(&self, ended: &[Arc<Session>]) {
        self.stale.lock().extend(ended.iter().map(|session| session.record.id.clone()));
    }

    /// Remembers the records of foreign sessions that are over at this time for removal.
    fn keep_foreign(&self, now: i64) {
        let mut stale = self.stale.lock();
        stale.extend(self.foreign.lock().extract_if(|_, session| session.expires <= now).map(|(id, _)| id));
    }

    /// Ends the foreign sessions of these tenants and returns their ids. Their records still exist; servers with
    /// matching rules may not be running.
    pub fn take_foreign(&self, which: impl Fn(&str) -> bool) -> Vec<String> {
        let mut stale = self.stale.lock();
        let mut foreign = self.foreign.lock();
        let taken = foreign.extract_if(|_, session| session.tenant.as_deref().is_some_and(&which));
        let taken: Vec<String> = taken.map(|(id, _)| id).collect();
        stale.extend(taken.iter().cloned());
        taken
    }

    /// Returns the ids of all known records.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.stale.lock().iter().cloned().collect();
        ids.extend(self.foreign.lock().keys().cloned());
        ids.extend(self.map.read().keys().cloned());
        ids
    }

    fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.map.read().get(id).cloned()
    }

    /// Ends sessions at once and returns them. Their records still exist.
    pub fn take(&self, mut which: impl FnMut(&Session) -> bool) -> Vec<Arc<Session>> {
        let taken: Vec<_> =
            self.map.write().extract_if(|_, session| which(session)).map(|(_, session)| session).collect();
        taken.iter().for_each(|session| session.caller.revoke());
        taken
    }
}

/// Returns whether a tenant with `own` of `all` sessions may begin no other. It may have as many as are free, so that
/// some are left to others: a tenant whose issuer names any number of users could otherwise take all of them.
fn is_full(all: usize, own: usize) -> bool {
    all + own >= SESSIONS_MAX
}

/// Returns the login of the user with this id.
fn login_of<'s>(state: &'s State, by_id: Option<&HashMap<&str, &'s Login>>, id: &str) -> Option<&'s Login> {
    match by_id {
        Some(by_id) => by_id.get(id).copied(),
        None => state.users.iter().find(|(_, user)| user.id == id).map(|(login, _)| login),
    }
}

impl State {
    /// Restores a session of a user, unless the user has changed since or its tenant is suspended.
    fn session(&self, login: &Login, record: Record) -> Option<Session> {
        let may = |user: &&Arc<User>| !user.disabled && user.newer.is_empty() && user.stamp == record.stamp;
        let user = self.users.get(login).filter(may)?;
        let tenant = if user.tenant.is_empty() { super::DEFAULT_TENANT } else { &user.tenant };
        let ledger: &Arc<Ledger> = &self.tenants.get(tenant)?.ledger;
        let identity = Identity {
            expires: record.expires,
            revoked: Some(Arc::default()),
            in_session: true,
            record: Some(user.id.as_str().into()),
            // An operator belongs to no tenant, so the session does not end with the tenant that it works in.
            ..Identity::of(ledger, user.grant(), &format!("{USER}{login}"))
        };
        let session = Session::new(record, Some(login.clone()), identity)?;
        self.serves(&session.caller).then_some(session)
    }
}

impl Registry {
    /// Starts a session for a user whose password was verified against this digest. Returns its text, which is not
    /// stored; `None` if the user may not sign in or has changed meanwhile.
    pub fn begin_session(
        &self,
        login: &Login,
        password: &PasswordDigest,
        limits: &SessionLimits,
        now: i64,
    ) -> Result<Option<(Arc<Session>, String)>, Fault> {
        self.change(|seen| {
            let state = self.now.load_full();
            // The check took about 30 ms without the lock; the password may have changed since.
            let Some(user) = state.users.get(login).filter(|user| user.password.is_still(password)) else {
                return Ok(None);
            };
            let secret::NewSecret { id, text, digest } = new_secret()?;
            let expires = now.saturating_add(micros(limits.lifetime));
            let (user, stamp) = (user.id.clone(), user.stamp.clone());
            let begun = Record { id, user, stamp, created: now, seen: now, expires, digest, federated: None };
            let Some(session) = state.session(login, begun) else { return Ok(None) };
            self.enter(seen, &state, session).map(|session| Some((session, text)))
        })
    }

    /// Writes the record of a new session, and adds the session.
    ///
    /// # Errors
    /// [`Fault::Moved`] if its user may have changed since `state`.
    pub(super) fn enter(&self, seen: &mut u64, state: &Arc<State>, session: Session) -> Result<Arc<Session>, Fault> {
        let put = RecordChange::put(record(KINDS.session, session.id()), session.record.written()?);
        self.make_room(seen, &session.caller)?;
        // If another process committed first, its changes have been applied.
        if !Arc::ptr_eq(state, &self.now.load_full()) {
            return Err(Fault::Moved);
        }
        // The record first: a working session must survive a restart.
        self.commit(seen, &[put])?;
        let session = Arc::new(session);
        self.sessions.map.write().insert(session.record.id.clone(), session.clone());
        Ok(session)
    }

    /// Ends the least recently used session of a user at the limit; `user` is its identity in the new one. The caller
    /// holds `changing`.
    fn make_room(&self, seen: &mut u64, user: &Identity) -> Result<(), Fault> {
        let (count, of_tenant, mut own) = {
            let sessions = self.sessions.map.read();
            let callers = sessions.values().map(|session| &session.caller);
            // Operators belong to no tenant, and so share their limit.
            let of_tenant = callers.filter(|one| one.is_operator() == user.is_operator() && one.tenant == user.tenant);
            let of_user = sessions.values().filter(|session| session.caller.name == user.name);
            let own = of_user.map(|session| (session.seen.load(Ordering::Relaxed), session.record.id.clone()));
            (sessions.len(), of_tenant.count(), own.collect::<Vec<_>>())
        };
        own.sort_unstable();
        if own.len() >= SESSIONS_OF_USER_MAX {
            let (_, oldest) = &own[0];
            return self.forget(seen, &self.sessions.take(|session| session.record.id == *oldest));
        }
        match is_full(count, of_tenant) {
            true => Err(Invalid::new(format!("there are {count} sessions, the limit: try again later")).into()),
            false => Ok(()),
        }
    }

    /// Returns the session with this text, and counts as a use of it.
    pub fn session(&self, text: &str, limits: &SessionLimits, now: i64) -> Result<Arc<Session>, Unknown> {
        let parts = Parts::read(PREFIX, text).ok_or(Unknown::Credential)?;
        let session = self.sessions.get(parts.id).filter(|session| parts.matches(&session.digest));
        let session = session.ok_or(Unknown::Credential)?;
        if session.is_over(limits, now) {
            return Err(Unknown::Expired);
        }
        // Suspension and removal end sessions; this check covers the moment in between.
        if !self.now.load().serves(&session.caller) {
            return Err(Unknown::Suspended);
        }
        // Requests of one session run concurrently: a slower one must not move the time back.
        session.seen.fetch_max(now, Ordering::Relaxed);
        Ok(session)
    }

    /// Ends the session with this text, and returns it if it existed.
    pub fn end_session(&self, text: &str) -> Result<Option<Arc<Session>>, Fault> {
        let Some(parts) = Parts::read(PREFIX, text) else { return Ok(None) };
        let mut seen = self.changing.lock();
        // The session may have begun elsewhere just now. If that cannot be determined, the known session ends.
        let _ = self.follow_on(&mut seen);
        // In memory first: the session ends here even if its record stays. Elsewhere it stays valid until the record is
        // removed, which is retried when sessions are tended.
        let mut ended = self.sessions.take(|session| session.record.id == parts.id && parts.matches(&session.digest));
        self.forget(&mut seen, &ended)?;
        Ok(ended.pop())
    }

    /// Removes expired sessions, and records whose removal failed earlier. Updates the recorded time of last use of the
    /// others if it has moved far enough. Called every minute.
    pub fn tend_sessions(&self, limits: &SessionLimits, now: i64) -> Result<(), Fault> {
        // If processes share the records, another one may have used the session since: a removal ends it everywhere.
        let shared = self.vault.is_shared();
        let slack = if shared { micros(limits.idle) / BEHIND + 2 * TENDED } else { 0 };
        let before = now.saturating_sub(slack);
        {
            let mut seen = self.changing.lock();
            self.sessions.keep_stale(&self.sessions.take(|session| session.is_over(limits, before)));
            self.sessions.keep_foreign(before);
            self.remove_stale(&mut seen)?;
        }
        let moved = |session: &&Arc<Session>| {
            let behind = session.seen.load(Ordering::Relaxed) - session.recorded.load(Ordering::Relaxed);
            behind >= micros(limits.idle) / BEHIND
        };
        // Collected first: no request may wait for a disk under the lock of the map.
        let moved: Vec<_> = self.sessions.map.read().values().filter(moved).cloned().collect();
        // In a folder, each record is synced separately, and other changes are let in between.
        for some in moved.chunks(if shared { TOGETHER_MAX } else { 1 }) {
            self.change(|seen| {
                let mut puts = Vec::new();
                // A session that has ended meanwhile must not reappear.
                for session in some.iter().filter(|session| self.sessions.get(session.id()).is_some()) {
                    let used = Record { seen: session.seen.load(Ordering::Relaxed), ..session.record.clone() };
                    puts.push(RecordChange::put(record(KINDS.session, session.id()), used.written()?));
                }
                if puts.is_empty() { Ok(()) } else { self.write(seen, puts) }
            })?;
        }
        Ok(())
    }

    /// Removes records that no longer belong to a session. The caller holds `changing`.
    pub(super) fn remove_stale(&self, seen: &mut u64) -> Result<(), Fault> {
        let stale = self.sessions.stale.lock().iter().map(|id| record(KINDS.session, id)).collect();
        self.remove(seen, stale)
    }

    /// Returns the number of sessions.
    pub fn count_sessions(&self) -> usize {
        self.sessions.map.read().len()
    }
}

/// Generates the id and the secret of a new session.
pub(super) fn new_secret() -> Result<secret::NewSecret, Fault> {
    secret::make(PREFIX).map_err(|e| Fault::Vault(e.to_string()))
}

/// Derives a secret for one purpose from a session's text, which only its holder can compute. Returns `None` if the
/// text is not that of a session.
pub fn derived(text: &str, purpose: &str) -> Option<String> {
    Parts::read(PREFIX, text).map(|parts| parts.derive(purpose))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_of_a_tenant_leave_some_to_others() {
        let fill = |others: usize| (0..=SESSIONS_MAX).find(|own| is_full(others + own, *own)).unwrap();
        let first = fill(0);
        let second = fill(first);
        assert_eq!((first, second), (SESSIONS_MAX / 2, SESSIONS_MAX / 4));
        assert!(fill(first + second) > 0);
    }
}
