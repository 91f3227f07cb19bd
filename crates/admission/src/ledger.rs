//! The ledger of a tenant: its weight, its quotas and its use.

use crate::accounts::{Accounts, of_whole};
use crate::pace::Pace;
use meridian_model::policy::admission::Refusal;
use meridian_model::policy::part::{Division, Needs};
use meridian_model::policy::quota::{Exceeded, Quota, Quotas};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The server's account of a tenant at run time. Each tenant has one ledger, shared by all its callers.
#[derive(Debug)]
pub struct Ledger {
    tenant: Arc<str>,
    weight: AtomicU32,
    /// Whether its requests, polls and webhooks are paused.
    suspended: AtomicBool,
    /// Set when the tenant is removed; remaining work for it ends.
    closed: AtomicBool,
    /// Whether there is any quota; work for tenants without one takes no lock.
    limited: AtomicBool,
    origin: Instant,
    accounts: Mutex<Accounts>,
    /// Rate limit of its administrative acts but those on credentials.
    pace: Pace,
    /// Rate limit of its acts on tokens and users.
    credential_pace: Pace,
    /// Bytes of stored events: the last count plus writes since.
    stored: AtomicU64,
    /// Places held now, indexed by [`Quota`].
    held: [AtomicU64; Quota::ALL.len()],
    /// Of these, those of [`Share::Half`].
    held_of_half: [AtomicU64; Quota::ALL.len()],
    /// Nanoseconds of processor time used since the start.
    processor: AtomicU64,
    /// Refusals since the start, indexed by [`Quota`].
    refused: [AtomicU64; Quota::ALL.len()],
    /// Refusals by the gate since the start, indexed by [`Refusal`].
    turned_away: [AtomicU64; Refusal::ALL.len()],
}

/// How many of the places of a quota on concurrent use its callers may hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// All of them.
    Whole,
    /// Half of them, rounded down: callers without a credential leave the rest to the others.
    Half,
}

impl Share {
    fn of(self, limit: u64) -> u64 {
        match self {
            Share::Whole => limit,
            Share::Half => limit / 2,
        }
    }
}

impl Ledger {
    /// Creates the ledger of a tenant with weight 1 and no quotas.
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
            credential_pace: Pace::default(),
            stored: AtomicU64::new(0),
            held: Default::default(),
            held_of_half: Default::default(),
            processor: AtomicU64::new(0),
            refused: Default::default(),
            turned_away: Default::default(),
        }
    }

    /// Returns the tenant.
    pub fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// Returns the rate limit of its administrative acts but those on credentials.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns the rate limit of its acts on tokens and users, which a token that floods collections leaves.
    pub fn credential_pace(&self) -> &Pace {
        &self.credential_pace
    }

    /// Returns its weight.
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

    /// Returns whether there is any quota.
    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// Divides the quotas between this server and others from now on. Past use is kept.
    pub fn divide(&self, division: Division) {
        let now = self.origin.elapsed();
        let mut accounts = self.accounts.lock();
        if accounts.division != division {
            accounts.division = division;
            accounts.divide(now);
        }
    }

    /// Returns how much of each quota is needed: places held now, and amounts spent or refused since the last call.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        let accounts = &mut *self.accounts.lock();
        for (quota, _) in accounts.whole.iter().filter(|(quota, _)| quota.is_divided()) {
            // A refused request counts as one, since its amount is unknown.
            let total = accounts.spent[quota as usize].saturating_add(self.refused(quota));
            let before = std::mem::replace(&mut accounts.told[quota as usize], total);
            needs.add(quota, total.saturating_sub(before));
            if !quota.is_rate() {
                needs.add(quota, self.held(quota));
            }
        }
        needs
    }

    /// Sets whether its requests, polls and webhooks are paused.
    pub fn set_suspended(&self, suspended: bool) {
        self.suspended.store(suspended, Ordering::Relaxed);
    }

    /// Returns whether its requests, polls and webhooks are paused.
    pub fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// Marks the tenant as removed.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the tenant is removed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns the limit of a quota; `None` if there is none.
    pub fn limit(&self, quota: Quota) -> Option<u64> {
        self.limits(quota).map(|(limit, _)| limit)
    }

    fn limits(&self, quota: Quota) -> Option<(u64, u64)> {
        if !self.limited.load(Ordering::Relaxed) {
            return None;
        }
        self.accounts.lock().limits(quota)
    }

    /// Admits a request that arrived at the given time, and charges it, unless a rate quota is used up. Returns its
    /// place among the concurrent requests.
    ///
    /// # Errors
    /// The quota that is used up; if there are several, the one that recovers last.
    pub fn enter(
        self: &Arc<Ledger>,
        quotas: &[Quota],
        share: Share,
        at: Instant,
    ) -> Result<Option<RequestPermit<'_>>, Exceeded> {
        if !self.limited.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let now = at - self.origin;
        let accounts = &mut *self.accounts.lock();
        // Taken before the rates are checked; a refusal below drops the place again.
        self.hold_below(Quota::ConcurrentRequests, share, || accounts.limits(Quota::ConcurrentRequests))?;
        let place = RequestPermit { ledger: self, share, now };
        let Accounts { quotas: limits, whole, balances, .. } = accounts;
        let rates = [Quota::RequestsPerSecond]
            .iter()
            .chain(quotas)
            .filter_map(|quota| balances.check(limits, *quota, now).err());
        if let Some(exceeded) = rates.max_by_key(|exceeded| exceeded.wait) {
            return Err(self.refuse(of_whole(exceeded, whole)));
        }
        // After the checks: a refused request costs nothing, so retries do not prolong the wait.
        accounts.charge(Quota::RequestsPerSecond, 1, now);
        Ok(Some(place))
    }

    /// Checks whether the tenant may write events now.
    ///
    /// # Errors
    /// The quota that is used up.
    pub fn check_write(&self) -> Result<(), Exceeded> {
        if !self.limited.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Before the rate: for a full tenant, waiting would not help.
        self.within(Quota::StoredBytes, || self.stored())?;
        let Accounts { quotas, whole, balances, .. } = &mut *self.accounts.lock();
        let checked = balances.check(quotas, Quota::EventsPerSecond, self.origin.elapsed());
        checked.map_err(|exceeded| self.refuse(of_whole(exceeded, whole)))
    }

    /// Charges a rate quota.
    pub fn charge(&self, quota: Quota, amount: u64) {
        if self.limited.load(Ordering::Relaxed) {
            let now = self.origin.elapsed();
            self.accounts.lock().charge(quota, amount, now);
        }
    }

    /// Takes a place of a quota on concurrent use.
    ///
    /// # Errors
    /// The quota, if all its places are taken, or all of the share.
    pub fn hold(self: &Arc<Ledger>, quota: Quota, share: Share) -> Result<QuotaPermit, Exceeded> {
        self.hold_below(quota, share, || self.limits(quota))?;
        Ok(QuotaPermit { ledger: self.clone(), quota, share })
    }

    /// Takes a place, which the caller must give back.
    fn hold_below(
        &self,
        quota: Quota,
        share: Share,
        limits: impl FnOnce() -> Option<(u64, u64)>,
    ) -> Result<(), Exceeded> {
        // Counted even without a limit, so that a limit set later includes the places already held.
        let before = self.held[quota as usize].fetch_add(1, Ordering::AcqRel);
        let before_in_half = match share {
            Share::Whole => 0,
            Share::Half => self.held_of_half[quota as usize].fetch_add(1, Ordering::AcqRel),
        };
        // Counted before the check, so that two concurrent calls never both take the last place.
        match limits().filter(|(limit, _)| before >= *limit || before_in_half >= share.of(*limit)) {
            None => Ok(()),
            Some((limit, whole)) => {
                self.give_back(quota, share);
                Err(self.refuse(Exceeded { quota, limit: share.of(limit), whole, wait: None }))
            }
        }
    }

    fn give_back(&self, quota: Quota, share: Share) {
        self.held[quota as usize].fetch_sub(1, Ordering::AcqRel);
        if share == Share::Half {
            self.held_of_half[quota as usize].fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Checks an amount supplied by the caller, such as stored bytes.
    ///
    /// # Errors
    /// The quota, if the amount reaches it.
    pub fn within(&self, quota: Quota, amount: impl FnOnce() -> u64) -> Result<(), Exceeded> {
        match self.limits(quota).filter(|(limit, _)| amount() >= *limit) {
            None => Ok(()),
            Some((limit, whole)) => Err(self.refuse(Exceeded { quota, limit, whole, wait: None })),
        }
    }

    /// Returns the bytes of stored events: the last count plus writes since.
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
        // Added until the next count, so that a burst exceeds the quota only slightly.
        self.stored.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the processor time used since the start.
    pub fn processor_time(&self) -> Duration {
        Duration::from_nanos(self.processor.load(Ordering::Relaxed))
    }

    pub(crate) fn add_processor_time(&self, used: Duration) {
        self.processor.fetch_add(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the refusals by a quota since the start.
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

    /// Returns the refusals by the gate since the start.
    pub fn turned_away(&self, refusal: Refusal) -> u64 {
        self.turned_away[refusal as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn turn_away(&self, refusal: Refusal) {
        self.turned_away[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the places held of a quota on concurrent use.
    pub fn held(&self, quota: Quota) -> u64 {
        self.held[quota as usize].load(Ordering::Relaxed)
    }

    /// Returns each quota that is set, with its limit and its use: places held, bytes stored, or the debt of a rate
    /// quota. The use is `None` if unknown.
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

/// A place of a quota on concurrent use, released when dropped.
#[derive(Debug)]
pub struct QuotaPermit {
    ledger: Arc<Ledger>,
    quota: Quota,
    share: Share,
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.ledger.give_back(self.quota, self.share);
    }
}

/// A request's place among the concurrent ones, released when dropped. It borrows the ledger, because all threads
/// contend on its reference count.
#[derive(Debug)]
pub struct RequestPermit<'a> {
    ledger: &'a Arc<Ledger>,
    share: Share,
    /// When the request arrived, since the ledger's origin.
    now: Duration,
}

impl RequestPermit<'_> {
    /// Charges a rate quota, as of the arrival of the request.
    pub fn charge(&self, quota: Quota, amount: u64) {
        self.ledger.accounts.lock().charge(quota, amount, self.now);
    }

    /// Converts it to an owned place, which can outlive the borrow.
    pub fn keep(self) -> QuotaPermit {
        let (ledger, share) = (self.ledger.clone(), self.share);
        let held = QuotaPermit { ledger, quota: Quota::ConcurrentRequests, share };
        // `held` gives the place back instead.
        std::mem::forget(self);
        held
    }
}

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        self.ledger.give_back(Quota::ConcurrentRequests, self.share);
    }
}

#[cfg(test)]
mod tests;
