//! A backup of the collections in a bucket, made while their owner writes them.
//!
//! The owner flushes each collection when its turn comes. The backup then reads it like any reader of the bucket: a pin
//! keeps its objects in place until they are sent. One collection is open at a time.

use super::pin::PinnedFiles;
use super::send::{BackupRequest, RecordSource};
use super::{Backup, BackupScope};
use crate::audit::LineSink;
use crate::bucket::renewing;
use crate::collection::Collection;
use crate::control::ControlPlane;
use crate::error::StoreError;
use crate::options::Options;
use crate::seams::{MemoryDisk, Seams};
use crate::store::Store;
use meridian_model::Positions;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::Arc;

/// Placeholder for the data folder; only its lock is needed.
const ROOT: &str = "/backup";
/// Max attempts to flush or pin a collection that others drop and create meanwhile.
const TRIES: usize = 4;

/// The writer of the collections, which can be asked to flush them.
pub trait Flusher {
    /// Returns all collections, by tenant and name.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if a collection cannot be opened: a backup would lack it.
    fn all(&self) -> Result<Vec<(String, String)>, StoreError>;

    /// Flushes what was acknowledged before the call, and returns the positions covered by then; `None` if the
    /// collection does not exist.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] or [`StoreError::Invalid`] if the collection is incomplete, and errors of the disk or
    /// bucket.
    fn flush(&self, tenant: &str, name: &str) -> Result<Option<Positions>, StoreError>;
}

impl Flusher for Store {
    fn all(&self) -> Result<Vec<(String, String)>, StoreError> {
        if let Some(unopened) = self.unopened(|_| true).into_iter().next() {
            return Err(StoreError::corrupt(&unopened.path, unopened.detail));
        }
        let first = |collection: &Arc<Collection>| collection.partition() == 0;
        let collections = self.collections().into_iter().filter(first);
        Ok(collections.map(|collection| (collection.tenant().to_owned(), collection.name().to_owned())).collect())
    }

    fn flush(&self, tenant: &str, name: &str) -> Result<Option<Positions>, StoreError> {
        let flush = |partition: &Arc<Collection>| {
            partition.core.lock().check_whole()?;
            // Before the flush, which covers this position or a later one.
            let position = partition.position();
            partition.flush().map(|()| position)
        };
        let mut more = 1..TRIES;
        loop {
            let Some(partitions) = self.partitions(tenant, name) else {
                // Only one that does not exist is left out.
                self.inner().check_open()?;
                return self.why_damaged(tenant, name).map_or(Ok(None), |why| Err(StoreError::Damaged(Box::new(why))));
            };
            let flushed = partitions.iter().map(flush).collect::<Result<_, _>>();
            // A drop may fail the flush. Then it is gone, or there is the next one of that name.
            let is_same = || self.partitions(tenant, name).is_some_and(|now| Arc::ptr_eq(&now, &partitions));
            if flushed.is_ok() || is_same() || more.next().is_none() {
                return flushed.map(Some);
            }
        }
    }
}

impl ControlPlane {
    /// Writes a backup of the collections and records in the bucket to `out`, as [`Store::backup`] does. Each partition
    /// is at one position, no earlier than this call. Only the reader's pin is written to the bucket.
    ///
    /// # Errors
    /// Those of [`Store::backup`], and errors of the owner or the bucket.
    pub fn backup(
        &self,
        owner: &dyn Flusher,
        scope: &BackupScope,
        have: &BTreeMap<String, u32>,
        out: &mut dyn Write,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Backup, StoreError> {
        let (bucket, seams) = self.bucket();
        let own = Seams { disk: Arc::new(MemoryDisk::new()), ..seams.clone() };
        let options = Options { background: false, ..Options::at(ROOT) };
        let store = Store::open_to_follow_some(options, own, bucket.clone())?;
        let mut rest: VecDeque<_> = owner.all()?.into();
        rest.retain(|(tenant, _)| scope.takes(tenant));
        let mut records = Vec::new();
        for kind in self.kinds()? {
            let kept = self.records(&kind);
            // Read now, so that damage refuses the backup instead of interrupting it.
            kept.names()?;
            records.push((kind, Box::new(kept) as Box<dyn RecordSource>));
        }
        let sent = BackupRequest { scope, have, cancelled, made: seams.clock.now() };
        let mut reading = CollectionPins { store: &store, owner, cancelled, rest, open: None };
        let audit = |sink: &mut LineSink<'_>| self.audit().copy(sink);
        let backup = renewing(&|| store.renew_pin(), || sent.all(out, &records, &audit, &mut reading));
        store.close()?;
        backup
    }
}

/// Pins one collection after another.
struct CollectionPins<'a> {
    store: &'a Store,
    owner: &'a dyn Flusher,
    cancelled: &'a dyn Fn() -> bool,
    rest: VecDeque<(String, String)>,
    /// The collection that is currently open.
    open: Option<(String, String)>,
}

impl CollectionPins<'_> {
    /// Pins all partitions of a collection; `None` if it was dropped since the collections were listed.
    fn pin(&self, tenant: &str, name: &str) -> Result<Option<Vec<PinnedFiles>>, StoreError> {
        let mut more = 1..TRIES;
        loop {
            match self.try_pin(tenant, name) {
                // A drop may fail any step. The owner says next that it is gone, or flushes the next one of that name.
                Err(_) if more.next().is_some() && !(self.cancelled)() => self.store.forget(tenant, name),
                pinned => return pinned,
            }
        }
    }

    fn try_pin(&self, tenant: &str, name: &str) -> Result<Option<Vec<PinnedFiles>>, StoreError> {
        let Some(positions) = self.owner.flush(tenant, name)? else { return Ok(None) };
        let Some(partitions) = self.store.follow(tenant, name)? else {
            let detail = format!("the bucket does not show the collection {name}, which its owner has: try again");
            return Err(StoreError::Busy(detail));
        };
        let shown: Positions = partitions.iter().map(|partition| partition.position()).collect();
        if !shown.covers(&positions) {
            let detail = format!(
                "the bucket shows the collection {name} at position {shown}, and its owner has flushed {positions}: try again"
            );
            return Err(StoreError::Busy(detail));
        }
        partitions.iter().map(|partition| partition.pin()).collect::<Result<_, _>>().map(Some)
    }
}

impl Iterator for CollectionPins<'_> {
    type Item = Result<Vec<PinnedFiles>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // In place of the previous one.
            if let Some((tenant, name)) = self.open.take() {
                self.store.forget(&tenant, &name);
            }
            let (tenant, name) = self.rest.pop_front()?;
            let pinned = self.pin(&tenant, &name).transpose();
            self.open = Some((tenant, name));
            if pinned.is_some() {
                return pinned;
            }
        }
    }
}
