//! The tenants of a registry.

use super::registry::{Fault, KINDS, Known, Registry, State};
use super::{DEFAULT_TENANT, Tenant};
use crate::ledger::Ledger;
use meridian_model::Invalid;
use meridian_model::schema::validate_name;
use std::sync::Arc;

/// Max length of a tenant's name, in bytes: it is part of names of records.
const NAME_BYTES_MAX: usize = 100;
/// Max tenants of a server.
const TENANTS_MAX: usize = 10_000;

impl Registry {
    /// All tenants in order of name.
    pub fn tenants(&self) -> Vec<Tenant> {
        self.now.load().tenants.values().map(|member| member.tenant.clone()).collect()
    }

    /// A tenant's ledger.
    pub fn ledger(&self, name: &str) -> Option<Arc<Ledger>> {
        self.now.load().tenants.get(name).map(|member| member.ledger.clone())
    }

    /// The ledgers of all tenants.
    pub fn ledgers(&self) -> Vec<Arc<Ledger>> {
        self.now.load().tenants.values().map(|member| member.ledger.clone()).collect()
    }

    /// A tenant.
    pub fn tenant(&self, name: &str) -> Option<Tenant> {
        self.now.load().tenants.get(name).map(|member| member.tenant.clone())
    }

    /// Creates a tenant.
    pub fn create_tenant(&self, tenant: Tenant) -> Result<(), Fault> {
        validate_name("tenant", &tenant.name)?;
        if tenant.name.contains('.') {
            return Err(Invalid::field("tenant", "the name of a tenant has no dot").into());
        }
        if tenant.name.len() > NAME_BYTES_MAX {
            let detail = format!("a name of a tenant has at most {NAME_BYTES_MAX} characters");
            return Err(Invalid::field("tenant", detail).into());
        }
        let _changing = self.changing.lock();
        let state = self.now.load_full();
        if state.tenants.contains_key(&tenant.name) {
            return Err(Fault::Exists("tenant", tenant.name));
        }
        if state.tenants.len() >= TENANTS_MAX {
            return Err(Invalid::new(format!("there are {TENANTS_MAX} tenants, the limit")).into());
        }
        self.put_tenant(&state, tenant)
    }

    /// Changes a tenant; returns it as it is now.
    ///
    /// # Errors
    /// That of the change, or a fault of the records.
    pub fn change_tenant(
        &self,
        name: &str,
        change: impl FnOnce(&mut Tenant) -> Result<(), Invalid>,
    ) -> Result<Tenant, Fault> {
        let _changing = self.changing.lock();
        let state = self.now.load_full();
        let mut tenant =
            state.tenants.get(name).ok_or_else(|| Fault::Absent("tenant", name.to_owned()))?.tenant.clone();
        change(&mut tenant)?;
        self.put_tenant(&state, tenant.clone())?;
        if tenant.suspended {
            // Its streams end. A token that is used again after the suspension gets a new identity.
            self.renew_callers(name);
            self.issuers.end(name);
            self.end_sessions(|session| *session.caller().tenant == *name && !session.caller().is_operator());
        }
        Ok(tenant)
    }

    /// Forgets a tenant with its users and revokes its tokens. Its data must be gone before.
    pub fn remove_tenant(&self, name: &str) -> Result<(), Fault> {
        if name == DEFAULT_TENANT {
            return Err(Invalid::field("tenant", "the default tenant cannot be removed").into());
        }
        let _changing = self.changing.lock();
        let mut state = State::clone(&self.now.load());
        if !state.tenants.contains_key(name) {
            return Err(Fault::Absent("tenant", name.to_owned()));
        }
        let of_tenant = |known: &Arc<Known>| known.token.tenant == name;
        let revoked: Vec<Arc<Known>> = state.tokens.values().filter(|known| of_tenant(known)).cloned().collect();
        // The tenant's own record goes last: after a fault or a crash, the removal can be repeated.
        for known in &revoked {
            self.remove(KINDS.token, &known.token.id)?;
        }
        for user in state.users.values().filter(|user| user.tenant == name) {
            self.remove(KINDS.user, &user.id)?;
        }
        self.remove(KINDS.tenant, name)?;
        state.tokens.retain(|_, known| !of_tenant(known));
        state.users.retain(|_, user| user.tenant != name);
        if let Some(member) = state.tenants.remove(name) {
            // Also for operators who work in it.
            member.ledger.close();
        }
        self.now.store(Arc::new(state));
        revoked.iter().for_each(|known| known.caller.revoke());
        self.end_sessions(|session| *session.caller().tenant == *name);
        Ok(())
    }

    /// Writes a tenant and puts it in its place. The caller holds `changing`.
    fn put_tenant(&self, state: &State, tenant: Tenant) -> Result<(), Fault> {
        self.write(KINDS.tenant, &tenant.name, &tenant)?;
        let mut state = State::clone(state);
        state.enter(tenant);
        self.now.store(Arc::new(state));
        Ok(())
    }

    /// Voids the identities of a tenant's tokens, and gives the tokens new ones. The caller holds `changing`.
    fn renew_callers(&self, tenant: &str) {
        let mut state = State::clone(&self.now.load());
        let of_tenant: Vec<_> = state.tokens.values().filter(|known| known.token.tenant == tenant).cloned().collect();
        for known in of_tenant {
            if let Some(renewed) = state.known(known.token.clone()) {
                known.caller.revoke();
                state.tokens.insert(known.token.id.clone(), Arc::new(renewed));
            }
        }
        self.now.store(Arc::new(state));
    }
}
