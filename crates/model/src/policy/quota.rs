//! Quotas of a tenant: limits on what it uses a second, at a time, and in all.
//!
//! Use over time is charged after the fact, as its amount is only known then. A query is admitted while the tenant's
//! balance is above zero, and may overdraw it. The balance grows by the quota each second, up to one second's worth.
//! So no request is too large for a quota, and the quota holds exactly over time. (A token bucket that may be
//! overdrawn; compare the generic cell rate algorithm, ITU-T I.371.)

use crate::Invalid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A resource limited by a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quota {
    /// Requests a second.
    RequestsPerSecond,
    /// Events written a second.
    EventsPerSecond,
    /// Bytes of events a second that queries read.
    ScannedBytesPerSecond,
    /// Bytes of responses a second.
    ResultBytesPerSecond,
    /// Requests at a time, up to the end of their responses.
    ConcurrentRequests,
    /// Bytes of events that one query reads.
    ScannedBytesPerRequest,
    /// Federated searches at a time.
    Searches,
    /// Open streams of events at a time.
    Streams,
    /// Saved searches in all.
    SavedSearches,
    /// Bytes of stored events in all.
    StoredBytes,
}

/// Quotas of use over time: the first of [`Quota::ALL`].
const RATES: usize = 4;

impl Quota {
    /// Every quota; quotas of use over time first.
    pub const ALL: [Quota; 10] = [
        Quota::RequestsPerSecond,
        Quota::EventsPerSecond,
        Quota::ScannedBytesPerSecond,
        Quota::ResultBytesPerSecond,
        Quota::ConcurrentRequests,
        Quota::ScannedBytesPerRequest,
        Quota::Searches,
        Quota::Streams,
        Quota::SavedSearches,
        Quota::StoredBytes,
    ];

    /// Its name in JSON, on the command line and in refusals.
    pub const fn name(self) -> &'static str {
        match self {
            Quota::RequestsPerSecond => "requests_per_second",
            Quota::EventsPerSecond => "events_per_second",
            Quota::ScannedBytesPerSecond => "scanned_bytes_per_second",
            Quota::ResultBytesPerSecond => "result_bytes_per_second",
            Quota::ConcurrentRequests => "concurrent_requests",
            Quota::ScannedBytesPerRequest => "scanned_bytes_per_request",
            Quota::Searches => "searches",
            Quota::Streams => "streams",
            Quota::SavedSearches => "saved_searches",
            Quota::StoredBytes => "stored_bytes",
        }
    }

    /// Whether it counts bytes.
    pub const fn is_of_bytes(self) -> bool {
        matches!(
            self,
            Quota::ScannedBytesPerSecond
                | Quota::ResultBytesPerSecond
                | Quota::ScannedBytesPerRequest
                | Quota::StoredBytes
        )
    }

    /// Whether it is divided among the servers of a cluster, as each counts on its own. Bytes read by one query
    /// concern a single server, and every server counts the same stored data.
    pub const fn is_divided(self) -> bool {
        self.is_rate() || matches!(self, Quota::ConcurrentRequests | Quota::Searches | Quota::Streams)
    }

    /// Whether it limits use over time.
    pub const fn is_rate(self) -> bool {
        (self as usize) < RATES
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Quota {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Quota, Invalid> {
        Quota::ALL.into_iter().find(|quota| quota.name() == text).ok_or_else(|| {
            let names = Quota::ALL.map(Quota::name).join(", ");
            Invalid::field("quotas", format_args!("{text:?} is not a quota: expected one of {names}"))
        })
    }
}

/// The quotas of a tenant; an absent quota has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quotas(BTreeMap<Quota, u64>);

impl Quotas {
    /// The limit; `None` if there is none.
    pub fn limit(&self, quota: Quota) -> Option<u64> {
        self.0.get(&quota).copied()
    }

    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The limits that are set.
    pub fn iter(&self) -> impl Iterator<Item = (Quota, u64)> {
        self.0.iter().map(|(quota, limit)| (*quota, *limit))
    }

    /// Sets a limit, or lifts it.
    ///
    /// # Errors
    /// A rate of zero, under which no balance would ever grow; suspend the tenant instead.
    pub fn set(&mut self, quota: Quota, limit: Option<u64>) -> Result<(), Invalid> {
        match limit {
            // A rate of 0 would have no time after which to retry.
            Some(0) if quota.is_rate() => {
                Err(Invalid::field("quotas", format_args!("{quota}: expected at least 1, or null for no limit")))
            }
            Some(limit) => {
                self.0.insert(quota, limit);
                Ok(())
            }
            None => {
                self.0.remove(&quota);
                Ok(())
            }
        }
    }
}

/// A used-up quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Which one.
    pub quota: Quota,
    /// Its limit at this server.
    pub limit: u64,
    /// Its limit over all servers together, of which `limit` is a part.
    pub whole: u64,
    /// When there is room again; `None` if that does not come with time.
    pub wait: Option<Duration>,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exceeded { quota, limit, whole, .. } = self;
        match limit == whole {
            true => write!(f, "the tenant's quota {quota} of {limit} is used up"),
            // The part of this server, or that of callers without a credential.
            false => write!(f, "the available part of {limit} of the tenant's quota {quota} of {whole} is used up"),
        }
    }
}

/// The balances of a tenant.
#[derive(Debug, Default)]
pub struct Balances([Balance; RATES]);

#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    /// Use not yet paid off by the passage of time; above the limit, the balance is below zero.
    used: f64,
    /// Time of the last update.
    at: Duration,
}

impl Balance {
    /// Advances time. A clock that stands still or goes back changes nothing.
    fn settle(&mut self, limit: u64, now: Duration) {
        let passed = now.saturating_sub(self.at);
        self.used = (self.used - passed.as_secs_f64() * limit as f64).max(0.0);
        self.at = self.at.max(now);
    }
}

impl Balances {
    /// Checks that the balance of a quota is above zero.
    ///
    /// # Errors
    /// The used-up quota, with the time at which the balance will be above zero.
    pub fn check(&mut self, quotas: &Quotas, quota: Quota, now: Duration) -> Result<(), Exceeded> {
        let (Some(limit), Some(balance)) = (quotas.limit(quota), self.0.get_mut(quota as usize)) else {
            return Ok(());
        };
        balance.settle(limit, now);
        // Up to one second's worth may be used at once: the balance starts full.
        let over = balance.used - limit as f64;
        if over < 0.0 {
            return Ok(());
        }
        // A caller that comes back after this is admitted. At the limit itself the balance is zero, so a moment is
        // added.
        let wait = Duration::try_from_secs_f64(over / limit as f64).unwrap_or(Duration::MAX);
        Err(Exceeded { quota, limit, whole: limit, wait: Some(wait.saturating_add(Duration::from_millis(1))) })
    }

    /// Advances time under the current quotas before others apply: debt paid off by then is not owed under the new
    /// ones.
    pub fn settle(&mut self, quotas: &Quotas, now: Duration) {
        for (balance, quota) in self.0.iter_mut().zip(Quota::ALL) {
            match quotas.limit(quota) {
                Some(limit) => balance.settle(limit, now),
                // Without a limit nothing is owed. A debt kept here would come back with the next limit.
                None => *balance = Balance { used: 0.0, at: now },
            }
        }
    }

    /// The unpaid use of a per-second quota; `None` for other quotas.
    pub fn used(&self, quota: Quota) -> Option<u64> {
        self.0.get(quota as usize).map(|balance| balance.used as u64)
    }

    /// Charges use.
    pub fn charge(&mut self, quotas: &Quotas, quota: Quota, amount: u64, now: Duration) {
        let (Some(limit), Some(balance)) = (quotas.limit(quota), self.0.get_mut(quota as usize)) else { return };
        balance.settle(limit, now);
        // A float holds whole numbers exactly up to 2^53: 9 petabytes before a byte is lost.
        balance.used += amount as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quotas(limit: u64) -> Quotas {
        let mut quotas = Quotas::default();
        quotas.set(Quota::EventsPerSecond, Some(limit)).unwrap();
        quotas
    }

    #[test]
    fn names_stand_for_their_quotas() {
        for (at, quota) in Quota::ALL.into_iter().enumerate() {
            assert_eq!(quota as usize, at);
            assert_eq!(quota.name().parse::<Quota>().unwrap(), quota);
            assert_eq!(serde_json::to_value(quota).unwrap(), quota.name());
            assert_eq!(quota.is_rate(), quota.name().ends_with("_per_second"));
            assert_eq!(quota.is_of_bytes(), quota.name().contains("bytes"));
        }
        assert!("requests".parse::<Quota>().unwrap_err().to_string().contains("requests_per_second"));
        let read: Quotas = serde_json::from_str(r#"{"searches":3}"#).unwrap();
        assert_eq!((read.limit(Quota::Searches), read.limit(Quota::Streams)), (Some(3), None));
        assert!(serde_json::from_str::<Quotas>(r#"{"searchs":3}"#).is_err());
    }

    #[test]
    fn a_rate_of_zero_is_refused_and_null_lifts_a_limit() {
        let mut quotas = quotas(5);
        assert!(quotas.set(Quota::EventsPerSecond, Some(0)).is_err());
        quotas.set(Quota::Searches, Some(0)).unwrap();
        quotas.set(Quota::EventsPerSecond, None).unwrap();
        assert_eq!(quotas.iter().collect::<Vec<_>>(), [(Quota::Searches, 0)]);
    }

    #[test]
    fn one_large_amount_is_admitted_and_paid_for_by_waiting() {
        let (quotas, mut balances) = (quotas(100), Balances::default());
        balances.check(&quotas, Quota::EventsPerSecond, Duration::ZERO).unwrap();
        balances.charge(&quotas, Quota::EventsPerSecond, 1_000, Duration::ZERO);
        let refused = balances.check(&quotas, Quota::EventsPerSecond, Duration::from_secs(2)).unwrap_err();
        assert_eq!((refused.quota, refused.limit), (Quota::EventsPerSecond, 100));
        assert_eq!(refused.wait.unwrap().as_secs(), 7);
        // A higher limit pays the debt sooner.
        let higher = self::quotas(1_000);
        assert!(balances.check(&higher, Quota::EventsPerSecond, Duration::from_secs(3)).is_ok());
        assert!(balances.check(&quotas, Quota::SavedSearches, Duration::ZERO).is_ok(), "no rate");
        let mut balances = Balances::default();
        balances.charge(&quotas, Quota::EventsPerSecond, 100, Duration::ZERO);
        assert!(balances.check(&quotas, Quota::EventsPerSecond, Duration::ZERO).is_err(), "a balance of zero");
    }

    #[test]
    fn a_change_of_quotas_revives_no_debt() {
        let (high, low, mut balances) = (quotas(1_000), quotas(10), Balances::default());
        balances.charge(&high, Quota::EventsPerSecond, 5_000, Duration::ZERO);
        balances.settle(&high, Duration::from_secs(4));
        assert_eq!(balances.check(&low, Quota::EventsPerSecond, Duration::from_secs(4)).unwrap_err().limit, 10);
        let mut balances = Balances::default();
        balances.charge(&high, Quota::EventsPerSecond, 5_000, Duration::ZERO);
        balances.settle(&high, Duration::from_secs(6));
        assert!(balances.check(&low, Quota::EventsPerSecond, Duration::from_secs(6)).is_ok());
        balances.charge(&low, Quota::EventsPerSecond, 50, Duration::from_secs(6));
        balances.settle(&Quotas::default(), Duration::from_secs(6));
        assert!(balances.check(&low, Quota::EventsPerSecond, Duration::from_secs(6)).is_ok(), "it was lifted");
    }

    proptest! {
        /// Over any stretch of time no more is admitted than the quota, one second's worth, and the last amount. A
        /// refused amount is admitted after the wait in its refusal.
        #[test]
        fn the_quota_holds_over_time(
            limit in 1..500u64,
            steps in prop::collection::vec((0..2_000u64, 1..400u64), 1..80),
        ) {
            let (quotas, mut balances) = (quotas(limit), Balances::default());
            let (mut now, mut admitted): (Duration, Vec<(Duration, u64)>) = (Duration::ZERO, Vec::new());
            for (gap, amount) in steps {
                now += Duration::from_millis(gap);
                if let Err(refused) = balances.check(&quotas, Quota::EventsPerSecond, now) {
                    let wait = refused.wait.unwrap();
                    prop_assert!(wait > Duration::ZERO);
                    if gap % 2 == 0 {
                        continue;
                    }
                    now += wait;
                    prop_assert!(balances.check(&quotas, Quota::EventsPerSecond, now).is_ok());
                }
                balances.charge(&quotas, Quota::EventsPerSecond, amount, now);
                admitted.push((now, amount));
            }
            for first in 0..admitted.len() {
                let mut sum = 0;
                for (at, amount) in &admitted[first..] {
                    sum += amount;
                    let passed = (*at - admitted[first].0).as_secs_f64();
                    prop_assert!((sum - amount) as f64 <= limit as f64 * (passed + 1.0) + 1e-6);
                }
            }
        }
    }
}
