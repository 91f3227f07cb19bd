//! A pool shared by tenants: each is guaranteed a part, and the rest is first come, first served.
//!
//! The unheld part of a tenant's guarantee is kept free for it, so no tenant can be refused its part because of
//! another. A tenant that is alone may take everything except the parts of the others.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A pool of bytes, places or other units.
#[derive(Debug)]
pub struct Pool<K> {
    limit: usize,
    /// Amount held by all tenants.
    held: usize,
    /// Amount guaranteed but not held.
    kept_free: usize,
    parts: HashMap<K, Part>,
}

/// The part of a tenant.
#[derive(Debug, Default, Clone, Copy)]
struct Part {
    guaranteed: usize,
    held: usize,
}

impl Part {
    fn kept_free(self) -> usize {
        self.guaranteed.saturating_sub(self.held)
    }
}

impl<K: Eq + Hash> Pool<K> {
    /// An empty pool.
    pub fn new(limit: usize) -> Pool<K> {
        Pool { limit, held: 0, kept_free: 0, parts: HashMap::new() }
    }

    /// The size of the pool.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Amount held by all tenants.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Amount held by a tenant.
    pub fn held_by<Q: Eq + Hash + ?Sized>(&self, tenant: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.parts.get(tenant).map_or(0, |part| part.held)
    }

    /// The most that a tenant could hold if all others released theirs.
    pub fn limit_of<Q: Eq + Hash + ?Sized>(&self, tenant: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let own = self.parts.get(tenant).map_or(0, |part| part.guaranteed);
        let all: usize = self.parts.values().map(|part| part.guaranteed).sum();
        self.limit.saturating_sub(all - own)
    }

    /// Whether a tenant holds more than its guarantee, so that the excess may be reclaimed.
    pub fn exceeds<Q: Eq + Hash + ?Sized>(&self, tenant: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.parts.get(tenant).is_some_and(|part| part.held > part.guaranteed)
    }

    /// The unheld part of a tenant's guarantee.
    pub fn kept_free_for<Q: Eq + Hash + ?Sized>(&self, tenant: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.parts.get(tenant).map_or(0, |part| part.kept_free())
    }

    /// Whether an amount fits.
    pub fn fits<Q: Eq + Hash + ?Sized>(&self, tenant: &Q, amount: usize) -> bool
    where
        K: Borrow<Q>,
    {
        let own = self.kept_free_for(tenant);
        // More than the limit may be held, as `force` counts memory already in use.
        let free = self.limit.saturating_sub(self.held);
        // Space reserved for others is not available.
        amount <= free.saturating_sub(self.kept_free).saturating_add(own.min(free))
    }

    /// Takes an amount if it fits; returns whether it did.
    pub fn take(&mut self, tenant: K, amount: usize) -> bool {
        let fits = self.fits(&tenant, amount);
        if fits {
            self.force(tenant, amount);
        }
        fits
    }

    /// Takes an amount whether or not it fits.
    pub fn force(&mut self, tenant: K, amount: usize) {
        self.change(tenant, |part| part.held += amount);
        self.held += amount;
    }

    /// Returns an amount, at most what the tenant holds.
    pub fn give_back(&mut self, tenant: K, amount: usize) {
        // Returning bytes twice would otherwise create space that does not exist.
        let amount = amount.min(self.parts.get(&tenant).map_or(0, |part| part.held));
        self.change(tenant, |part| part.held -= amount);
        self.held -= amount;
    }

    /// Guarantees each tenant a part in proportion to its weight, half of the pool in total. Tenants not named have
    /// no guarantee.
    pub fn guarantee(&mut self, weights: impl IntoIterator<Item = (K, u32)>)
    where
        K: Clone,
    {
        let weights: Vec<(K, u32)> = weights.into_iter().collect();
        let sum: u128 = weights.iter().map(|(_, weight)| u128::from(*weight)).sum();
        // Half, so that a tenant that is alone still gets the larger part of an idle pool.
        let half = (self.limit / 2) as u128;
        self.parts.values_mut().for_each(|part| part.guaranteed = 0);
        for (tenant, weight) in weights {
            let share = (half * u128::from(weight)).checked_div(sum).unwrap_or(0);
            self.parts.entry(tenant).or_default().guaranteed = usize::try_from(share).unwrap_or(usize::MAX);
        }
        self.parts.retain(|_, part| part.guaranteed > 0 || part.held > 0);
        self.kept_free = self.parts.values().map(|part| part.kept_free()).sum();
    }

    /// Updates a part, and drops it once empty. So the table is bounded by the tenants with a guarantee or a holding.
    fn change(&mut self, tenant: K, change: impl FnOnce(&mut Part)) {
        let mut entry = match self.parts.entry(tenant) {
            std::collections::hash_map::Entry::Occupied(entry) => entry,
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert_entry(Part::default()),
        };
        let part = entry.get_mut();
        // The sum over all parts is maintained incrementally: `fits` runs for every request.
        self.kept_free -= part.kept_free();
        change(part);
        self.kept_free += part.kept_free();
        if part.guaranteed == 0 && part.held == 0 {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_tenant_takes_all_but_the_part_of_another() {
        let mut pool = Pool::new(100);
        assert!(pool.take("a", 100), "nothing is guaranteed yet");
        pool.give_back("a", 100);
        pool.guarantee([("a", 1), ("b", 4)]);
        assert_eq!((pool.limit_of("a"), pool.limit_of("b"), pool.limit_of("c")), (60, 90, 50));
        assert!(!pool.take("a", 61) && pool.take("a", 60) && !pool.take("a", 1));
        assert!(pool.exceeds("a") && !pool.exceeds("b"));
        assert!(pool.take("b", 40) && !pool.take("b", 1) && !pool.exceeds("b"));
        pool.give_back("a", 10);
        assert!(pool.take("b", 10) && pool.exceeds("b") && pool.held_by("b") == 50);
    }

    #[test]
    fn a_part_that_is_guaranteed_later_is_kept_free_from_then_on() {
        let mut pool = Pool::new(100);
        pool.guarantee([("a", 1)]);
        assert!(pool.take("a", 100));
        pool.guarantee([("a", 1), ("b", 1)]);
        assert!(!pool.take("b", 1), "there is nothing left");
        pool.give_back("a", 30);
        assert!(!pool.take("a", 6) && pool.take("b", 25) && pool.take("a", 5));
        pool.give_back("a", usize::MAX);
        pool.give_back("b", 25);
        assert!(pool.take("c", 5) && pool.parts.len() == 3);
        pool.give_back("c", 5);
        assert_eq!((pool.held(), pool.parts.len()), (0, 2), "a tenant that holds nothing is forgotten");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Take(u8, usize),
        Force(u8, usize),
        GiveBack(u8, usize),
        Guarantee(Vec<(u8, u32)>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (tenant, amount) = (0..4u8, 0..150usize);
        prop_oneof![
            4 => (tenant.clone(), amount.clone()).prop_map(|(t, a)| Step::Take(t, a)),
            1 => (tenant.clone(), 0..20usize).prop_map(|(t, a)| Step::Force(t, a)),
            4 => (tenant.clone(), amount).prop_map(|(t, a)| Step::GiveBack(t, a)),
            1 => prop::collection::btree_map(tenant, 1..9u32, 0..4)
                .prop_map(|weights| Step::Guarantee(weights.into_iter().collect())),
        ]
    }

    proptest! {
        /// Checks against plain sums: the held bytes are the taken ones. A take is refused exactly if it would exceed
        /// the pool or use space reserved for others.
        #[test]
        fn room_is_that_of_plain_sums(steps in prop::collection::vec(step(), 0..80)) {
            const LIMIT: usize = 200;
            let mut pool = Pool::new(LIMIT);
            let (mut held, mut guaranteed) = ([0_usize; 4], [0_usize; 4]);
            for step in steps {
                match step {
                    Step::Take(t, amount) => {
                        let others: usize =
                            (0..4).filter(|o| *o != t as usize).map(|o| held[o].max(guaranteed[o])).sum();
                        let sum: usize = held.iter().sum();
                        let own = guaranteed[t as usize].saturating_sub(held[t as usize]);
                        let free = LIMIT.saturating_sub(sum);
                        // Its own part is available unless others, by force, hold it already.
                        let room = LIMIT.saturating_sub(others + held[t as usize]).max(own.min(free));
                        let taken = pool.take(t, amount);
                        prop_assert!(!taken || amount == 0 || sum + amount <= LIMIT);
                        prop_assert_eq!(taken, amount <= room, "{:?} {:?}", held, guaranteed);
                        held[t as usize] += if taken { amount } else { 0 };
                    }
                    Step::Force(t, amount) => {
                        pool.force(t, amount);
                        held[t as usize] += amount;
                    }
                    Step::GiveBack(t, amount) => {
                        pool.give_back(t, amount);
                        held[t as usize] = held[t as usize].saturating_sub(amount);
                    }
                    Step::Guarantee(weights) => {
                        let sum: u32 = weights.iter().map(|(_, weight)| weight).sum();
                        guaranteed = [0; 4];
                        for (t, weight) in &weights {
                            guaranteed[*t as usize] = LIMIT / 2 * *weight as usize / sum as usize;
                        }
                        pool.guarantee(weights);
                    }
                }
                prop_assert_eq!(pool.held(), held.iter().sum::<usize>());
                for t in 0..4 {
                    prop_assert_eq!(pool.held_by(&(t as u8)), held[t]);
                    prop_assert_eq!(pool.exceeds(&(t as u8)), held[t] > guaranteed[t]);
                }
            }
        }
    }
}
