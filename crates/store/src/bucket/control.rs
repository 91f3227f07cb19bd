//! The records and the audit log of a cluster, which all of its processes share.

use super::Bucket;
use super::records::SharedRecords;
use crate::audit::{Act, SharedAudit};
use crate::error::StoreError;
use crate::seams::Seams;
use crate::store::Store;
use meridian_model::RecordChange;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tokens, tenants, users, sessions and saved searches, and the record of administrative acts, in a bucket.
#[derive(Debug)]
pub struct ControlPlane {
    bucket: Arc<dyn Bucket>,
    seams: Seams,
    kinds: Mutex<BTreeMap<String, Arc<SharedRecords>>>,
    audit: Arc<SharedAudit>,
}

/// What became of the records of a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// There are none.
    Nothing,
    /// So many are in the bucket now.
    Records(usize),
    /// The bucket has records of its own: these alone count.
    Kept,
}

impl ControlPlane {
    /// That of a bucket. `audit_bytes`: how much of the audit log is kept.
    pub fn new(bucket: Arc<dyn Bucket>, seams: &Seams, audit_bytes: u64) -> Arc<ControlPlane> {
        let audit = Arc::new(SharedAudit::new(bucket.clone(), seams, audit_bytes));
        Arc::new(ControlPlane { bucket, seams: seams.clone(), kinds: Mutex::default(), audit })
    }

    /// The records of one kind; there may be none yet.
    pub fn records(&self, kind: &str) -> Arc<SharedRecords> {
        let new = || Arc::new(SharedRecords::new(self.bucket.clone(), &self.seams, kind));
        self.kinds.lock().entry(kind.to_owned()).or_insert_with(new).clone()
    }

    /// The log of administrative acts.
    pub fn audit(&self) -> &Arc<SharedAudit> {
        &self.audit
    }

    /// Moves the records of these kinds from a data folder, which keeps them, unless the bucket has some of the last kind. So that is moved last:
    /// where a crash comes between, all of it is done again.
    ///
    /// # Errors
    /// A record that is damaged, or what the bucket said.
    pub fn move_in(&self, store: &Store, kinds: &[&'static str]) -> Result<Moved, StoreError> {
        let read = |kind: &&'static str| {
            let records = store.records(kind);
            let put = |name: String| -> Result<Option<RecordChange>, StoreError> {
                Ok(records.get(&name)?.map(|content| RecordChange::put(name, content)))
            };
            records.names()?.into_iter().filter_map(|name| put(name).transpose()).collect::<Result<Vec<_>, _>>()
        };
        let of_folder = kinds.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let count = of_folder.iter().map(Vec::len).sum();
        if count == 0 {
            return Ok(Moved::Nothing);
        }
        let Some(last) = kinds.last() else { return Ok(Moved::Nothing) };
        if self.records(last).since(0)?.is_some() {
            return Ok(Moved::Kept);
        }
        let from = store.root().display();
        self.audit.append(&[Act {
            who: "server".to_owned(),
            act: "moveRecords".to_owned(),
            target: "/".to_owned(),
            change: Some(format!("{count} records of {from}, whose audit log has the acts before")),
            ..Act::default()
        }])?;
        for (kind, changes) in kinds.iter().zip(of_folder) {
            // Of two processes that do this at once, the second finds them there.
            if !changes.is_empty() {
                self.records(kind).commit(0, &changes)?;
            }
        }
        Ok(Moved::Records(count))
    }
}
