//! The records and the audit log that all processes of a cluster share.

use crate::audit::{Act, SharedAudit};
use crate::bucket::{RECORDS, SharedRecords};
use crate::error::StoreError;
use crate::seams::Bucket;
use crate::seams::Seams;
use crate::store::Store;
use meridian_model::RecordChange;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Tokens, tenants, users, sessions, saved searches and the audit log, in a bucket.
#[derive(Debug)]
pub struct ControlPlane {
    bucket: Arc<dyn Bucket>,
    seams: Seams,
    kinds: Mutex<BTreeMap<String, Arc<SharedRecords>>>,
    audit: Arc<SharedAudit>,
}

/// What became of the records of a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveOutcome {
    /// There were none.
    Nothing,
    /// This many are in the bucket now.
    Records(usize),
    /// The bucket has records of its own; only these count.
    Kept,
}

/// The part of a cluster's records that a data folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderRecords {
    /// Nothing.
    Nothing,
    /// Some records, and the bucket never had any of the last kind: an owner moves them.
    Alone,
    /// Some records, and the bucket has some too: only those in the bucket count.
    Beside,
}

impl ControlPlane {
    /// Opens the control plane of a bucket. `audit_bytes` is the size limit of the audit log.
    pub fn new(bucket: Arc<dyn Bucket>, seams: &Seams, audit_bytes: u64) -> Arc<ControlPlane> {
        let audit = Arc::new(SharedAudit::new(bucket.clone(), seams, audit_bytes));
        Arc::new(ControlPlane { bucket, seams: seams.clone(), kinds: Mutex::default(), audit })
    }

    /// Returns the records of one kind, possibly empty.
    pub fn records(&self, kind: &str) -> Arc<SharedRecords> {
        let new = || Arc::new(SharedRecords::new(self.bucket.clone(), &self.seams, kind));
        self.kinds.lock().entry(kind.to_owned()).or_insert_with(new).clone()
    }

    /// Returns the names of the existing kinds of records.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub(crate) fn kinds(&self) -> Result<BTreeSet<String>, StoreError> {
        let path = Path::new(&self.bucket.place()).join(RECORDS);
        let names = self.bucket.list(RECORDS).map_err(StoreError::io("list", &path))?;
        let known = self.kinds.lock().keys().cloned().collect::<BTreeSet<_>>();
        let listed = names.iter().filter_map(|name| Some(name.strip_prefix(RECORDS)?.split('/').next()?.to_owned()));
        // The listing may be stale.
        Ok(listed.chain(known).collect())
    }

    /// Returns the bucket, and the seams for calls to it.
    pub(crate) fn bucket(&self) -> (&Arc<dyn Bucket>, &Seams) {
        (&self.bucket, &self.seams)
    }

    /// Returns the audit log.
    pub fn audit(&self) -> &Arc<SharedAudit> {
        &self.audit
    }

    /// Returns how the records of these kinds in a data folder relate to those in the bucket.
    ///
    /// # Errors
    /// Errors of the bucket. A folder that cannot be read counts as not empty.
    pub fn in_folder(&self, store: &Store, kinds: &[&'static str]) -> Result<FolderRecords, StoreError> {
        let has = |kind: &&'static str| !matches!(store.records(kind).names(), Ok(names) if names.is_empty());
        match kinds.last() {
            Some(last) if kinds.iter().any(has) => {
                let beside = self.records(last).since(0)?.is_some();
                Ok(if beside { FolderRecords::Beside } else { FolderRecords::Alone })
            }
            _ => Ok(FolderRecords::Nothing),
        }
    }

    /// Copies the records of these kinds from a data folder, unless the bucket ever had records of the last kind. That
    /// kind is moved last, so after a crash the next owner moves the rest. An existing record of another kind stays as
    /// it is.
    ///
    /// # Errors
    /// A damaged record, [`StoreError::Busy`] if another process creates records at the same time, or the error of the
    /// bucket.
    pub fn move_in(&self, store: &Store, kinds: &[&'static str]) -> Result<MoveOutcome, StoreError> {
        // First: damage in a folder that does not count must not keep an owner from starting.
        match self.in_folder(store, kinds)? {
            FolderRecords::Nothing => return Ok(MoveOutcome::Nothing),
            FolderRecords::Beside => return Ok(MoveOutcome::Kept),
            FolderRecords::Alone => {}
        }
        let read = |kind: &&'static str| {
            let records = store.records(kind);
            let put = |name: String| -> Result<Option<RecordChange>, StoreError> {
                Ok(records.get(&name)?.map(|content| RecordChange::put(name, content)))
            };
            records.names()?.into_iter().filter_map(|name| put(name).transpose()).collect::<Result<Vec<_>, _>>()
        };
        let of_folder = kinds.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let mut count: usize = of_folder.iter().map(Vec::len).sum();
        let from = store.root().display();
        self.audit.append(&[Act {
            who: "server".to_owned(),
            act: "moveRecords".to_owned(),
            target: "/".to_owned(),
            change: Some(format!("{count} records of {from}, whose audit log has the acts before")),
            ..Act::default()
        }])?;
        // The next attempt finds the other's records.
        let changed = || StoreError::Busy("records were made in the bucket at the same moment".to_owned());
        for (kind, mut changes) in kinds.iter().zip(of_folder) {
            let (records, is_last) = (self.records(kind), Some(kind) == kinds.last());
            let mut version = 0;
            if let Some(news) = records.since(0)? {
                if is_last {
                    return Err(changed());
                }
                version = news.version;
                let there: BTreeMap<_, _> = news.changes.into_iter().map(|there| (there.name, there.content)).collect();
                // Records that an earlier owner moved, or a server created, stay.
                changes.retain(|change| match there.get(&change.name) {
                    Some(content) if *content == change.content => false,
                    Some(_) => {
                        tracing::warn!(
                            kind,
                            record = change.name,
                            "the bucket has another record of this name, which stays"
                        );
                        count -= 1;
                        false
                    }
                    None => true,
                });
            }
            // The last kind gets a link even without records: it marks the move as complete.
            if (is_last || !changes.is_empty()) && records.commit(version, &changes)?.is_none() {
                return Err(changed());
            }
        }
        Ok(MoveOutcome::Records(count))
    }
}
