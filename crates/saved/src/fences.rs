//! Moving objects of all tenants, which share one bound.

use meridian_model::Fences;
use meridian_model::fence::Passage;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Objects: hash, time of the newest event, and the numbers of the saved searches that it is in.
pub(super) type Objects = Vec<(u64, i64, Vec<u64>)>;

/// The objects of each tenant. Over the bound, the tenant with the most forgets those without recent events.
#[derive(Debug)]
pub(super) struct TenantFences {
    tenants: HashMap<Arc<str>, Fences>,
    weight: usize,
    max: usize,
}

impl TenantFences {
    /// No objects yet. `max` bounds the number of objects plus the saved searches that they are in.
    pub(super) fn new(max: usize) -> TenantFences {
        TenantFences { tenants: HashMap::new(), weight: 0, max }
    }

    /// Records an event of an object, as [`Fences::pass`].
    pub(super) fn pass(&mut self, tenant: &Arc<str>, object: u64, time: i64, inside: &[u64]) -> Passage {
        let fences = self.tenants.entry(tenant.clone()).or_insert_with(|| Fences::new(self.max));
        let before = fences.weight();
        let passage = fences.pass(object, time, inside);
        self.weight = self.weight + fences.weight() - before;
        self.make_room();
        passage
    }

    fn make_room(&mut self) {
        while self.weight > self.max
            && let Some(largest) = self.tenants.values_mut().max_by_key(|fences| fences.weight())
        {
            self.weight -= largest.weight();
            largest.age();
            self.weight += largest.weight();
        }
    }

    /// Objects known.
    pub(super) fn len(&self) -> usize {
        self.tenants.values().map(Fences::len).sum()
    }

    /// The known states, by tenant.
    pub(super) fn list(&self) -> BTreeMap<String, Objects> {
        self.tenants.iter().map(|(tenant, fences)| (tenant.to_string(), fences.list())).collect()
    }

    /// Restores the objects of a tenant.
    pub(super) fn restore(&mut self, tenant: &str, objects: Objects) {
        let mut fences = Fences::new(self.max);
        fences.restore(objects);
        self.weight += fences.weight();
        self.tenants.insert(tenant.into(), fences);
        self.make_room();
    }

    /// Forgets the objects of a tenant.
    pub(super) fn forget(&mut self, tenant: &str) {
        self.weight -= self.tenants.remove(tenant).map_or(0, |fences| fences.weight());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_with_many_objects_forgets_its_own() {
        let mut fences = TenantFences::new(1_000);
        let (few, many): (Arc<str>, Arc<str>) = ("few".into(), "many".into());
        for object in 0..100 {
            fences.pass(&few, object, 0, &[1]);
        }
        for object in 0..10_000 {
            assert_eq!(fences.pass(&many, object, 0, &[2]).entered, [2]);
            assert!(fences.weight <= 1_000);
            assert_eq!(fences.weight, fences.tenants.values().map(Fences::weight).sum::<usize>());
        }
        for object in 0..100 {
            assert_eq!(fences.pass(&few, object, 1, &[1]), Passage::default(), "{object} is still inside");
        }
        // The same across a restart, and together with the objects of the other.
        let mut again = TenantFences::new(1_000);
        fences.list().into_iter().for_each(|(tenant, objects)| again.restore(&tenant, objects));
        assert_eq!((again.len(), again.weight), (fences.len(), fences.weight));
        assert_eq!(again.pass(&few, 0, 2, &[]).left, [1]);
        again.forget("many");
        assert_eq!((again.len(), again.weight), (100, 199));
    }
}
