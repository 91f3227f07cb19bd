//! Groups of partitions, each with its own owner, so that several processes write concurrently.
//!
//! The first owner of a bucket decides its number of groups, which never changes. Only the owner of a partition's
//! group may write to the partition.

use crate::partition_of;

/// Max groups of a bucket: each has a lease that every candidate reads.
pub const GROUPS_MAX: u16 = 64;

/// The number of groups of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups(u16);

impl Groups {
    /// A single group of all partitions.
    pub const ONE: Groups = Groups(1);

    /// From 1 to [`GROUPS_MAX`] groups.
    pub fn new(count: u16) -> Option<Groups> {
        (1..=GROUPS_MAX).contains(&count).then_some(Groups(count))
    }

    /// The number of groups.
    pub fn count(self) -> u16 {
        self.0
    }

    /// All groups, in order.
    pub fn all(self) -> impl Iterator<Item = Group> {
        (0..self.0).map(move |number| Group { number, of: self })
    }

    /// The group of a partition. The partitions of a collection are assigned to consecutive groups.
    pub fn of(self, tenant: &str, collection: &str, partition: u32) -> Group {
        let first = partition_of(format!("{tenant}/{collection}").as_bytes(), usize::from(self.0));
        let number = (first + partition as usize) % usize::from(self.0);
        Group { number: number as u16, of: self }
    }
}

/// One of the groups of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    number: u16,
    of: Groups,
}

impl Group {
    /// The only group of a bucket with one.
    pub const ONLY: Group = Group { number: 0, of: Groups::ONE };

    /// Its number, from 0.
    pub fn number(self) -> u16 {
        self.number
    }

    /// All groups.
    pub fn groups(self) -> Groups {
        self.of
    }

    /// Whether it contains all partitions.
    pub fn is_all(self) -> bool {
        self.of == Groups::ONE
    }

    /// Whether it contains this partition.
    pub fn has(self, tenant: &str, collection: &str, partition: u32) -> bool {
        self.of.of(tenant, collection, partition) == self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_partition_has_its_group_for_ever() {
        let eight = Groups::new(8).unwrap();
        let numbers = |tenant, name| [0, 1, 7, 8].map(|partition| eight.of(tenant, name, partition).number());
        // Pinned: a bucket's owners find their partitions by these numbers.
        assert_eq!(numbers("public", "quakes"), [2, 3, 1, 2]);
        assert_eq!(numbers("public", "ships"), [4, 5, 3, 4]);
        assert_eq!(Groups::ONE.of("t", "c", 255), Group::ONLY);
        assert_eq!((Groups::new(0), Groups::new(65)), (None, None));
    }

    #[test]
    fn each_partition_is_in_one_group() {
        let groups = Groups::new(5).unwrap();
        for partition in 0..20 {
            let holders = groups.all().filter(|group| group.has("t", "c", partition)).count();
            assert_eq!(holders, 1);
        }
        let first_five: std::collections::BTreeSet<u16> = (0..5).map(|p| groups.of("t", "c", p).number()).collect();
        assert_eq!(first_five.len(), 5, "they spread");
    }

    proptest! {
        /// A partition is in exactly one group, and the next partition is in the next group.
        #[test]
        fn consecutive_partitions_are_in_consecutive_groups(
            count in 1..=GROUPS_MAX,
            tenant in "[a-z/]{0,4}",
            name in "\\PC{0,8}",
            partition in 0..u32::MAX,
        ) {
            let groups = Groups::new(count).unwrap();
            let holders: Vec<Group> = groups.all().filter(|group| group.has(&tenant, &name, partition)).collect();
            prop_assert_eq!(holders.as_slice(), [groups.of(&tenant, &name, partition)]);
            let next = groups.of(&tenant, &name, partition + 1);
            prop_assert_eq!(next.number(), (holders[0].number() + 1) % count);
            prop_assert!(next.groups() == groups && groups.all().count() == usize::from(count));
        }
    }
}
