//! Which process should own which group: the rules for ranking candidates and for handing a group over.
//!
//! Each process knows the live candidates from their announcements. It computes an order of them for each group: the
//! first should own the group, and each later one waits longer ([`super::lease`]). Two processes that briefly know
//! different candidates compute different orders. That costs a takeover at most: the lease of a group decides its
//! owner, and its log fences the former one.

use super::groups::Groups;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A live candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCandidate {
    /// Its name. A process restarted under its name gets its former groups.
    pub node: String,
    /// Number unique to this start of the process.
    pub process: u64,
}

/// The candidates of each group in order of preference: by rendezvous hashing, and none is first in more groups than
/// its equal part.
pub fn places(groups: Groups, candidates: &[LiveCandidate]) -> Vec<Vec<u64>> {
    let count = candidates.len().max(1);
    let most = usize::from(groups.count()).div_ceil(count);
    let mut first_in: BTreeMap<u64, usize> = BTreeMap::new();
    let one = |group: u16| {
        let mut order: Vec<(u64, u64)> =
            candidates.iter().map(|candidate| (score(group, &candidate.node), candidate.process)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        // Some candidate has fewer than its part as long as not all groups are placed.
        let has_room = |(_, process): &(u64, u64)| first_in.get(process).is_none_or(|groups| *groups < most);
        if let Some(at) = order.iter().position(has_room) {
            let first = order.remove(at);
            *first_in.entry(first.1).or_default() += 1;
            order.insert(0, first);
        }
        order.into_iter().map(|(_, process)| process).collect()
    };
    (0..groups.count()).map(one).collect()
}

/// The weight of a candidate for a group.
fn score(group: u16, node: &str) -> u64 {
    // FNV-1a and the finalizer of SplitMix64: names that differ in a digit must not have similar weights.
    let bytes = group.to_le_bytes().into_iter().chain(node.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// Multiple of the lease for which a candidate must rank first in a group before the holder hands the group over. A
/// dead candidate ranks for less time than that.
const SETTLED: u32 = 2;
/// Multiple of the lease before a group is handed again to a candidate that did not keep it. It doubles with each
/// attempt.
const AGAIN: u32 = 8;
/// Max doublings.
const DOUBLINGS: u32 = 7;

/// The state of a process that hands groups over, one at a time.
#[derive(Debug, Default)]
pub struct Handovers {
    /// The first candidate of each group, and the time since which it has been first.
    first: BTreeMap<u16, (u64, Duration)>,
    /// By group and candidate: the last handover, and the number of earlier ones.
    made: BTreeMap<(u16, u64), (Duration, u32)>,
    last: Option<Duration>,
    /// The groups that this process holds.
    held: BTreeSet<u16>,
    /// Held groups that it keeps although another candidate is first, with that candidate.
    kept: BTreeMap<u16, u64>,
}

impl Handovers {
    /// Records the groups held by this process, each with whether the previous holder handed it over. Such a group is
    /// kept until another candidate is first: an operator wants that. Call it before [`Handovers::due`].
    pub fn note(&mut self, process: u64, held: &[(u16, bool)], places: &[Vec<u64>]) {
        let first = |group: u16| places.get(usize::from(group)).and_then(|order| order.first()).copied();
        self.kept.retain(|group, of| first(*group) == Some(*of) && held.iter().any(|(held, _)| held == group));
        for (group, is_passed) in held {
            let first = first(*group).filter(|first| *is_passed && *first != process && !self.held.contains(group));
            self.kept.extend(first.map(|first| (*group, first)));
        }
        self.held = held.iter().map(|(group, _)| *group).collect();
    }

    /// The held group to hand over now, recorded as handed over: the caller must do it. `places` covers all groups;
    /// `ttl` is the length of a lease.
    pub fn due(
        &mut self,
        process: u64,
        held: &[u16],
        places: &[Vec<u64>],
        ttl: Duration,
        now: Duration,
    ) -> Option<u16> {
        for (group, order) in places.iter().enumerate() {
            let (Some(first), group) = (order.first(), group as u16) else { continue };
            let known = self.first.entry(group).or_insert((*first, now));
            if known.0 != *first {
                *known = (*first, now);
                // Earlier handovers count only while the same candidate is first.
                self.made.retain(|(of, _), _| *of != group);
            }
        }
        // The last group handed over is still being taken up: its writers wait for it, and must not wait for another
        // one too.
        if self.last.is_some_and(|last| now < last + ttl) {
            return None;
        }
        let is_due = |group: &u16| {
            let Some((first, since)) = self.first.get(group) else { return false };
            let again = self.made.get(&(*group, *first));
            *first != process
                && !self.kept.contains_key(group)
                && now >= *since + ttl * SETTLED
                && again.is_none_or(|(at, times)| now >= *at + ttl * AGAIN * (1 << (*times).min(DOUBLINGS)))
        };
        let group = held.iter().copied().find(is_due)?;
        let (to, _) = self.first.get(&group)?;
        let again = self.made.get(&(group, *to)).map_or(0, |(_, times)| times + 1);
        self.made.insert((group, *to), (now, again));
        self.last = Some(now);
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TTL: Duration = Duration::from_secs(3);

    fn candidates(names: &[u64]) -> Vec<LiveCandidate> {
        names.iter().map(|n| LiveCandidate { node: format!("owner-{n}"), process: *n }).collect()
    }

    fn firsts(places: &[Vec<u64>]) -> BTreeMap<u64, usize> {
        let mut found = BTreeMap::new();
        places.iter().for_each(|order| *found.entry(order[0]).or_default() += 1);
        found
    }

    #[test]
    fn a_group_that_was_handed_over_stays_until_another_one_is_first() {
        let (mut handovers, places) = (Handovers::default(), |first: u64| vec![vec![first, 2], vec![2, first]]);
        let mut at = |first, held: &[(u16, bool)], seconds| {
            let (places, groups) = (places(first), held.iter().map(|(group, _)| *group).collect::<Vec<_>>());
            handovers.note(2, held, &places);
            handovers.due(2, &groups, &places, TTL, Duration::from_secs(seconds))
        };
        assert_eq!(at(1, &[(1, false)], 0), None);
        assert_eq!(at(1, &[(0, true), (1, false)], 10), None, "its holder has passed it to this process");
        assert_eq!(at(1, &[(0, true), (1, false)], 1_000), None);
        assert_eq!(at(3, &[(0, true), (1, false)], 1_001), None, "another one is first, and new");
        assert_eq!(at(3, &[(0, true), (1, false)], 1_010), Some(0));
        assert_eq!(at(3, &[(1, false)], 1_020), None);
        assert_eq!(at(3, &[(0, false), (1, false)], 1_033), None, "it was passed on of late");
        assert_eq!(at(3, &[(0, false), (1, false)], 1_034), Some(0), "nobody has passed it: it was free");
    }

    proptest! {
        #[test]
        fn groups_are_divided_about_equally(groups in 1..=64u16, names in prop::collection::btree_set(0..1000u64, 1..12)) {
            let names: Vec<u64> = names.into_iter().collect();
            let found = places(Groups::new(groups).unwrap(), &candidates(&names));
            let most = usize::from(groups).div_ceil(names.len());
            prop_assert_eq!(found.len(), usize::from(groups));
            prop_assert!(firsts(&found).values().all(|groups| *groups <= most));
            for order in &found {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &names, "each candidate has a rank");
            }
            // The order in which candidates become known does not matter.
            let turned: Vec<u64> = names.iter().rev().copied().collect();
            prop_assert_eq!(places(Groups::new(groups).unwrap(), &candidates(&turned)), found);
        }

        /// Processes come and go. Afterwards each group is with its first candidate, and no group was handed over
        /// more often than candidates changed.
        #[test]
        fn groups_settle_and_do_not_wander(changes in prop::collection::vec((0..6u64, any::<bool>()), 1..12)) {
            let groups = Groups::new(8).unwrap();
            let mut live = vec![0u64];
            let mut owner: Vec<u64> = vec![0; 8];
            let mut memories: BTreeMap<u64, Handovers> = BTreeMap::new();
            let (mut now, mut passed) = (Duration::ZERO, 0usize);
            for (node, comes) in &changes {
                match comes {
                    true if !live.contains(node) => live.push(*node),
                    false if live.len() > 1 => live.retain(|other| other != node),
                    _ => {}
                }
                for _ in 0..60 {
                    now += TTL / 2;
                    let order = places(groups, &candidates(&live));
                    for group in 0..8usize {
                        if !live.contains(&owner[group]) {
                            owner[group] = order[group][0];
                        }
                    }
                    for node in &live {
                        let held: Vec<u16> = (0..8u16).filter(|group| owner[usize::from(*group)] == *node).collect();
                        let memory = memories.entry(*node).or_default();
                        if let Some(group) = memory.due(*node, &held, &order, TTL, now) {
                            owner[usize::from(group)] = order[usize::from(group)][0];
                            passed += 1;
                        }
                    }
                }
                let order = places(groups, &candidates(&live));
                let wanted: Vec<u64> = order.iter().map(|order| order[0]).collect();
                prop_assert_eq!(&owner, &wanted);
            }
            prop_assert!(passed <= 8 * changes.len(), "{} handovers", passed);
        }
    }

    #[test]
    fn a_candidate_that_does_not_keep_a_group_is_offered_it_less_and_less() {
        let groups = Groups::new(1).unwrap();
        let order = places(groups, &candidates(&[1, 2]));
        let (first, other) = (order[0][0], order[0][1]);
        let mut memory = Handovers::default();
        // The other one always gets it back.
        let offers: Vec<u32> =
            (0..4_000u32).filter(|n| memory.due(other, &[0], &order, TTL, TTL * *n).is_some()).collect();
        let pauses: Vec<u32> = offers.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!((offers[0], &pauses[..]), (2, &[8, 16, 32, 64, 128, 256, 512, 1_024, 1_024][..]), "in leases");
        assert_eq!(memory.due(first, &[0], &order, TTL, TTL * 9_999), None, "it is the first itself");
    }

    #[test]
    fn a_candidate_has_to_stay_before_it_gets_a_group() {
        let order = places(Groups::new(1).unwrap(), &candidates(&[1, 2]));
        let other = order[0][1];
        let mut memory = Handovers::default();
        assert_eq!(memory.due(other, &[0], &order, TTL, Duration::ZERO), None);
        assert_eq!(memory.due(other, &[0], &order, TTL, TTL), None);
        assert_eq!(memory.due(other, &[0], &order, TTL, TTL * 2), Some(0));
    }
}
