//! The ledger of a tenant: its weight and quotas, and what it uses.

use crate::pace::Pace;
use meridian_model::policy::admission::Refusal;
use meridian_model::policy::part::{Division, Needs};
use meridian_model::policy::quota::{Balances, Exceeded, Quota, Quotas};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The server's account of a tenant while it runs. A tenant has one ledger, which all its callers share.
#[derive(Debug)]
pub struct Ledger {
    tenant: Arc<str>,
    weight: AtomicU32,
    /// Whether its requests, polls and webhooks rest.
    suspended: AtomicBool,
    /// Set when the tenant is removed: remaining work for it ends.
    closed: AtomicBool,
    /// Whether there is a quota: work for tenants without one takes no lock.
    limited: AtomicBool,
    origin: Instant,
    accounts: Mutex<Accounts>,
    /// Its administrative acts.
    pace: Pace,
    /// Bytes of stored events, as they were last counted.
    stored: AtomicU64,
    /// Current use, by [`Quota`].
    held: [AtomicU64; Quota::ALL.len()],
    /// Nanoseconds of processor time, since the start.
    processor: AtomicU64,
    /// Use over time since the start, by [`Quota`], while there are quotas.
    spent: [AtomicU64; Quota::ALL.len()],
    /// Refusals since the start, by [`Quota`].
    refused: [AtomicU64; Quota::ALL.len()],
    /// Refusals of the gate since the start, by [`Refusal`].
    turned_away: [AtomicU64; Refusal::ALL.len()],
}

#[derive(Debug, Default)]
struct Accounts {
    /// As they are set.
    whole: Quotas,
    /// The part of them that this server has.
    quotas: Quotas,
    division: Division,
    balances: Balances,
    /// What was spent and refused when needs were said last, by [`Quota`].
    told: [u64; Quota::ALL.len()],
}

impl Accounts {
    /// The quotas or their division have changed.
    fn divide(&mut self, now: Duration) {
        // The old quotas apply up to now.
        self.balances.settle(&self.quotas, now);
        let mut quotas = self.whole.clone();
        for (quota, limit) in self.whole.iter() {
            // A part is above zero where the whole is, and so is no rate that is refused.
            let _ = quotas.set(quota, Some(self.division.part(quota, limit)));
        }
        self.quotas = quotas;
    }

    /// The limit of a quota at this server, and at all together.
    fn limits(&self, quota: Quota) -> Option<(u64, u64)> {
        self.quotas.limit(quota).zip(self.whole.limit(quota))
    }
}

/// A refusal by the part of a quota that this server has, with the whole.
fn of_whole(exceeded: Exceeded, whole: &Quotas) -> Exceeded {
    Exceeded { whole: whole.limit(exceeded.quota).unwrap_or(exceeded.limit), ..exceeded }
}

impl Ledger {
    /// The ledger of a tenant of weight 1 without quotas.
    pub fn new(tenant: &str) -> Ledger {
        Ledger {
            tenant: tenant.into(),
            weight: AtomicU32::new(1),
            suspended: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            limited: AtomicBool::new(false),
            origin: Instant::now(),
            accounts: Mutex::default(),
            pace: Pace::default(),
            stored: AtomicU64::new(0),
            held: Default::default(),
            processor: AtomicU64::new(0),
            spent: Default::default(),
            refused: Default::default(),
            turned_away: Default::default(),
        }
    }

    /// The tenant.
    pub fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// The pace of its administrative acts.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Its weight.
    pub fn weight(&self) -> u32 {
        self.weight.load(Ordering::Relaxed)
    }

    /// Sets weight and quotas from now on. Past use is kept.
    pub fn set(&self, weight: u32, quotas: &Quotas) {
        self.weight.store(weight, Ordering::Relaxed);
        let now = self.origin.elapsed();
        let mut accounts = self.accounts.lock();
        accounts.whole = quotas.clone();
        accounts.divide(now);
        // Relaxed: a concurrent request may still follow the old quotas.
        self.limited.store(!quotas.is_empty(), Ordering::Relaxed);
    }

    /// Whether there is a quota.
    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// Divides the quotas between this server and others, from now on. Past use is kept.
    pub fn divide(&self, division: Division) {
        let now = self.origin.elapsed();
        let mut accounts = self.accounts.lock();
        if accounts.division != division {
            accounts.division = division;
            accounts.divide(now);
        }
    }

    /// What is needed of the quotas: held now, and spent or refused since this was asked last.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        let accounts = &mut *self.accounts.lock();
        for (quota, _) in accounts.whole.iter().filter(|(quota, _)| quota.is_divided()) {
            // Of one refused it is not known how much it would have taken.
            let total = self.spent[quota as usize].load(Ordering::Relaxed).saturating_add(self.refused(quota));
            let before = std::mem::replace(&mut accounts.told[quota as usize], total);
            needs.add(quota, total.saturating_sub(before));
            if !quota.is_rate() {
                needs.add(quota, self.held(quota));
            }
        }
        needs
    }

    /// Sets whether its requests, polls and webhooks rest.
    pub fn set_suspended(&self, suspended: bool) {
        self.suspended.store(suspended, Ordering::Relaxed);
    }

    /// Whether its requests, polls and webhooks rest.
    pub fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// The tenant is removed.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether the tenant is removed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The limit of a quota; `None` if there is none.
    pub fn limit(&self, quota: Quota) -> Option<u64> {
        self.limits(quota).map(|(limit, _)| limit)
    }

    fn limits(&self, quota: Quota) -> Option<(u64, u64)> {
        if !self.limited.load(Ordering::Relaxed) {
            return None;
        }
        self.accounts.lock().limits(quota)
    }

    /// Admits a request: charges it, unless one of the quotas of use over time is used up. Returns its place among the
    /// requests at a time.
    ///
    /// # Errors
    /// The quota that is used up; of several, the one that recovers last.
    pub fn enter(self: &Arc<Ledger>, quotas: &[Quota]) -> Result<Option<Held>, Exceeded> {
        if !self.limited.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let now = self.origin.elapsed();
        let accounts = &mut *self.accounts.lock();
        // Held before the rates are checked: a refusal below drops the place again.
        let place = self.hold_below(Quota::ConcurrentRequests, || accounts.limits(Quota::ConcurrentRequests))?;
        let Accounts { quotas: limits, whole, balances, .. } = accounts;
        let rates = [Quota::RequestsPerSecond]
            .iter()
            .chain(quotas)
            .filter_map(|quota| balances.check(limits, *quota, now).err());
        if let Some(exceeded) = rates.max_by_key(|exceeded| exceeded.wait) {
            return Err(self.refuse(of_whole(exceeded, whole)));
        }
        // After the checks: a refused request costs nothing, so retries do not prolong the wait.
        balances.charge(limits, Quota::RequestsPerSecond, 1, now);
        self.spent[Quota::RequestsPerSecond as usize].fetch_add(1, Ordering::Relaxed);
        Ok(Some(place))
    }

    /// Whether the tenant may write events now.
    ///
    /// # Errors
    /// The quota that is used up.
    pub fn check_write(&self) -> Result<(), Exceeded> {
        if !self.limited.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Before the rate: a full tenant would wait in vain.
        self.within(Quota::StoredBytes, || self.stored())?;
        let Accounts { quotas, whole, balances, .. } = &mut *self.accounts.lock();
        let checked = balances.check(quotas, Quota::EventsPerSecond, self.origin.elapsed());
        checked.map_err(|exceeded| self.refuse(of_whole(exceeded, whole)))
    }

    /// Charges use over time.
    pub fn charge(&self, quota: Quota, amount: u64) {
        if self.limited.load(Ordering::Relaxed) {
            let now = self.origin.elapsed();
            let Accounts { quotas, balances, .. } = &mut *self.accounts.lock();
            balances.charge(quotas, quota, amount, now);
            self.spent[quota as usize].fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Takes a place of a quota of current use.
    ///
    /// # Errors
    /// The quota, if all its places are taken.
    pub fn hold(self: &Arc<Ledger>, quota: Quota) -> Result<Held, Exceeded> {
        self.hold_below(quota, || self.limits(quota))
    }

    fn hold_below(
        self: &Arc<Ledger>,
        quota: Quota,
        limits: impl FnOnce() -> Option<(u64, u64)>,
    ) -> Result<Held, Exceeded> {
        // Also without a limit: a limit that is set later counts the places already held.
        let before = self.held[quota as usize].fetch_add(1, Ordering::AcqRel);
        let held = Held { ledger: self.clone(), quota };
        // Counted first and checked after: two concurrent calls never both take the last place.
        match limits().filter(|(limit, _)| before >= *limit) {
            None => Ok(held),
            Some((limit, whole)) => Err(self.refuse(Exceeded { quota, limit, whole, wait: None })),
        }
    }

    /// Checks an amount that the caller supplies, such as stored bytes.
    ///
    /// # Errors
    /// The quota, if the amount reaches it.
    pub fn within(&self, quota: Quota, amount: impl FnOnce() -> u64) -> Result<(), Exceeded> {
        match self.limits(quota).filter(|(limit, _)| amount() >= *limit) {
            None => Ok(()),
            Some((limit, whole)) => Err(self.refuse(Exceeded { quota, limit, whole, wait: None })),
        }
    }

    /// Bytes of stored events, as they were last counted, and those written since.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Sets the bytes of stored events.
    pub fn set_stored(&self, bytes: u64) {
        self.stored.store(bytes, Ordering::Relaxed);
    }

    /// Charges a write.
    pub fn charge_write(&self, events: u64, bytes: u64) {
        self.charge(Quota::EventsPerSecond, events);
        // Added until the next count, so that a burst does not exceed the quota by much.
        self.stored.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Processor time used since the start.
    pub fn processor_time(&self) -> Duration {
        Duration::from_nanos(self.processor.load(Ordering::Relaxed))
    }

    pub(crate) fn add_processor_time(&self, used: Duration) {
        self.processor.fetch_add(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Refusals since the start.
    pub fn refused(&self, quota: Quota) -> u64 {
        self.refused[quota as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn count_refusal(&self, quota: Quota) {
        self.refused[quota as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn refuse(&self, exceeded: Exceeded) -> Exceeded {
        self.count_refusal(exceeded.quota);
        exceeded
    }

    /// Refusals of the gate since the start.
    pub fn turned_away(&self, refusal: Refusal) -> u64 {
        self.turned_away[refusal as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn turn_away(&self, refusal: Refusal) {
        self.turned_away[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Places held of a quota of current use.
    pub fn held(&self, quota: Quota) -> u64 {
        self.held[quota as usize].load(Ordering::Relaxed)
    }

    /// Each quota that is set, its limit, and its use: current, stored, or the debt of a quota by the second. `None` if
    /// that is unknown.
    pub fn used(&self) -> Vec<(Quota, u64, Option<u64>)> {
        let now = self.origin.elapsed();
        let Accounts { quotas, balances, .. } = &mut *self.accounts.lock();
        balances.settle(quotas, now);
        let used = |quota: Quota| match quota {
            Quota::StoredBytes => Some(self.stored()),
            Quota::ConcurrentRequests | Quota::Searches | Quota::Streams => Some(self.held(quota)),
            _ => balances.used(quota),
        };
        quotas.iter().map(|(quota, limit)| (quota, limit, used(quota))).collect()
    }
}

/// A place of a quota of current use, released when dropped.
#[derive(Debug)]
pub struct Held {
    ledger: Arc<Ledger>,
    quota: Quota,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ledger.held[self.quota as usize].fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(limits: &[(Quota, u64)]) -> Arc<Ledger> {
        let (ledger, mut quotas) = (Arc::new(Ledger::new("harbour")), Quotas::default());
        for (quota, limit) in limits {
            quotas.set(*quota, Some(*limit)).unwrap();
        }
        ledger.set(2, &quotas);
        ledger
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_admitted_at_their_rate() {
        let ledger = ledger(&[(Quota::RequestsPerSecond, 3)]);
        for _ in 0..3 {
            ledger.enter(&[]).unwrap();
        }
        let refused = ledger.enter(&[]).unwrap_err();
        assert_eq!((refused.quota, ledger.refused(Quota::RequestsPerSecond)), (Quota::RequestsPerSecond, 1));
        tokio::time::advance(refused.wait.unwrap()).await;
        ledger.enter(&[]).unwrap();
        ledger.enter(&[]).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_debt_refuses_only_what_it_concerns() {
        let ledger = ledger(&[(Quota::EventsPerSecond, 100), (Quota::ScannedBytesPerSecond, 10)]);
        ledger.charge(Quota::EventsPerSecond, 400);
        ledger.enter(&[Quota::ScannedBytesPerSecond]).unwrap();
        ledger.charge(Quota::ScannedBytesPerSecond, 100);
        // Of two debts, the one that lasts longer.
        let both = [Quota::EventsPerSecond, Quota::ScannedBytesPerSecond];
        assert_eq!(ledger.enter(&both).unwrap_err().quota, Quota::ScannedBytesPerSecond);
        assert_eq!(ledger.enter(&both[..1]).unwrap_err().quota, Quota::EventsPerSecond);
        tokio::time::advance(Duration::from_secs(4)).await;
        ledger.enter(&both[..1]).unwrap();
        ledger.enter(&both).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_has_a_part_by_what_it_needs() {
        let ledger = ledger(&[(Quota::RequestsPerSecond, 80), (Quota::Searches, 8), (Quota::StoredBytes, 100)]);
        for _ in 0..60 {
            ledger.enter(&[]).unwrap();
        }
        let (_one, _two) = (ledger.hold(Quota::Searches).unwrap(), ledger.hold(Quota::Searches).unwrap());
        let mine = ledger.needs();
        let need = |needs: &Needs| {
            (needs.of(Quota::RequestsPerSecond), needs.of(Quota::Searches), needs.of(Quota::StoredBytes))
        };
        assert_eq!(need(&mine), (60, 2, 0));
        let mut other = Needs::default();
        other.add(Quota::RequestsPerSecond, 20);
        ledger.divide(Division::among(&mine, [Some(&other)]));
        let limits = [Quota::RequestsPerSecond, Quota::Searches, Quota::StoredBytes].map(|quota| ledger.limit(quota));
        assert_eq!(limits, [Some(55), Some(7), Some(100)]);
        // More than its part was used: the rest is refused, and needed all the same.
        let refused = ledger.enter(&[]).unwrap_err();
        assert_eq!((refused.limit, refused.whole), (55, 80));
        let said = refused.to_string();
        assert!(said.contains("part of 55") && said.contains("of 80"), "{said}");
        assert_eq!(need(&ledger.needs()), (1, 2, 0), "since the last time");
        // A change of the quota is divided as well, and alone the server has all of it.
        let mut quotas = Quotas::default();
        quotas.set(Quota::RequestsPerSecond, Some(800)).unwrap();
        ledger.set(1, &quotas);
        assert_eq!(ledger.limit(Quota::RequestsPerSecond), Some(550));
        ledger.divide(Division::default());
        assert_eq!((ledger.limit(Quota::RequestsPerSecond), ledger.limit(Quota::Searches)), (Some(800), None));
    }

    #[tokio::test]
    async fn places_at_a_time_come_back_and_a_lifted_quota_admits_all() {
        let ledger = ledger(&[(Quota::ConcurrentRequests, 2), (Quota::Searches, 0), (Quota::StoredBytes, 10)]);
        let first = ledger.enter(&[]).unwrap();
        let _second = ledger.enter(&[]).unwrap();
        assert_eq!(ledger.enter(&[]).unwrap_err().wait, None);
        drop(first);
        let _third = ledger.enter(&[]).unwrap();
        ledger.enter(&[]).unwrap_err();
        assert_eq!(ledger.hold(Quota::Searches).unwrap_err().limit, 0);
        ledger.within(Quota::StoredBytes, || 9).unwrap();
        ledger.within(Quota::StoredBytes, || 10).unwrap_err();
        ledger.set(1, &Quotas::default());
        ledger.enter(&[]).unwrap();
        ledger.hold(Quota::Searches).unwrap();
        ledger.within(Quota::StoredBytes, || unreachable!("nobody asks")).unwrap();
    }
}
