//! Reads everything in a bucket and reports what is damaged, with or without running servers of its cluster.
//!
//! It reads like a read-only server, so it writes only the pin that keeps the objects in place.

use crate::bucket::{BucketLog, BucketStorage, ReadOnly, Survey, check_whole, groups_of, kind, renewing, terms_of};
use crate::control::ControlPlane;
use crate::error::{Problem, StoreError};
use crate::options::{Options, PARTITIONS_MAX};
use crate::paths::partition_dir;
use crate::recovery::leftovers::newest_unnamed;
use crate::seams::Bucket;
use crate::seams::{MemoryDisk, Registry, Seams, Storage};
use crate::store::Store;
use crate::stream::SharedLog;
use meridian_model::Invalid;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Placeholder for the data folder, which does not exist; object names do not contain it.
const ROOT: &str = "/data";
/// Max reads of a log whose owner flushes meanwhile.
const TRIES: usize = 4;

/// The result of a check.
#[derive(Debug)]
pub struct CheckReport {
    /// The damage found; empty if everything is in order.
    pub problems: Vec<Problem>,
    /// Number of collections, including damaged ones, without dropped and incomplete ones.
    pub collections: usize,
    /// Whether the logs were read; logs in NATS are not.
    pub logs: bool,
}

/// Reads manifests, segments, logs, records, audit lines, the owners' leases and pins of a bucket, and verifies every
/// checksum and tree. Takes as long as reading the whole bucket.
///
/// # Errors
/// [`StoreError::Invalid`] for a bucket that no cluster has used, and if the bucket does not answer. Damage is reported
/// in [`CheckReport::problems`].
pub fn check_bucket(bucket: &Arc<dyn Bucket>, seams: &Seams) -> Result<CheckReport, StoreError> {
    check_whole(bucket.as_ref())?;
    let options = Options { background: false, ..Options::at(ROOT) };
    let own = Seams { disk: Arc::new(MemoryDisk::new()), ..seams.clone() };
    let read_only: Arc<dyn Bucket> = Arc::new(ReadOnly(bucket.clone()));
    let storage = BucketStorage::new(read_only.clone(), seams.clone(), ROOT, 0, Duration::ZERO);
    let logs = kind::said(bucket.as_ref())?.0 == SharedLog::Bucket.kind();
    let all = storage.collections()?;
    // A mistyped address must not pass for a sound bucket.
    if all.is_empty() && matches!(groups_of(bucket.as_ref()), Ok(None)) {
        let detail = "there are no collections, and no owner ever was there: expected the bucket of a cluster";
        return Err(Invalid::new(detail).into());
    }
    let mut problems = match Store::open_read_only(options, own, bucket.clone()) {
        Ok(store) => {
            // A failed refresh shows up in the check.
            let problems = renewing(&|| drop(store.refresh()), || store.check());
            store.close()?;
            problems
        }
        // Without the owner's lease nothing can be concluded from the rest.
        Err(error @ StoreError::Corrupt { .. }) => {
            vec![Problem::of(&error).and("collections are not checked without it")]
        }
        Err(error) => return Err(error),
    };
    let mut collections = 0;
    for (tenant, name) in &all {
        let dir = |partition| partition_dir(Path::new(ROOT), tenant, name, partition);
        let catalog = storage.partition(&dir(0), 0).catalog;
        let partitions = match catalog.newest() {
            Ok(Some(first)) if !first.manifest.making => first.manifest.settings.partitions.min(PARTITIONS_MAX),
            // Dropped or incomplete: the list has these too.
            Ok(_) => continue,
            // Reported with its collection.
            Err(_) => 1,
        };
        collections += 1;
        let of =
            |partition| check_log(&read_only, seams, &storage, &dir(partition)).unwrap_or_else(|error| vec![error]);
        let found: Vec<StoreError> = (0..u32::from(partitions)).filter(|_| logs).flat_map(of).collect();
        // As in the check of the store, it may have been dropped meanwhile.
        if found.is_empty() || !catalog.is_ended().unwrap_or(false) {
            problems.extend(found.iter().map(Problem::of));
        }
    }
    problems.extend(check_shared(&read_only, seams)?.iter().map(Problem::of));
    let mut seen = BTreeSet::new();
    problems.retain(|problem| seen.insert((problem.path.clone(), problem.detail.clone())));
    Ok(CheckReport { problems, collections, logs })
}

/// Returns problems of a partition's log after its newest manifest, and a file with a write that neither of them knows:
/// then a manifest is lost, and its receipt with it.
fn check_log(
    bucket: &Arc<dyn Bucket>,
    seams: &Seams,
    storage: &BucketStorage,
    dir: &Path,
) -> Result<Vec<StoreError>, StoreError> {
    let (partition, folder) = (storage.partition(dir, 0), format!("{}/wal/", storage.place_of(dir)));
    let catalog = partition.catalog;
    let mut newest = catalog.newest()?;
    for _ in 0..TRIES {
        let Some(manifest) = newest.map(|newest| newest.manifest) else { break };
        let log = BucketLog::new(bucket.clone(), seams.clock.clone(), folder.clone(), 0, 0);
        // Before the log: what a running owner flushes at this moment is in the log, which is released after its
        // manifest is there.
        let unnamed = newest_unnamed(partition.objects.as_ref(), &manifest)?;
        let (mut damage, last) = log.check(manifest.flushed, manifest.log)?;
        // Behind damage the end of the log is not known.
        if let Some((path, position)) = unnamed.filter(|(_, position)| damage.is_empty() && *position > last) {
            let detail = format!(
                "it holds writes up to {position}, and the newest manifest and the log know of writes up to {last}: a \
                 manifest is lost, or the end of the log"
            );
            damage.push(StoreError::corrupt(&path, detail));
        }
        newest = catalog.newest()?;
        // Objects covered by a newer manifest are removed, and only seem to be missing.
        if damage.is_empty() || newest.as_ref().is_some_and(|now| now.manifest.version() == manifest.version()) {
            return Ok(damage);
        }
    }
    Ok(Vec::new())
}

/// Returns problems of the objects that the processes of a cluster share beside collections.
fn check_shared(bucket: &Arc<dyn Bucket>, seams: &Seams) -> Result<Vec<StoreError>, StoreError> {
    let control = ControlPlane::new(bucket.clone(), seams, u64::MAX);
    let kinds = control.kinds()?;
    let mut found: Vec<StoreError> = kinds.iter().filter_map(|kind| control.records(kind).names().err()).collect();
    let mut after = Some(0);
    while let Some(from) = after.take() {
        match control.audit().page(from, usize::MAX, &|_| false) {
            Ok(page) => after = page.next.filter(|next| *next > from),
            Err(error) => found.push(error),
        }
    }
    match groups_of(bucket.as_ref()) {
        Ok(groups) => {
            let terms = groups.into_iter().flat_map(|groups| terms_of(bucket, groups));
            found.extend(terms.filter_map(|terms| terms.newest().err()));
        }
        Err(error) => found.push(error),
    }
    found.extend(Survey::new(bucket, seams).readers()?.into_iter().filter_map(|reader| reader.uses.err()));
    Ok(found)
}
