//! The quotas of a tenant, and the part of them that this server has.

use meridian_model::policy::part::Division;
use meridian_model::policy::quota::{Balances, Exceeded, Quota, Quotas};
use std::time::Duration;

/// The accounts of a ledger, under its lock.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// As they are set.
    pub(crate) whole: Quotas,
    /// The part of them that this server has.
    pub(crate) quotas: Quotas,
    pub(crate) division: Division,
    pub(crate) balances: Balances,
    /// Use over time since the start, by [`Quota`], while there are quotas.
    pub(crate) spent: [u64; Quota::ALL.len()],
    /// What was spent and refused when needs were said last, by [`Quota`].
    pub(crate) told: [u64; Quota::ALL.len()],
}

impl Accounts {
    /// The quotas or their division have changed.
    pub(crate) fn divide(&mut self, now: Duration) {
        // The old quotas apply up to now.
        self.balances.settle(&self.quotas, now);
        let mut quotas = self.whole.clone();
        for (quota, limit) in self.whole.iter() {
            // A part is above zero where the whole is, and so is no rate that is refused.
            let _ = quotas.set(quota, Some(self.division.part(quota, limit)));
        }
        self.quotas = quotas;
    }

    /// Charges use over time.
    pub(crate) fn charge(&mut self, quota: Quota, amount: u64, now: Duration) {
        self.balances.charge(&self.quotas, quota, amount, now);
        let spent = &mut self.spent[quota as usize];
        *spent = spent.saturating_add(amount);
    }

    /// The limit of a quota at this server, and at all together.
    pub(crate) fn limits(&self, quota: Quota) -> Option<(u64, u64)> {
        self.quotas.limit(quota).zip(self.whole.limit(quota))
    }
}

/// A refusal by the part of a quota that this server has, with the whole.
pub(crate) fn of_whole(exceeded: Exceeded, whole: &Quotas) -> Exceeded {
    Exceeded { whole: whole.limit(exceeded.quota).unwrap_or(exceeded.limit), ..exceeded }
}
