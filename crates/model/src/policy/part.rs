//! The parts of a tenant's quotas that the servers of a cluster get. Each server counts on its own, and together they
//! stay within the quota.
//!
//! A server reports its needs: what its tenant has used of a quota since the last report, or holds of it, plus what
//! was refused. A quarter of a quota is divided equally, so that a server without use can begin. The rest goes by
//! need. If the servers of a busy tenant each use all of their part, their parts converge, by a quarter of the
//! difference each time.

use super::quota::Quota;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Divisor of the part of a quota that is divided equally.
const EQUAL: u64 = 4;

/// A server's needs of the quotas of one tenant; an absent quota is not needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Needs(BTreeMap<Quota, u64>);

impl Needs {
    /// Adds to the need of a quota.
    pub fn add(&mut self, quota: Quota, amount: u64) {
        if amount > 0 {
            let need = self.0.entry(quota).or_default();
            *need = need.saturating_add(amount);
        }
    }

    /// The need of a quota.
    pub fn of(&self, quota: Quota) -> u64 {
        self.0.get(&quota).copied().unwrap_or(0)
    }

    /// Whether nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The division of a tenant's quotas, as seen by one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Division {
    mine: Needs,
    /// Sums over all servers.
    all: BTreeMap<Quota, u128>,
    /// Number of other servers.
    others: u64,
}

impl Division {
    /// A division between a server with these needs and others with theirs.
    pub fn among<'a>(mine: &Needs, others: impl IntoIterator<Item = Option<&'a Needs>>) -> Division {
        let (mut all, mut count) = (BTreeMap::new(), 0);
        let mut sum = |needs: &Needs| {
            needs.0.iter().for_each(|(quota, need)| *all.entry(*quota).or_default() += u128::from(*need))
        };
        sum(mine);
        for other in others {
            count += 1;
            other.into_iter().for_each(&mut sum);
        }
        Division { mine: mine.clone(), all, others: count }
    }

    /// This server's part of a limit. A non-zero limit yields at least one: if it is below the number of servers,
    /// their sum exceeds it.
    pub fn part(&self, quota: Quota, limit: u64) -> u64 {
        if self.others == 0 || !quota.is_divided() {
            return limit;
        }
        let servers = self.others.saturating_add(1);
        if limit < servers {
            return limit.min(1);
        }
        // At least one, taken from the limit before the rest is divided by need.
        let equal = (limit / EQUAL / servers).max(1);
        let rest = limit - equal * servers;
        let by_need = match self.all.get(&quota).copied().unwrap_or(0) {
            0 => rest / servers,
            // No larger than the rest, as no need exceeds the sum.
            all => u64::try_from(u128::from(rest) * u128::from(self.mine.of(quota)) / all).unwrap_or(rest),
        };
        equal + by_need
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE: Quota = Quota::EventsPerSecond;

    fn needs(amount: u64) -> Needs {
        let mut needs = Needs::default();
        needs.add(RATE, amount);
        needs
    }

    /// The parts of servers with these needs.
    fn parts(limit: u64, all: &[u64]) -> Vec<u64> {
        let all: Vec<Needs> = all.iter().map(|need| needs(*need)).collect();
        let of = |at: usize| {
            let others = all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, needs)| Some(needs));
            Division::among(&all[at], others).part(RATE, limit)
        };
        (0..all.len()).map(of).collect()
    }

    proptest! {
        #[test]
        fn parts_are_no_more_than_the_whole_and_nobody_is_without(
            limit in prop_oneof![0..50_u64, any::<u64>()],
            all in prop::collection::vec(prop_oneof![Just(0), 0..1_000_u64, any::<u64>()], 1..20),
        ) {
            let parts = parts(limit, &all);
            let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum();
            prop_assert!(sum <= u128::from(limit).max(parts.len() as u128), "{parts:?}");
            prop_assert!(parts.iter().all(|part| (*part > 0) == (limit > 0)), "{parts:?}");
            prop_assert!(all.len() > 1 || parts == [limit], "one server has all of it");
        }
    }

    #[test]
    fn a_quota_goes_where_it_is_needed() {
        assert_eq!(parts(800, &[0, 0]), [400, 400]);
        assert_eq!(parts(800, &[500, 0]), [700, 100]);
        assert_eq!(parts(800, &[300, 100]), [550, 250]);
        // A server that reports nothing still counts.
        assert_eq!(Division::among(&needs(5), [None]).part(RATE, 800), 700);
        // Neither does one that reports no need.
        let none: Needs = serde_json::from_str(r#"{"events_per_second":0}"#).unwrap();
        assert_eq!(Division::among(&none, [Some(&none)]).part(RATE, 800), 400);
        // Bytes that one query reads, and resources counted elsewhere, are not divided.
        for quota in [Quota::ScannedBytesPerRequest, Quota::SavedSearches, Quota::StoredBytes] {
            assert_eq!(Division::among(&needs(5), [None]).part(quota, 800), 800, "{quota}");
        }
    }

    #[test]
    fn servers_that_use_all_of_their_parts_come_to_equal_ones() {
        let mut now = vec![1_000, 0];
        for _ in 0..20 {
            now = parts(1_000, &now);
        }
        assert!(now[0].abs_diff(now[1]) <= 10, "{now:?}");
    }
}
