//! The tenants, as seen by saved searches.

use meridian_admission::Ledger;
use std::sync::Arc;

/// Returns the ledger of a tenant; `None` if there is no such tenant.
pub type Ledgers = Arc<dyn Fn(&str) -> Option<Arc<Ledger>> + Send + Sync>;

/// Returns true if a tenant is suspended or gone: its polls and webhooks then pause.
pub(super) fn suspended(ledgers: &Ledgers, tenant: &str) -> bool {
    ledgers(tenant).is_none_or(|ledger| ledger.is_suspended())
}

/// Returns the ledger of a tenant; one without quotas if there is no such tenant.
pub(super) fn ledger_of(ledgers: &Ledgers, tenant: &str) -> Arc<Ledger> {
    ledgers(tenant).unwrap_or_else(|| Arc::new(Ledger::new(tenant)))
}
