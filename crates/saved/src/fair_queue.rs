//! Entries of several tenants, taken in turn.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// A line of entries for each tenant. Each entry has a cost. Tenants with waiting entries are served so that the same
/// cost is taken from each, up to one entry. That is start-time fair queueing (Goyal, Vin and Cheng 1996).
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    lines: HashMap<Arc<str>, Line<T>>,
    /// Each line once, by the cost taken from it. An empty line stays until its turn, so that a tenant cannot reset its
    /// cost with an empty line.
    order: BTreeSet<(usize, Arc<str>)>,
    /// Place of the last entry taken. New lines start there, so idle time is not credited.
    clock: usize,
    cost: usize,
}

#[derive(Debug)]
struct Line<T> {
    entries: VecDeque<(usize, T)>,
    cost: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue { lines: HashMap::new(), order: BTreeSet::new(), clock: 0, cost: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Appends an entry to the line of a tenant.
    pub(crate) fn push(&mut self, tenant: &Arc<str>, cost: usize, entry: T) {
        let line = self.lines.entry(tenant.clone()).or_insert_with(|| {
            self.order.insert((self.clock, tenant.clone()));
            Line { entries: VecDeque::new(), cost: 0 }
        });
        line.entries.push_back((cost, entry));
        line.cost += cost;
        self.cost += cost;
    }

    /// Takes the oldest entry of the tenant whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        while let Some((at, tenant)) = self.order.pop_first() {
            let taken = self.lines.get_mut(&tenant).and_then(|line| {
                let (cost, entry) = line.entries.pop_front()?;
                line.cost -= cost;
                Some((cost, entry))
            });
            let Some((cost, entry)) = taken else {
                self.lines.remove(&tenant);
                continue;
            };
            self.cost -= cost;
            self.clock = at;
            self.order.insert((at + cost, tenant));
            return Some(entry);
        }
        None
    }

    /// The cost of all entries.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// The cost of the entries of a tenant.
    pub(crate) fn cost_of(&self, tenant: &str) -> usize {
        self.lines.get(tenant).map_or(0, |line| line.cost)
    }

    /// The tenant whose entries cost the most, and their cost. Iterates over all tenants with entries.
    pub(crate) fn largest(&self) -> Option<(Arc<str>, usize)> {
        let costs = self.lines.iter().filter(|(_, line)| !line.entries.is_empty());
        costs.max_by_key(|(_, line)| line.cost).map(|(tenant, line)| (tenant.clone(), line.cost))
    }

    /// Takes the newest entry of a tenant.
    pub(crate) fn take_newest(&mut self, tenant: &str) -> Option<T> {
        let line = self.lines.get_mut(tenant)?;
        let (cost, entry) = line.entries.pop_back()?;
        line.cost -= cost;
        self.cost -= cost;
        Some(entry)
    }

    /// Removes the entries of a tenant.
    pub(crate) fn clear(&mut self, tenant: &str) {
        if let Some(line) = self.lines.get_mut(tenant) {
            self.cost -= std::mem::take(&mut line.cost);
            line.entries.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tenants() -> [Arc<str>; 3] {
        ["a", "b", "c"].map(Arc::from)
    }

    #[test]
    fn one_with_many_entries_leaves_every_other_turn_to_one_with_few() {
        let ([many, few, _], mut queue) = (tenants(), FairQueue::default());
        for n in 0..1_000 {
            queue.push(&many, 10, n);
        }
        let mut taken = Vec::new();
        for n in 0..6 {
            // One at a time: its line is empty in between.
            queue.push(&few, 10, 1_000 + n);
            taken.extend([queue.pop(), queue.pop()].into_iter().flatten());
        }
        let of_few = taken.iter().filter(|n| **n >= 1_000).count();
        assert!((5..=6).contains(&of_few), "{taken:?}");
        queue.clear("a");
        assert_eq!((queue.cost(), queue.cost_of("a"), queue.largest()), (0, 0, None));
        // Ties are broken by name.
        queue.push(&few, 10, 0);
        queue.push(&many, 10, 1);
        queue.push(&many, 10, 2);
        assert_eq!([queue.pop(), queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(0), Some(2), None]);
        assert!(queue.lines.is_empty() && queue.order.is_empty());
    }

    proptest! {
        /// Entries of a tenant keep their order, and tenants that always wait get the same cost up to an entry each.
        #[test]
        fn turns_are_fair(costs in proptest::collection::vec((0..3_usize, 1..100_usize), 1..200)) {
            let (tenants, mut queue) = (tenants(), FairQueue::default());
            let mut waiting: [VecDeque<(usize, usize)>; 3] = Default::default();
            for (n, (tenant, cost)) in costs.into_iter().enumerate() {
                queue.push(&tenants[tenant], cost, (tenant, n));
                waiting[tenant].push_back((cost, n));
            }
            let mut served = [0_usize; 3];
            while waiting.iter().all(|line| !line.is_empty()) {
                let (tenant, n) = queue.pop().expect("an entry");
                let (cost, expected) = waiting[tenant].pop_front().expect("one of this tenant");
                prop_assert_eq!(n, expected);
                served[tenant] += cost;
                prop_assert!(served.iter().max().unwrap() - served.iter().min().unwrap() <= 100);
            }
            let left: usize = waiting.iter().flatten().map(|(cost, _)| cost).sum();
            prop_assert_eq!(queue.cost(), left);
            let count = waiting.iter().map(VecDeque::len).sum::<usize>();
            prop_assert_eq!(std::iter::from_fn(|| queue.pop()).count(), count);
        }
    }
}
