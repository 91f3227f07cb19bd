//! All tokens, tenants, users and sessions of a server: the state that lookups read, and operations on tokens. Changes
//! of tenants, users and sessions are in `tenants.rs`, `users.rs` and `sessions.rs`; `follow.rs` writes and applies
//! them.

use super::fault::{Fault, Unknown};
use super::jwt::Issuers;
use super::secret::{Digest, Parts};
use super::sessions::Sessions;
use super::{ANONYMOUS, Caller, DEFAULT_TENANT, Identity, Login, Tenant, Token, User, token};
use crate::ledger::Ledger;
use arc_swap::ArcSwap;
use meridian_model::policy::access::{Grant, Pattern, Role};
use meridian_model::{Invalid, RecordChange, RecordChanges};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Max tokens of a server: all of them are in memory.
const TOKENS_MAX: usize = 100_000;
/// Max tokens of a tenant, so that no tenant uses up those of the others.
const TOKENS_OF_TENANT_MAX: usize = 1_000;

/// Prefixes of record names, by kind.
pub(super) struct Kinds {
    pub token: &'static str,
    pub tenant: &'static str,
    pub user: &'static str,
    pub session: &'static str,
}

pub(super) const KINDS: Kinds = Kinds { token: "token-", tenant: "tenant-", user: "user-", session: "session-" };

/// Where the registry's records are kept. Names consist of letters, digits, `-` and `_`.
pub trait Vault: Send + Sync {
    /// Returns the changes after a version of the records; `None` if that version is the newest. Version 0 precedes
    /// all.
    fn since(&self, version: u64) -> Result<Option<RecordChanges>, VaultError>;

    /// Returns the records that [`Vault::since`] left out of all, because they are damaged, and what is wrong with each.
    fn damaged(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Commits changes in order, durably, and returns the resulting version. Returns `None`, with nothing done, if
    /// another process changed the records after `follows`.
    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, VaultError>;

    /// Returns whether other processes change the records too. Commits are then atomic.
    fn is_shared(&self) -> bool;
}

/// Why records could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultError {
    /// Nothing was done.
    Failed(String),
    /// It is unknown whether the change was made.
    Unknown(String),
}

impl From<VaultError> for Fault {
    fn from(error: VaultError) -> Fault {
        match error {
            VaultError::Failed(why) => Fault::Vault(why),
            VaultError::Unknown(why) => Fault::Unknown(why),
        }
    }
}

/// A new token.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The tenant of the token; `None` for an operator's.
    pub tenant: Option<String>,
    /// The rights of its holder.
    pub grant: Grant,
    /// When it expires, in microseconds since 1970.
    pub expires: Option<i64>,
}

/// The tokens, tenants, users and sessions of a server.
pub struct Registry {
    pub(super) vault: Arc<dyn Vault>,
    /// Issuers whose JSON Web Tokens are trusted.
    pub(super) issuers: Issuers,
    /// The state that lookups read. Each change replaces it as a whole.
    pub(super) now: ArcSwap<State>,
    /// Kept apart, because sessions begin and end often.
    pub(super) sessions: Sessions,
    /// The version of the records that is applied. Locked for the whole of a change, from reading the old state to
    /// replacing it; otherwise one of two concurrent changes would be lost.
    pub(super) changing: Mutex<u64>,
    /// Tenants changed or removed by other processes, for [`Registry::follow`].
    pub(super) changed_tenants: Mutex<BTreeSet<String>>,
    /// Set if the records could not be followed for too long, so that no credential is accepted.
    pub(super) behind: AtomicBool,
}

#[derive(Clone, Default)]
pub(super) struct State {
    pub tokens: HashMap<String, Arc<TokenEntry>>,
    pub tenants: BTreeMap<String, Member>,
    pub users: BTreeMap<Login, Arc<User>>,
    /// The ids of tokens whose records are damaged, and what is wrong with each. They admit nobody.
    pub damaged: BTreeMap<String, String>,
}

/// A tenant in memory.
#[derive(Clone)]
pub(super) struct Member {
    pub tenant: Tenant,
    pub ledger: Arc<Ledger>,
}

/// A token in memory.
pub(super) struct TokenEntry {
    pub token: Token,
    digest: Digest,
    pub caller: Caller,
    /// Whether the token has a record. A token without one ends with the process and is not listed.
    pub recorded: bool,
}

impl Registry {
    /// Reads all records.
    ///
    /// # Errors
    /// [`Fault::Vault`] if they cannot be read, or one of them is not a tenant or user. Without a tenant's record its
    /// suspension would be lost, and without a user's, another user could take its name. A damaged token in a folder
    /// admits nobody, and is listed by [`Registry::damaged_tokens`].
    pub fn open(vault: Arc<dyn Vault>) -> Result<Registry, Fault> {
        Registry::open_trusting(vault, Issuers::new(Vec::new()))
    }

    /// Reads all records, for a server that trusts these issuers.
    ///
    /// # Errors
    /// As for [`Registry::open`].
    pub fn open_trusting(vault: Arc<dyn Vault>, issuers: Issuers) -> Result<Registry, Fault> {
        let mut state = State::default();
        state.enter(Tenant::new(DEFAULT_TENANT));
        let registry = Registry {
            vault,
            issuers,
            now: ArcSwap::from_pointee(state),
            sessions: Sessions::default(),
            changing: Mutex::new(0),
            changed_tenants: Mutex::default(),
            behind: AtomicBool::new(false),
        };
        let mut seen = registry.changing.lock();
        registry.follow_on(&mut seen)?;
        // Removes the session records of users that have since changed or gone.
        registry.remove_stale(&mut seen)?;
        drop(seen);
        registry.changed_tenants.lock().clear();
        Ok(registry)
    }

    /// Returns whether no credential is accepted because the records could not be followed for too long: any of them
    /// may have been revoked meanwhile.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    /// Sets [`Registry::is_behind`].
    pub fn set_behind(&self, behind: bool) {
        self.behind.store(behind, Ordering::Relaxed);
    }

    /// Returns whether no credential exists; the server is then open to programs on its own machine.
    pub fn is_empty(&self) -> bool {
        let state = self.now.load();
        // A damaged token counts: damage must not open the server.
        state.tokens.is_empty() && state.damaged.is_empty() && state.users.is_empty() && self.issuers.is_empty()
    }

    /// Returns the caller for the text of a token: a token of this server, or a JSON Web Token.
    pub fn caller(&self, text: &str, now: i64) -> Result<Caller, Unknown> {
        self.caller_from(text, None, now)
    }

    /// Returns the caller for the text of a token from this address; `None` if the client is known to be the operator.
    /// The secret of a token of this server cannot be guessed, and costs little to compare. Only JSON Web Tokens that
    /// fail are counted.
    pub fn caller_from(&self, text: &str, from: Option<IpAddr>, now: i64) -> Result<Caller, Unknown> {
        let Some(parts) = Parts::read(token::PREFIX, text) else { return self.of_issuer(text, from, now) };
        let state = self.now.load();
        let known =
            state.tokens.get(parts.id).filter(|known| parts.matches(&known.digest) && known.token.newer.is_empty());
        let known = known.ok_or(Unknown::Credential)?;
        if known.caller.is_void(now) {
            return Err(Unknown::Expired);
        }
        if state.serves(&known.caller) { Ok(known.caller.clone()) } else { Err(Unknown::Suspended) }
    }

    /// Returns the anonymous caller, with its read rights in the default tenant; `None` if it may read nothing.
    pub fn anonymous(&self) -> Option<Caller> {
        let state = self.now.load();
        let Member { tenant, ledger } = state.tenants.get(DEFAULT_TENANT).filter(|member| !member.tenant.suspended)?;
        let collections = tenant.anonymous.clone()?;
        Some(Arc::new(Identity::of(ledger, Grant { role: Role::Reader, collections }, ANONYMOUS)))
    }

    /// Returns whether the anonymous caller still has exactly these collections.
    pub fn opens(&self, collections: &Pattern) -> bool {
        let state = self.now.load();
        let member = state.tenants.get(DEFAULT_TENANT).filter(|member| !member.tenant.suspended);
        member.is_some_and(|member| member.tenant.anonymous.as_ref() == Some(collections))
    }

    /// Returns the tokens of a tenant, or of all, in order of creation.
    pub fn tokens(&self, tenant: Option<&str>) -> Vec<Token> {
        let state = self.now.load();
        let recorded = state.tokens.values().filter(|known| known.recorded);
        let mut tokens: Vec<Token> = recorded.map(|known| known.token.clone()).collect();
        tokens.retain(|token| tenant.is_none_or(|tenant| token.tenant == tenant));
        tokens.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        tokens
    }

    /// Returns a token of a tenant, or of any; `None` if there is none of this id.
    pub fn token(&self, tenant: Option<&str>, id: &str) -> Option<Token> {
        let state = self.now.load();
        let known = state.tokens.get(id).filter(|known| known.recorded)?;
        tenant.is_none_or(|tenant| known.token.tenant == tenant).then(|| known.token.clone())
    }

    /// Returns the ids of tokens whose records are damaged, and what is wrong with each.
    pub fn damaged_tokens(&self) -> BTreeMap<String, String> {
        self.now.load().damaged.clone()
    }

    /// Returns whether there is a token of this id whose record is damaged.
    pub fn has_damaged_token(&self, id: &str) -> bool {
        self.now.load().damaged.contains_key(id)
    }

    /// Removes the record of a damaged token.
    pub fn remove_damaged_token(&self, id: &str) -> Result<(), Fault> {
        self.change(|seen| match self.has_damaged_token(id) {
            true => self.write(seen, vec![RecordChange::remove(record(KINDS.token, id))]),
            false => Err(Fault::Absent("token", id.to_owned())),
        })
    }

    /// Creates a token. Returns it with its text, which is not stored.
    pub fn create_token(&self, new: &NewToken, now: i64) -> Result<(Token, String), Fault> {
        new.grant.check()?;
        self.change(|seen| {
            let tenant = self.tenant_of(new, now)?;
            let (token, text) =
                Token::make(tenant, &new.grant, now, new.expires).map_err(|e| Fault::Vault(e.to_string()))?;
            self.put(seen, KINDS.token, &token.id, &token)?;
            Ok((token, text))
        })
    }

    /// Checks that a token can be created. Returns its tenant, empty for an operator's token.
    fn tenant_of<'n>(&self, new: &'n NewToken, now: i64) -> Result<&'n str, Fault> {
        let state = self.now.load();
        let tenant = match (&new.tenant, new.grant.role) {
            (None, Role::Operator) => "",
            (Some(_), Role::Operator) => {
                return Err(Invalid::field("tenant", "an operator belongs to no tenant: leave it out").into());
            }
            (tenant, _) => tenant.as_deref().unwrap_or(DEFAULT_TENANT),
        };
        if !tenant.is_empty() && !state.tenants.contains_key(tenant) {
            return Err(Invalid::field("tenant", format!("there is no tenant {tenant:?}: create it first")).into());
        }
        if new.expires.is_some_and(|expires| expires <= now) {
            return Err(Invalid::field("expires", "the token would have expired already").into());
        }
        let of_tenant = state.tokens.values().filter(|known| known.token.tenant == tenant).count();
        for (count, max) in [(state.tokens.len(), TOKENS_MAX), (of_tenant, TOKENS_OF_TENANT_MAX)] {
            if count >= max {
                return Err(Invalid::new(format!("there are {max} tokens, the limit: revoke some first")).into());
            }
        }
        Ok(tenant)
    }

    /// Creates an operator's token that ends with this process, and returns its text. From then on callers need a
    /// token.
    pub fn create_passing(&self, now: i64) -> Result<String, Fault> {
        let _changing = self.changing.lock();
        let grant = Grant::over_all(Role::Operator);
        let (token, text) = Token::make("", &grant, now, None).map_err(|e| Fault::Vault(e.to_string()))?;
        let mut state = State::clone(&self.now.load());
        let known = state.known(token).ok_or_else(|| Fault::Vault("a digest that was just made".to_owned()))?;
        // It represents the owner of the folder, and its id would mean nothing to a reader of the audit log.
        let caller = Arc::new(Identity { name: "local".into(), ..Identity::clone(&known.caller) });
        state.tokens.insert(known.token.id.clone(), Arc::new(TokenEntry { recorded: false, caller, ..known }));
        self.now.store(Arc::new(state));
        Ok(text)
    }

    /// Revokes a token of a tenant, or of any, and returns it.
    pub fn revoke_token(&self, tenant: Option<&str>, id: &str) -> Result<Token, Fault> {
        self.change(|seen| {
            let state = self.now.load_full();
            let known = state.tokens.get(id).filter(|known| tenant.is_none_or(|tenant| known.token.tenant == tenant));
            let known = known.ok_or_else(|| Fault::Absent("token", id.to_owned()))?;
            self.write(seen, vec![RecordChange::remove(record(KINDS.token, id))])?;
            Ok(known.token.clone())
        })
    }
}

/// Returns the name of a record.
pub(super) fn record(kind: &str, name: &str) -> String {
    format!("{kind}{name}")
}

pub(super) fn read<T: DeserializeOwned>(name: &str, content: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(content).map_err(|e| Fault::Vault(format!("{name} is not what was written: {e}")))
}

impl State {
    /// Adds or replaces a tenant. An existing ledger is kept, with its past use.
    pub fn enter(&mut self, tenant: Tenant) {
        let ledger = match self.tenants.get(&tenant.name) {
            Some(member) => member.ledger.clone(),
            None => Arc::new(Ledger::new(&tenant.name)),
        };
        ledger.set(tenant.weight, &tenant.quotas);
        ledger.set_suspended(tenant.suspended);
        self.tenants.insert(tenant.name.clone(), Member { tenant, ledger });
    }

    /// Returns whether a caller's tenant is served; always true for an operator, which has no tenant.
    pub fn serves(&self, caller: &Identity) -> bool {
        caller.is_operator() || self.tenants.get(&*caller.tenant).is_some_and(|member| !member.tenant.suspended)
    }

    pub fn known(&self, token: Token) -> Option<TokenEntry> {
        let digest = token.digest()?;
        // An operator works in the default tenant unless a request names another one.
        let tenant = if token.tenant.is_empty() { DEFAULT_TENANT } else { &token.tenant };
        let mut identity = match self.tenants.get(tenant) {
            Some(member) => Identity::of(&member.ledger, token.grant(), &token.id),
            // The tenant was removed, so the token is refused.
            None => Identity::new(tenant, token.grant(), &token.id),
        };
        identity.expires = token.expires.unwrap_or(i64::MAX);
        identity.gives_until = identity.expires;
        identity.revoked = Some(Arc::default());
        Some(TokenEntry { token, digest, caller: Arc::new(identity), recorded: true })
    }
}
