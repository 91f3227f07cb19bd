//! Chooses the process that a lease passes to when its holder gives it up voluntarily.

use std::cmp::Reverse;

/// A process ready to take over a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standby {
    /// The number of the process.
    pub process: u64,
    /// Level of its program (`policy::level`).
    pub level: u32,
    /// Number of leases it holds.
    pub leases: usize,
}

/// The best candidate, if any: the newest program first, as an ongoing upgrade must not be reversed, then the one
/// with the fewest leases. Every process makes the same choice.
pub fn heir(standbys: impl IntoIterator<Item = Standby>) -> Option<u64> {
    let best = standbys.into_iter().min_by_key(|one| (Reverse(one.level), one.leases, one.process));
    best.map(|one| one.process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_newest_program_with_the_fewest_leases_is_the_heir() {
        let standby = |process, level, leases| Standby { process, level, leases };
        assert_eq!(heir([]), None);
        assert_eq!(heir([standby(7, 1, 0), standby(3, 1, 0)]), Some(3));
        assert_eq!(heir([standby(7, 1, 0), standby(3, 1, 2)]), Some(7));
        assert_eq!(heir([standby(7, 1, 0), standby(3, 2, 2)]), Some(3));
    }

    proptest! {
        /// The order of the candidates does not matter, and no other candidate is better.
        #[test]
        fn the_heir_is_the_same_in_any_order(
            standbys in prop::collection::btree_map(0..20u64, (0..3u32, 0..4usize), 0..8),
            turn in 0..8usize,
        ) {
            let mut list: Vec<Standby> = standbys
                .iter()
                .map(|(process, (level, leases))| Standby { process: *process, level: *level, leases: *leases })
                .collect();
            let chosen = heir(list.clone());
            let turn = turn % list.len().max(1);
            list.rotate_left(turn);
            prop_assert_eq!(heir(list.clone()), chosen);
            list.reverse();
            prop_assert_eq!(heir(list.clone()), chosen);
            prop_assert_eq!(chosen.is_none(), list.is_empty());
            if let Some(process) = chosen {
                let (level, leases) = standbys[&process];
                for other in &list {
                    prop_assert!(other.level <= level, "{:?}", other);
                    prop_assert!(other.level < level || other.leases >= leases, "{:?}", other);
                }
            }
        }
    }
}
