//! The quotas of a tenant, and this server's share of them.

use meridian_model::policy::part::Division;
use meridian_model::policy::quota::{Balances, Exceeded, Quota, Quotas};
use std::time::Duration;

/// The accounts of a ledger, guarded by its lock.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// The tenant's quotas as configured.
    pub(crate) whole: Quotas,
    /// This server's share of the quotas.
    pub(crate) quotas: Quotas,
    pub(crate) division: Division,
    pub(crate) balances: Balances,
    /// Use of each rate quota since the start, indexed by [`Quota`]; counted only while there are quotas.
    pub(crate) spent: [u64; Quota::ALL.len()],
    /// Total spent and refused at the last report of needs, indexed by [`Quota`].
    pub(crate) told: [u64; Quota::ALL.len()],
}

impl Accounts {
    /// Recomputes this server's share after a change of the quotas or of their division.
    pub(crate) fn divide(&mut self, now: Duration) {
        // The old quotas apply up to now.
        self.balances.settle(&self.quotas, now);
        let mut quotas = self.whole.clone();
        for (quota, limit) in self.whole.iter() {
            // A share is nonzero whenever the quota is, so `set` never refuses a rate.
            let _ = quotas.set(quota, Some(self.division.part(quota, limit)));
        }
        self.quotas = quotas;
    }

    /// Charges a rate quota.
    pub(crate) fn charge(&mut self, quota: Quota, amount: u64, now: Duration) {
        self.balances.charge(&self.quotas, quota, amount, now);
        let spent = &mut self.spent[quota as usize];
        *spent = spent.saturating_add(amount);
    }

    /// Returns the limit of a quota at this server, and across all servers.
    pub(crate) fn limits(&self, quota: Quota) -> Option<(u64, u64)> {
        self.quotas.limit(quota).zip(self.whole.limit(quota))
    }
}

/// Completes a refusal by this server's share with the limit across all servers.
pub(crate) fn of_whole(exceeded: Exceeded, whole: &Quotas) -> Exceeded {
    Exceeded { whole: whole.limit(exceeded.quota).unwrap_or(exceeded.limit), ..exceeded }
}
