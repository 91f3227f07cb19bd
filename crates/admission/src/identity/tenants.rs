//! The tenants of a registry.

use super::fault::Fault;
use super::registry::{KINDS, Registry, record};
use super::{DEFAULT_TENANT, Tenant};
use crate::ledger::Ledger;
use meridian_model::schema::validate_name;
use meridian_model::{Invalid, RecordChange, naming};
use std::sync::Arc;

/// Max length of a tenant's name in bytes, since it is part of record names.
const NAME_BYTES_MAX: usize = 100;
/// Max tenants of a server.
const TENANTS_MAX: usize = 10_000;

impl Registry {
    /// Returns all tenants in order of name.
    pub fn tenants(&self) -> Vec<Tenant> {
        self.now.load().tenants.values().map(|member| member.tenant.clone()).collect()
    }

    /// Returns a tenant's ledger.
    pub fn ledger(&self, name: &str) -> Option<Arc<Ledger>> {
        self.now.load().tenants.get(name).map(|member| member.ledger.clone())
    }

    /// Returns the ledgers of all tenants.
    pub fn ledgers(&self) -> Vec<Arc<Ledger>> {
        self.now.load().tenants.values().map(|member| member.ledger.clone()).collect()
    }

    /// Returns a tenant.
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
        self.change(|seen| {
            let state = self.now.load();
            if state.tenants.contains_key(&tenant.name) {
                return Err(Fault::Exists("tenant", tenant.name.clone()));
            }
            naming::check("tenant", &tenant.name, state.tenants.keys().map(|name| &**name))?;
            if state.tenants.len() >= TENANTS_MAX {
                return Err(Invalid::new(format!("there are {TENANTS_MAX} tenants, the limit")).into());
            }
            self.put(seen, KINDS.tenant, &tenant.name, &tenant)
        })
    }

    /// Changes a tenant and returns its new state. If that suspends it, the work of its callers ends. `change` is
    /// called again if another process has changed the tenant meanwhile.
    ///
    /// # Errors
    /// That of the change, or a fault of the records.
    pub fn change_tenant(
        &self,
        name: &str,
        change: impl Fn(&mut Tenant) -> Result<(), Invalid>,
    ) -> Result<Tenant, Fault> {
        self.change(|seen| {
            let mut tenant = self.tenant(name).ok_or_else(|| Fault::Absent("tenant", name.to_owned()))?;
            change(&mut tenant)?;
            self.put(seen, KINDS.tenant, name, &tenant)?;
            Ok(tenant)
        })
    }

    /// Removes a suspended tenant with its users, and revokes its tokens. Its data must already be gone. `created`
    /// distinguishes it from a later tenant of the same name.
    ///
    /// # Errors
    /// [`Fault::Changed`] if it is not suspended, or if another tenant has the name.
    pub fn remove_tenant(&self, name: &str, created: i64) -> Result<(), Fault> {
        if name == DEFAULT_TENANT {
            return Err(Invalid::field("tenant", "the default tenant cannot be removed").into());
        }
        self.change(|seen| {
            let state = self.now.load_full();
            let member = state.tenants.get(name).ok_or_else(|| Fault::Absent("tenant", name.to_owned()))?;
            if member.tenant.created != created || !member.tenant.suspended {
                return Err(Fault::Changed("tenant", name.to_owned()));
            }
            let tokens = state.tokens.values().filter(|known| known.token.tenant == name);
            let tokens = tokens.map(|known| record(KINDS.token, &known.token.id));
            let users = state.users.values().filter(|user| user.tenant == name);
            let users = users.map(|user| record(KINDS.user, &user.id));
            // The tenant's own record goes last: in a folder, the removal can then be repeated after a fault or a
            // crash. Elsewhere the removal is atomic.
            let names = tokens.chain(users).chain([record(KINDS.tenant, name)]);
            self.write(seen, names.map(RecordChange::remove).collect())
        })
    }
}
