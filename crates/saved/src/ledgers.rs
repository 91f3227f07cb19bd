//! The tenants, as saved searches know them.

use meridian_admission::Ledger;
use std::sync::Arc;

/// The ledger of a tenant; `None` where there is no such tenant.
pub type Ledgers = Arc<dyn Fn(&str) -> Option<Arc<Ledger>> + Send + Sync>;

/// Whether a tenant is suspended, or gone: its polls and webhooks then pause.
pub(super) fn suspended(ledgers: &Ledgers, tenant: &str) -> bool {
    ledgers(tenant).is_none_or(|ledger| ledger.is_suspended())
}

/// The ledger of a tenant; one without quotas where there is no such tenant.
pub(super) fn ledger_of(ledgers: &Ledgers, tenant: &str) -> Arc<Ledger> {
    ledgers(tenant).unwrap_or_else(|| Arc::new(Ledger::new(tenant)))
}
