//! The saved searches of all slots, counted: quotas and limits are of all of them, and a gateway runs some.

use super::definition::counted;
use super::recovery::{is_id, tenant_of};
use meridian_backend::{Records, StoreError};
use meridian_model::policy::pool::Pool;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Counts them by their records, and what is being created here. Of two gateways that create at the same moment neither counts what the other
/// has not written yet.
pub(super) struct Census {
    records: Arc<dyn Records>,
    /// The version of the records at the last look. Held while they are read.
    version: Mutex<u64>,
    /// Never held over a read: async tasks ask for it.
    counted: Mutex<Counted>,
}

struct Counted {
    /// The tenant of each, and as how many it counts.
    known: BTreeMap<String, (Arc<str>, usize)>,
    pool: Pool<Arc<str>>,
}

impl fmt::Debug for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Census").finish_non_exhaustive()
    }
}

impl Census {
    /// Of these records, which are read at the first look. `max`: the limit of all.
    pub(super) fn new(records: Arc<dyn Records>, max: usize) -> Census {
        let counted = Counted { known: BTreeMap::new(), pool: Pool::new(max) };
        Census { records, version: Mutex::new(0), counted: Mutex::new(counted) }
    }

    /// Takes up what was created and deleted since. Blocks.
    ///
    /// # Errors
    /// Those of the records.
    pub(super) fn look(&self) -> Result<(), StoreError> {
        let mut version = self.version.lock();
        let Some(news) = self.records.since(*version)? else { return Ok(()) };
        let mut counted = self.counted.lock();
        if news.whole {
            let known: Vec<String> = counted.known.keys().cloned().collect();
            known.iter().for_each(|id| counted.forget(id));
        }
        for change in news.changes.iter().filter(|change| is_id(&change.name)) {
            counted.forget(&change.name);
            // One that does not read is of no tenant that is known.
            if let Some((tenant, count)) = change.content.as_deref().and_then(counts_as) {
                counted.pool.force(tenant.clone(), count);
                counted.known.insert(change.name.clone(), (tenant, count));
            }
        }
        *version = news.version;
        Ok(())
    }

    /// What a tenant has, as of the last look, with what is being created here.
    pub(super) fn held_by(&self, tenant: &str) -> usize {
        self.counted.lock().pool.held_by(tenant)
    }

    /// Takes room for one that is being created; `false` if there is none.
    pub(super) fn take(&self, tenant: &Arc<str>, count: usize) -> bool {
        self.counted.lock().pool.take(tenant.clone(), count)
    }

    /// Gives that room back: it is counted by its record from now on, or was not created.
    pub(super) fn give_back(&self, tenant: &Arc<str>, count: usize) {
        self.counted.lock().pool.give_back(tenant.clone(), count);
    }

    /// Guarantees each tenant a part, in proportion to its weight.
    pub(super) fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.counted.lock().pool.guarantee(weights);
    }
}

impl Counted {
    fn forget(&mut self, id: &str) {
        if let Some((tenant, count)) = self.known.remove(id) {
            self.pool.give_back(tenant, count);
        }
    }
}

/// The tenant in a record, and as how many it counts.
fn counts_as(content: &[u8]) -> Option<(Arc<str>, usize)> {
    let mut members: Map<String, Value> = serde_json::from_slice(content).ok()?;
    let tenant = tenant_of(&mut members)?;
    let question = members.get("question").map_or(0, |question| question.to_string().len());
    Some((tenant.into(), counted(question)))
}
