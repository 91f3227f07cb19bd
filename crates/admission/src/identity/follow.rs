//! How the registry and its records keep together.
//!
//! A change is written to the records first, and then taken up: lookups see it, and what it ends is ended. Changes of other processes, and all
//! records at a start, are taken up in the same way. Where another process was first, its change is taken up and one's own is made anew.

use super::registry::{Fault, KINDS, Registry, State, read, record};
use super::session::Session;
use super::{Caller, DEFAULT_TENANT, Login, Tenant, Token, User};
use crate::ledger::Ledger;
use meridian_model::RecordChange;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// How often a change is made anew.
const TURNS: usize = 64;

/// Changes by the kind of their records, read. A removal has none.
#[derive(Default)]
struct Changes {
    tenants: Vec<(String, Option<Tenant>)>,
    /// By id.
    users: Vec<(String, Option<User>)>,
    tokens: Vec<(String, Option<Token>)>,
    sessions: Vec<(String, Option<Vec<u8>>)>,
}

/// What ends with changes.
#[derive(Default)]
struct Ends {
    callers: Vec<Caller>,
    ledgers: Vec<Arc<Ledger>>,
    /// Removed and suspended tenants.
    gone: BTreeSet<String>,
    suspended: BTreeSet<String>,
    logins: BTreeSet<Login>,
    /// Tenants that are not what they were, those above among them.
    changed: BTreeSet<String>,
}

impl Registry {
    /// Takes up what other processes have changed. Returns the names of tenants that they have changed or removed since the last call.
    ///
    /// # Errors
    /// [`Fault::Vault`] where the records cannot be read, or one of them is not a token, tenant or user: then nothing changes here.
    pub fn follow(&self) -> Result<BTreeSet<String>, Fault> {
        self.follow_on(&mut self.changing.lock())?;
        Ok(std::mem::take(&mut *self.changed_tenants.lock()))
    }

    /// Makes a change that depends on what there is, and again where another process was first.
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

    /// Writes a record, and takes it up.
    pub(super) fn put(&self, seen: &mut u64, kind: &str, name: &str, value: &impl Serialize) -> Result<(), Fault> {
        let content = serde_json::to_vec(value).map_err(|e| Fault::Vault(e.to_string()))?;
        self.write(seen, vec![RecordChange::put(record(kind, name), content)])
    }

    /// Makes changes of the records of the version `seen`, and takes them up.
    ///
    /// # Errors
    /// [`Fault::Moved`] where another process was first, and nothing was done.
    pub(super) fn write(&self, seen: &mut u64, changes: Vec<RecordChange>) -> Result<(), Fault> {
        // Read before they are written: afterwards nothing may fail, or a valid token would exist that nobody holds.
        let read = Changes::read(changes.clone())?;
        self.commit(seen, &changes)?;
        let (ended, _) = self.take_up(read);
        // A record that stays is removed when sessions are tended.
        let _ = self.remove(seen, ended.iter().map(|id| record(KINDS.session, id)).collect());
        Ok(())
    }

    /// Makes changes of the records of the version `seen`, which the caller takes up.
    ///
    /// # Errors
    /// Those of [`Registry::write`].
    pub(super) fn commit(&self, seen: &mut u64, changes: &[RecordChange]) -> Result<(), Fault> {
        *seen = self.vault.commit(*seen, changes)?.ok_or(Fault::Moved)?;
        Ok(())
    }

    /// Removes the records of sessions that have ended.
    pub(super) fn forget(&self, seen: &mut u64, ended: &[Arc<Session>]) -> Result<(), Fault> {
        self.sessions.keep_stale(ended);
        self.remove(seen, ended.iter().map(|session| record(KINDS.session, session.id())).collect())
    }

    /// Removes records, whatever others have changed.
    pub(super) fn remove(&self, seen: &mut u64, names: Vec<String>) -> Result<(), Fault> {
        if names.is_empty() {
            return Ok(());
        }
        let changes: Vec<RecordChange> = names.into_iter().map(RecordChange::remove).collect();
        for _ in 0..TURNS {
            match self.write(seen, changes.clone()) {
                Err(Fault::Moved) => self.follow_on(seen)?,
                // In a folder each is a file of its own: one that stays must not keep the others.
                Err(_) if changes.len() > 1 && !self.vault.is_shared() => {
                    let each = changes.into_iter().map(|change| self.write(seen, vec![change]));
                    return each.fold(Ok(()), Result::and);
                }
                done => return done,
            }
        }
        Err(Fault::Moved)
    }

    /// Takes up what is newer than the version `seen`.
    pub(super) fn follow_on(&self, seen: &mut u64) -> Result<(), Fault> {
        let Some(news) = self.vault.since(*seen)? else { return Ok(()) };
        let mut changes = Vec::new();
        if news.whole {
            let there: HashSet<&str> = news.changes.iter().map(|change| change.name.as_str()).collect();
            let gone = self.names().into_iter().filter(|name| !there.contains(name.as_str()));
            // First: a user that is gone may have left its login to another.
            changes.extend(gone.map(RecordChange::remove));
        }
        changes.extend(news.changes);
        let changes = Changes::read(changes)?;
        *seen = news.version;
        // The process that ended sessions removes their records. Where it cannot, they go when sessions are tended.
        let (_, changed) = self.take_up(changes);
        self.changed_tenants.lock().extend(changed);
        Ok(())
    }

    /// The names of all records that are known.
    fn names(&self) -> Vec<String> {
        let state = self.now.load();
        let tokens = state.tokens.values().filter(|known| known.recorded);
        let tokens = tokens.map(|known| record(KINDS.token, &known.token.id));
        let tenants = state.tenants.keys().map(|name| record(KINDS.tenant, name));
        let users = state.users.values().map(|user| record(KINDS.user, &user.id));
        let sessions = self.sessions.ids().into_iter().map(|id| record(KINDS.session, &id));
        tokens.chain(tenants).chain(users).chain(sessions).collect()
    }

    /// Puts changes in their place, and ends what they end. Returns the ids of sessions that have ended, and have records yet, and the names
    /// of tenants that have changed. The caller holds `changing`.
    fn take_up(&self, changes: Changes) -> (Vec<String>, BTreeSet<String>) {
        let shared = self.vault.is_shared();
        if changes.tenants.is_empty() && changes.users.is_empty() && changes.tokens.is_empty() {
            // Sessions begin and end often: that copies nothing, and ends nothing else.
            self.sessions.take_changes((&self.now.load(), &self.issuers), changes.sessions, shared);
            return (Vec::new(), BTreeSet::new());
        }
        let (mut state, mut ends) = (State::clone(&self.now.load()), Ends::default());
        // In this order: users, and callers of tokens, belong to tenants; sessions to users.
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
        // After the state: who looks from now on finds nothing of it.
        ends.callers.iter().for_each(|caller| caller.revoke());
        ends.ledgers.iter().for_each(|ledger| ledger.close());
        ends.suspended.iter().for_each(|tenant| self.issuers.end(tenant));
        let ended = if ends.of_sessions() { self.sessions.take(|session| ends.ends(session)) } else { Vec::new() };
        // Before changes of sessions, which may say that a record is gone already.
        self.sessions.keep_stale(&ended);
        let foreign =
            self.sessions.take_foreign(|tenant| ends.gone.contains(tenant) || ends.suspended.contains(tenant));
        self.sessions.take_changes((&state, &self.issuers), changes.sessions, shared);
        (ended.iter().map(|session| session.id().to_owned()).chain(foreign).collect(), ends.changed)
    }
}

impl Changes {
    fn read(changes: Vec<RecordChange>) -> Result<Changes, Fault> {
        let mut all = Changes::default();
        for RecordChange { name, content } in changes {
            let content = content.as_deref();
            if let Some(id) = name.strip_prefix(KINDS.token) {
                let token = content.map(|content| read::<Token>(&name, content)).transpose()?;
                if token.as_ref().is_some_and(|token| token.digest().is_none()) {
                    return Err(Fault::Vault(format!("{name} has no digest of a secret")));
                }
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

impl Ends {
    /// Whether sessions may be among it.
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
    fn take_tenant(&mut self, name: String, tenant: Option<Tenant>, ends: &mut Ends) {
        // The default one is there without a record too, and does not end.
        let tenant = tenant.or_else(|| (name == DEFAULT_TENANT).then(|| Tenant::new(DEFAULT_TENANT)));
        let before = self.tenants.get(&name).map(|member| &member.tenant);
        // Where all records are taken up, most are as they were: that ends nothing.
        if before == tenant.as_ref() {
            return;
        }
        ends.changed.insert(name.clone());
        let created = tenant.as_ref().map(|tenant| tenant.created);
        // A later tenant of the name is another.
        if before.is_some_and(|before| Some(before.created) != created) && name != DEFAULT_TENANT {
            if let Some(member) = self.tenants.remove(&name) {
                // Also for operators who work in it.
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

    fn take_users(&mut self, changes: Vec<(String, Option<User>)>, ends: &mut Ends) {
        if changes.is_empty() {
            return;
        }
        let by_id = self.users.iter().map(|(login, user)| (user.id.clone(), login.clone()));
        let mut by_id: HashMap<String, Login> = by_id.collect();
        for (id, user) in changes {
            if let Some(login) = by_id.remove(&id)
                // Another user may have it by now.
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

    fn take_token(&mut self, id: String, token: Option<Token>, ends: &mut Ends) {
        // A token never changes: who holds its caller goes on.
        if token.is_some() && self.tokens.get(&id).is_some_and(|known| Some(&known.token) == token.as_ref()) {
            return;
        }
        ends.callers.extend(self.tokens.remove(&id).map(|known| known.caller.clone()));
        if let Some(known) = token.and_then(|token| self.known(token)) {
            self.tokens.insert(id, Arc::new(known));
        }
    }

    /// Voids the identities of tokens of suspended tenants, and gives the tokens new ones. What works for them ends; a token that is used
    /// again after the suspension is served.
    fn renew_callers(&mut self, ends: &mut Ends) {
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
