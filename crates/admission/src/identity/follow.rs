//! Keeps the registry and its records consistent.
//!
//! A change is first written to the records and then applied: lookups see it, and whatever it ends is ended. Changes by
//! other processes, and all records at startup, are applied in the same way. If another process commits first, its
//! change is applied and the local change is retried.

use super::fault::Fault;
use super::registry::{KINDS, Registry, State, read, record};
use super::session::Session;
use super::{Caller, DEFAULT_TENANT, Login, Tenant, Token, User};
use crate::ledger::Ledger;
use meridian_model::RecordChange;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Max retries of a conflicting change.
const TURNS: usize = 64;

/// Parsed changes, by kind of record. A removal has no value.
#[derive(Default)]
struct Changes {
    tenants: Vec<(String, Option<Tenant>)>,
    /// Keyed by id.
    users: Vec<(String, Option<User>)>,
    tokens: Vec<(String, Option<Token>)>,
    sessions: Vec<(String, Option<Vec<u8>>)>,
}

/// The callers, ledgers and sessions that a set of changes ends.
#[derive(Default)]
struct Revocations {
    callers: Vec<Caller>,
    ledgers: Vec<Arc<Ledger>>,
    /// Removed and suspended tenants.
    gone: BTreeSet<String>,
    suspended: BTreeSet<String>,
    logins: BTreeSet<Login>,
    /// Changed tenants, including those above.
    changed: BTreeSet<String>,
}

impl Registry {
    /// Applies the changes made by other processes. Returns the names of the tenants that they have changed or removed
    /// since the last call.
    ///
    /// # Errors
    /// [`Fault::Vault`] if the records cannot be read, or if one is not a valid token, tenant or user; then nothing
    /// changes here.
    pub fn follow(&self) -> Result<BTreeSet<String>, Fault> {
        self.follow_on(&mut self.changing.lock())?;
        Ok(std::mem::take(&mut *self.changed_tenants.lock()))
    }

    /// Makes a change that depends on the current state; retries it if another process committed first.
    pub(super) fn change<T>(&self, mut act: impl FnMut(&mut u64) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut seen = self.changing.lock();
        for _ in 0..TURNS {
            self.follow_on(&mut seen)?;
            match act(&mut seen) {
                Err(Fault::Moved) => {}
                done => return done,
            }
        }
        Err(Fault::Moved)
    }

    /// Writes a record and applies it.
    pub(super) fn put(&self, seen: &mut u64, kind: &str, name: &str, value: &impl Serialize) -> Result<(), Fault> {
        let content = serde_json::to_vec(value).map_err(|e| Fault::Vault(e.to_string()))?;
        self.write(seen, vec![RecordChange::put(record(kind, name), content)])
    }

    /// Commits changes against version `seen` of the records, and applies them.
    ///
    /// # Errors
    /// [`Fault::Moved`] if another process committed first; then nothing was done.
    pub(super) fn write(&self, seen: &mut u64, changes: Vec<RecordChange>) -> Result<(), Fault> {
        // Parsed before the commit: nothing may fail afterwards, or a valid token would exist that no client holds.
        let read = Changes::read(changes.clone())?;
        self.commit(seen, &changes)?;
        let (ended, _) = self.take_up(read);
        // A record that could not be removed is removed when sessions are tended.
        let _ = self.remove(seen, ended.iter().map(|id| record(KINDS.session, id)).collect());
        Ok(())
    }

    /// Commits changes against version `seen` of the records; the caller applies them.
    ///
    /// # Errors
    /// As for [`Registry::write`].
    pub(super) fn commit(&self, seen: &mut u64, changes: &[RecordChange]) -> Result<(), Fault> {
        *seen = self.vault.commit(*seen, changes)?.ok_or(Fault::Moved)?;
        Ok(())
    }

    /// Removes the records of sessions that have ended.
    pub(super) fn forget(&self, seen: &mut u64, ended: &[Arc<Session>]) -> Result<(), Fault> {
        self.sessions.keep_stale(ended);
        self.remove(seen, ended.iter().map(|session| record(KINDS.session, session.id())).collect())
    }

    /// Removes records, regardless of changes by others.
    pub(super) fn remove(&self, seen: &mut u64, names: Vec<String>) -> Result<(), Fault> {
        if names.is_empty() {
            return Ok(());
        }
        let changes: Vec<RecordChange> = names.into_iter().map(RecordChange::remove).collect();
        for _ in 0..TURNS {
            match self.write(seen, changes.clone()) {
                Err(Fault::Moved) => self.follow_on(seen)?,
                // In a folder, each record is a file of its own: one that cannot be removed must not block the others.
                Err(_) if changes.len() > 1 && !self.vault.is_shared() => {
                    let each = changes.into_iter().map(|change| self.write(seen, vec![change]));
                    return each.fold(Ok(()), Result::and);
                }
                done => return done,
            }
        }
        Err(Fault::Moved)
    }

    /// Applies the changes newer than version `seen`.
    pub(super) fn follow_on(&self, seen: &mut u64) -> Result<(), Fault> {
        let Some(news) = self.vault.since(*seen)? else { return Ok(()) };
        let mut changes = Vec::new();
        if news.whole {
            let there: HashSet<&str> = news.changes.iter().map(|change| change.name.as_str()).collect();
            let gone = self.names().into_iter().filter(|name| !there.contains(name.as_str()));
            // Removals first: a removed user's login may now belong to another user.
            changes.extend(gone.map(RecordChange::remove));
        }
        changes.extend(news.changes);
        let damaged = match news.whole && !self.vault.is_shared() {
            true => Some(self.take_out_damaged(&mut changes)?),
            // A link of a chain holds changes of any records, so none can be left out.
            false => None,
        };
        let changes = Changes::read(changes)?;
        *seen = news.version;
        // The process that ended the sessions removes their records. If it cannot, they go when sessions are tended.
        let (_, changed) = self.take_up(changes);
        self.changed_tenants.lock().extend(changed);
        if let Some(damaged) = damaged {
            let state = State { damaged, ..State::clone(&self.now.load()) };
            self.now.store(Arc::new(state));
        }
        Ok(())
    }

    /// Takes damaged tokens out of all records, and returns their ids with what is wrong. A token's record holds the
    /// rights of its holder and nothing else, so without it nobody may do more. A damaged session is like an unreadable
    /// one: it costs its user a sign-in.
    ///
    /// # Errors
    /// [`Fault::Vault`] for a damaged record of another kind.
    fn take_out_damaged(&self, changes: &mut Vec<RecordChange>) -> Result<BTreeMap<String, String>, Fault> {
        let mut damaged = BTreeMap::new();
        for (name, why) in self.vault.damaged() {
            match name.strip_prefix(KINDS.token) {
                Some(id) => _ = damaged.insert(id.to_owned(), why),
                None if name.starts_with(KINDS.session) => changes.push(RecordChange::put(name, Vec::new())),
                None => return Err(Fault::Vault(why)),
            }
        }
        changes.retain(|RecordChange { name, content }| {
            let Some((id, content)) = name.strip_prefix(KINDS.token).zip(content.as_deref()) else { return true };
            let read = token_of(name, content);
            if let Err(why) = &read {
                damaged.insert(id.to_owned(), why.to_string());
            }
            read.is_ok()
        });
        Ok(damaged)
    }

    /// Returns the names of all known records.
    fn names(&self) -> Vec<String> {
        let state = self.now.load();
        let tokens = state.tokens.values().filter(|known| known.recorded);
        let tokens = tokens.map(|known| record(KINDS.token, &known.token.id));
        let tenants = state.tenants.keys().map(|name| record(KINDS.tenant, name));
        let users = state.users.values().map(|user| record(KINDS.user, &user.id));
        let sessions = self.sessions.ids().into_iter().map(|id| record(KINDS.session, &id));
        tokens.chain(tenants).chain(users).chain(sessions).collect()
    }

    /// Applies changes, and ends whatever they end. Returns the ids of ended sessions that still have records, and the
    /// names of changed tenants. The caller holds `changing`.
    fn take_up(&self, changes: Changes) -> (Vec<String>, BTreeSet<String>) {
        let shared = self.vault.is_shared();
        if changes.tenants.is_empty() && changes.users.is_empty() && changes.tokens.is_empty() {
            // Sessions start and end often, so such changes copy no state and end nothing else.
            self.sessions.take_changes((&self.now.load(), &self.issuers), changes.sessions, shared);
            return (Vec::new(), BTreeSet::new());
        }
        let (mut state, mut ends) = (State::clone(&self.now.load()), Revocations::default());
        // The order matters: users and token callers belong to tenants, sessions to users.
        for (name, tenant) in changes.tenants {
            state.take_tenant(name, tenant, &mut ends);
        }
        state.take_users(changes.users, &mut ends);
        for (id, token) in changes.tokens {
            state.take_token(id, token, &mut ends);
        }
        state.renew_callers(&mut ends);
        let state = Arc::new(state);
        self.now.store(state.clone());
        // After the state is replaced: lookups from now on no longer find the ended callers.
        ends.callers.iter().for_each(|caller| caller.revoke());
        ends.ledgers.iter().for_each(|ledger| ledger.close());
        ends.suspended.iter().for_each(|tenant| self.issuers.end(tenant));
        let ended = if ends.of_sessions() { self.sessions.take(|session| ends.ends(session)) } else { Vec::new() };
        // Before the session changes, which may report that a record is already gone.
        self.sessions.keep_stale(&ended);
        let foreign =
            self.sessions.take_foreign(|tenant| ends.gone.contains(tenant) || ends.suspended.contains(tenant));
        self.sessions.take_changes((&state, &self.issuers), changes.sessions, shared);
        (ended.iter().map(|session| session.id().to_owned()).chain(foreign).collect(), ends.changed)
    }
}

fn token_of(name: &str, content: &[u8]) -> Result<Token, Fault> {
    let token = read::<Token>(name, content)?;
    match token.digest() {
        Some(_) => Ok(token),
        None => Err(Fault::Vault(format!("{name} has no digest of a secret"))),
    }
}

impl Changes {
    fn read(changes: Vec<RecordChange>) -> Result<Changes, Fault> {
        let mut all = Changes::default();
        for RecordChange { name, content } in changes {
            let content = content.as_deref();
            if let Some(id) = name.strip_prefix(KINDS.token) {
                let token = content.map(|content| token_of(&name, content)).transpose()?;
                all.tokens.push((id.to_owned(), token));
            } else if let Some(tenant) = name.strip_prefix(KINDS.tenant) {
                all.tenants.push((tenant.to_owned(), content.map(|content| read(&name, content)).transpose()?));
            } else if let Some(id) = name.strip_prefix(KINDS.user) {
                let user = content.map(|content| read::<User>(&name, content)).transpose()?;
                if user.as_ref().is_some_and(|user| !user.password.is_whole()) {
                    return Err(Fault::Vault(format!("{name} has no digest of a password")));
                }
                all.users.push((id.to_owned(), user));
            } else if let Some(id) = name.strip_prefix(KINDS.session) {
                all.sessions.push((id.to_owned(), content.map(<[u8]>::to_vec)));
            }
        }
        Ok(all)
    }
}

impl Revocations {
    /// Returns whether the change may involve sessions.
    fn of_sessions(&self) -> bool {
        !(self.gone.is_empty() && self.suspended.is_empty() && self.logins.is_empty())
    }

    fn ends(&self, session: &Session) -> bool {
        let (caller, tenant) = (session.caller(), &*session.caller().tenant);
        self.gone.contains(tenant)
            || self.suspended.contains(tenant) && !caller.is_operator()
            || session.login().is_some_and(|login| self.logins.contains(login))
    }
}

impl State {
    fn take_tenant(&mut self, name: String, tenant: Option<Tenant>, ends: &mut Revocations) {
        // The default tenant exists even without a record, and never ends.
        let tenant = tenant.or_else(|| (name == DEFAULT_TENANT).then(|| Tenant::new(DEFAULT_TENANT)));
        let before = self.tenants.get(&name).map(|member| &member.tenant);
        // When all records are applied, most are unchanged; those end nothing.
        if before == tenant.as_ref() {
            return;
        }
        ends.changed.insert(name.clone());
        let created = tenant.as_ref().map(|tenant| tenant.created);
        // A later tenant of the same name is a different tenant.
        if before.is_some_and(|before| Some(before.created) != created) && name != DEFAULT_TENANT {
            if let Some(member) = self.tenants.remove(&name) {
                // This also ends the work of operators in the tenant.
                ends.ledgers.push(member.ledger);
            }
            ends.gone.insert(name.clone());
        }
        if let Some(tenant) = tenant {
            if tenant.suspended {
                ends.suspended.insert(name);
            }
            self.enter(tenant);
        }
    }

    fn take_users(&mut self, changes: Vec<(String, Option<User>)>, ends: &mut Revocations) {
        if changes.is_empty() {
            return;
        }
        let by_id = self.users.iter().map(|(login, user)| (user.id.clone(), login.clone()));
        let mut by_id: HashMap<String, Login> = by_id.collect();
        for (id, user) in changes {
            if let Some(login) = by_id.remove(&id)
                // The login may belong to another user by now.
                && self.users.get(&login).is_some_and(|user| user.id == id)
                && let Some(before) = self.users.remove(&login)
                && user.as_ref().is_none_or(|user| user.stamp != before.stamp)
            {
                ends.logins.insert(login);
            }
            if let Some(user) = user {
                by_id.insert(id, user.login());
                self.users.insert(user.login(), Arc::new(user));
            }
        }
    }

    fn take_token(&mut self, id: String, token: Option<Token>, ends: &mut Revocations) {
        // A token never changes, so holders of its caller continue.
        if token.is_some() && self.tokens.get(&id).is_some_and(|known| Some(&known.token) == token.as_ref()) {
            return;
        }
        self.damaged.remove(&id);
        ends.callers.extend(self.tokens.remove(&id).map(|known| known.caller.clone()));
        if let Some(known) = token.and_then(|token| self.known(token)) {
            self.tokens.insert(id, Arc::new(known));
        }
    }

    /// Voids the identities of tokens of suspended tenants, and gives the tokens new ones. Work for the old identities
    /// ends; a token used again after the suspension is served.
    fn renew_callers(&mut self, ends: &mut Revocations) {
        if ends.suspended.is_empty() {
            return;
        }
        let suspended = self.tokens.values().filter(|known| ends.suspended.contains(&known.token.tenant));
        for known in suspended.cloned().collect::<Vec<_>>() {
            if let Some(renewed) = self.known(known.token.clone()) {
                ends.callers.push(known.caller.clone());
                self.tokens.insert(known.token.id.clone(), Arc::new(renewed));
            }
        }
    }
}
