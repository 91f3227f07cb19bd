//! Counts the saved searches of all slots: quotas and limits cover all of them, while a gateway runs only some.

use super::definition::counted;
use super::records::{is_id, tenant_of};
use meridian_backend::{Records, StoreError};
use meridian_model::policy::pool::Pool;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Counts them by their records, plus those being created here. If two gateways create at the same moment, neither
/// counts what the other has not written yet.
pub(super) struct Census {
    records: Arc<dyn Records>,
    /// Version of the records at the last update. Locked while they are read.
    version: Mutex<u64>,
    /// Never locked during a read, since async tasks use it.
    counted: Mutex<Counts>,
}

struct Counts {
    /// Tenant of each, and the number it counts as.
    known: BTreeMap<String, (Arc<str>, usize)>,
    pool: Pool<Arc<str>>,
}

impl fmt::Debug for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Census").finish_non_exhaustive()
    }
}

impl Census {
    /// Counts these records, which are first read by [`Census::look`]. `max`: limit of the total.
    pub(super) fn new(records: Arc<dyn Records>, max: usize) -> Census {
        let counted = Counts { known: BTreeMap::new(), pool: Pool::new(max) };
        Census { records, version: Mutex::new(0), counted: Mutex::new(counted) }
    }

    /// Processes what was created and deleted since. Blocks.
    ///
    /// # Errors
    /// Those of the records.
    pub(super) fn look(&self) -> Result<(), StoreError> {
        // Locked across the read, so that no two callers apply the same changes, or apply them out of order.
        let mut version = self.version.lock();
        let Some(news) = self.records.since(*version)? else { return Ok(()) };
        let mut counted = self.counted.lock();
        if news.whole {
            // All records are named again, but none of those deleted since. So all counts begin anew.
            let known: Vec<String> = counted.known.keys().cloned().collect();
            known.iter().for_each(|id| counted.forget(id));
        }
        for change in news.changes.iter().filter(|change| is_id(&change.name)) {
            // A changed record may belong to it with another count, so the former one is given back first.
            counted.forget(&change.name);
            // An unreadable record belongs to no known tenant.
            if let Some((tenant, count)) = change.content.as_deref().and_then(counts_as) {
                // Beyond the limit too: the record is there, and a count without it would admit others.
                counted.pool.force(tenant.clone(), count);
                counted.known.insert(change.name.clone(), (tenant, count));
            }
        }
        *version = news.version;
        Ok(())
    }

    /// Returns the count of a tenant as of the last update, including those being created here.
    pub(super) fn held_by(&self, tenant: &str) -> usize {
        self.counted.lock().pool.held_by(tenant)
    }

    /// Reserves room for one being created; returns false if there is none.
    pub(super) fn take(&self, tenant: &Arc<str>, count: usize) -> bool {
        // Until it is given back, its record may already be counted as well. So for a moment it counts twice, but never
        // not at all.
        self.counted.lock().pool.take(tenant.clone(), count)
    }

    /// Releases a reservation: its record counts from now on, or it was not created.
    pub(super) fn give_back(&self, tenant: &Arc<str>, count: usize) {
        self.counted.lock().pool.give_back(tenant.clone(), count);
    }

    /// Guarantees each tenant a share, in proportion to its weight.
    pub(super) fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.counted.lock().pool.guarantee(weights);
    }
}

impl Counts {
    fn forget(&mut self, id: &str) {
        if let Some((tenant, count)) = self.known.remove(id) {
            self.pool.give_back(tenant, count);
        }
    }
}

/// Returns the tenant of a record, and the number it counts as.
fn counts_as(content: &[u8]) -> Option<(Arc<str>, usize)> {
    let mut members: Map<String, Value> = serde_json::from_slice(content).ok()?;
    let tenant = tenant_of(&mut members)?;
    let question = members.get("question").map_or(0, |question| question.to_string().len());
    Some((tenant.into(), counted(question)))
}
