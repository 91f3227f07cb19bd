//! Snapshots, and how long an earlier one stays available.
//!
//! Start here. `since.rs` reads what was written after a position, and `prior.rs` where an object was before.
//! `open.rs` opens a snapshot of a collection that another process writes.

pub(crate) mod horizon;
mod open;
pub(crate) mod prior;
pub(crate) mod since;

use crate::error::{Problem, StoreError};
use crate::maintenance::pace::{InFlight, Load};
use crate::part::PartView;
use meridian_model::{Layout, Schema, Seq};
use std::sync::Arc;

/// The state of a collection after one write. Cheap to clone; never changes; waits for no writer.
///
/// Parts and files that it needs stay until it is dropped. To return to it later, keep its `seq` and call
/// [`crate::Collection::snapshot_at`].
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The snapshot shows what was written up to this number, inclusive.
    pub seq: Seq,
    /// The schema that parts are read in.
    pub schema: Arc<Schema>,
    /// The layout of that schema.
    pub layout: Arc<Layout>,
    /// The parts, in arbitrary order.
    pub parts: Arc<[PartView]>,
    /// It shows every write that was acknowledged before this, in microseconds since 1970: when it was taken, or, of a collection that
    /// another process writes, what that process has said.
    pub taken_at: i64,
    /// Damaged parts that are missing: an answer that may need them must report it.
    pub missing: Arc<[Problem]>,
    /// Maintenance yields as long as it is read.
    pub(crate) reading: Option<Arc<InFlight>>,
    pub(crate) load: Arc<Load>,
}

impl Snapshot {
    /// The event with this id: its part and row.
    pub fn find(&self, id: &str) -> Result<Option<(PartView, u32)>, StoreError> {
        for part in self.parts.iter() {
            if let Some(row) = part.find_id(id)? {
                return Ok(Some((part.clone(), row)));
            }
        }
        Ok(None)
    }

    /// The reader waits for something other than the store: until [`Snapshot::wake`] maintenance need not yield to it.
    pub fn rest(&mut self) {
        self.reading = None;
    }

    /// The reader continues.
    pub fn wake(&mut self) {
        if self.reading.is_none() {
            // Shared by clones of the snapshot: a request counts once, however many threads read for it.
            self.reading = Some(Arc::new(self.load.enter()));
        }
    }

    /// Rows of all parts, dead ones included: an upper bound of the events.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|p| u64::from(p.rows())).sum()
    }
}
