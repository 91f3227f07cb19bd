//! The users of a registry.

use super::fault::Fault;
use super::newer::UnknownFields;
use super::registry::{KINDS, Registry, State, record};
use super::user::check_name;
use super::{DEFAULT_TENANT, Login, PasswordDigest, User, secret};
use meridian_model::policy::access::{Grant, Role};
use meridian_model::{Invalid, RecordChange};
use std::sync::Arc;

/// Max users of a server: all of them are in memory.
const USERS_MAX: usize = 100_000;
/// Max users of a tenant, so that no tenant uses up those of the others.
const USERS_OF_TENANT_MAX: usize = 1_000;

/// A new user.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// Its name.
    pub name: String,
    /// The tenant of the user; `None` for an operator.
    pub tenant: Option<String>,
    /// Its rights.
    pub grant: Grant,
    /// The stored form of its password.
    pub password: PasswordDigest,
}

/// A change of a user; fields that are `None` stay as they are.
#[derive(Debug, Clone, Default)]
pub struct UserChange {
    /// New rights.
    pub grant: Option<Grant>,
    /// New password.
    pub password: Option<PasswordDigest>,
    /// Whether to bar the user from signing in.
    pub disabled: Option<bool>,
}

impl Registry {
    /// Returns whether anyone can sign in: here, or at an issuer.
    pub fn signs_in(&self) -> bool {
        self.has_users() || self.issuers.with_sign_in().next().is_some()
    }

    /// Returns whether anyone can sign in with a password.
    pub fn has_users(&self) -> bool {
        !self.now.load().users.is_empty()
    }

    /// Returns the users of a tenant, or of all, in order of login.
    pub fn users(&self, tenant: Option<&str>) -> Vec<User> {
        let state = self.now.load();
        let of_tenant = state.users.values().filter(|user| tenant.is_none_or(|tenant| user.tenant == tenant));
        of_tenant.map(|user| User::clone(user)).collect()
    }

    /// Returns a user.
    pub fn user(&self, login: &Login) -> Option<Arc<User>> {
        self.now.load().users.get(login).cloned()
    }

    /// Returns the stored form of a user's password if the user may sign in, otherwise a digest that no password has.
    /// Checking either takes the same time.
    pub fn password(&self, login: Option<&Login>) -> PasswordDigest {
        let state = self.now.load();
        let user =
            login.and_then(|login| state.users.get(login)).filter(|user| !user.disabled && user.newer.is_empty());
        user.map_or_else(PasswordDigest::of_nobody, |user| user.password.clone())
    }

    /// Checks that a user can be created, before its password is hashed. Returns its tenant, empty for an operator.
    pub fn check_user(&self, name: &str, tenant: Option<&str>, grant: &Grant) -> Result<String, Fault> {
        let state = self.now.load();
        check_name(name)?;
        grant.check()?;
        let tenant = match (tenant, grant.role) {
            (None, Role::Operator) => "",
            (Some(_), Role::Operator) => {
                return Err(Invalid::field("tenant", "an operator belongs to no tenant: leave it out").into());
            }
            (tenant, _) => tenant.unwrap_or(DEFAULT_TENANT),
        };
        if !tenant.is_empty() && !state.tenants.contains_key(tenant) {
            return Err(Invalid::field("tenant", format!("there is no tenant {tenant:?}: create it first")).into());
        }
        if state.users.contains_key(&Login::of(tenant, name)) {
            return Err(Fault::Exists("user", name.to_owned()));
        }
        let of_tenant = state.users.values().filter(|user| user.tenant == tenant).count();
        for (count, max) in [(state.users.len(), USERS_MAX), (of_tenant, USERS_OF_TENANT_MAX)] {
            if count >= max {
                return Err(Invalid::new(format!("there are {max} users, the limit: remove some first")).into());
            }
        }
        Ok(tenant.to_owned())
    }

    /// Creates a user.
    pub fn create_user(&self, new: NewUser, now: i64) -> Result<User, Fault> {
        self.change(|seen| {
            let tenant = self.check_user(&new.name, new.tenant.as_deref(), &new.grant)?;
            let user = User {
                id: random()?,
                name: new.name.clone(),
                tenant,
                role: new.grant.role,
                collections: new.grant.collections.clone(),
                created: now,
                disabled: false,
                password: new.password.clone(),
                stamp: random()?,
                newer: UnknownFields::default(),
            };
            self.put(seen, KINDS.user, &user.id, &user)?;
            Ok(user)
        })
    }

    /// Changes a user, ends its sessions, and returns its new state.
    ///
    /// # Errors
    /// [`Fault::Changed`] if the user differs from `was`, on which the decision that the caller may change it was
    /// based.
    pub fn change_user(&self, was: &User, change: UserChange) -> Result<User, Fault> {
        self.change(|seen| {
            let state = self.now.load_full();
            let mut user = User::clone(unchanged(&state, was)?);
            if let Some(grant) = &change.grant {
                grant.check()?;
                // Such a change would move the user into or out of its tenant.
                if (grant.role == Role::Operator) != (user.role == Role::Operator) {
                    let detail =
                        "an operator belongs to no tenant, and others to one: remove the user and create another";
                    return Err(Invalid::field("role", detail).into());
                }
                (user.role, user.collections) = (grant.role, grant.collections.clone());
            }
            user.password = change.password.clone().unwrap_or(user.password);
            user.disabled = change.disabled.unwrap_or(user.disabled);
            // Sessions hold the stamp, so a session record that outlives the change is void.
            user.stamp = random()?;
            self.put(seen, KINDS.user, &user.id, &user)?;
            Ok(user)
        })
    }

    /// Removes a user and ends its sessions.
    ///
    /// # Errors
    /// [`Fault::Changed`] as for [`Registry::change_user`].
    pub fn remove_user(&self, user: &User) -> Result<(), Fault> {
        self.change(|seen| {
            unchanged(&self.now.load_full(), user)?;
            self.write(seen, vec![RecordChange::remove(record(KINDS.user, &user.id))])
        })
    }
}

/// Returns the current user if it is still the one that was seen, unchanged.
fn unchanged<'s>(state: &'s State, seen: &User) -> Result<&'s User, Fault> {
    let login = seen.login();
    let now = state.users.get(&login).ok_or_else(|| Fault::Absent("user", login.to_string()))?;
    if now.stamp == seen.stamp { Ok(now) } else { Err(Fault::Changed("user", login.to_string())) }
}

/// Returns a unique value of 16 hexadecimal digits.
fn random() -> Result<String, Fault> {
    secret::make("").map(|made| made.id).map_err(|e| Fault::Vault(e.to_string()))
}
