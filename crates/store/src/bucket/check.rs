//! Reads everything in a bucket and names what is damaged, beside the servers of its cluster or without them.
//!
//! It reads as a server does that only reads, so the only thing written is the pin that keeps what is read in place.

use super::log::BucketLog;
use super::storage::BucketStorage;
use super::{Bucket, ControlPlane, ReadOnly, Survey, check_whole, groups_of, kind, terms_of};
use crate::error::{Problem, StoreError};
use crate::options::{Options, PARTITIONS_MAX};
use crate::seams::{MemoryDisk, Registry, Seams, Storage};
use crate::store::Store;
use crate::stream::SharedLog;
use meridian_model::Invalid;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::Builder;
use std::time::Duration;

/// Stands for the data folder, which there is none of: names in the bucket do not have it.
const ROOT: &str = "/data";
/// How often what is read is pinned again; a pin holds for much longer.
const RENEW: Duration = Duration::from_secs(5);
/// How often a log is read again because its owner has flushed meanwhile.
const TRIES: usize = 4;

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// The damage; none: everything is in order.
    pub problems: Vec<Problem>,
    /// How many collections there are, those included that are damaged.
    pub collections: usize,
    /// Whether the logs were read: those in NATS are not.
    pub logs: bool,
}

/// Reads manifests, segments, logs, records, audit lines, the owners' leases and pins of a bucket, and verifies every checksum and tree. Takes
/// as long as reading the bucket takes.
///
/// # Errors
/// [`StoreError::Invalid`] of a bucket that no cluster has used, and where the bucket does not answer. Damage is in [`Checked::problems`].
pub fn check(bucket: &Arc<dyn Bucket>, seams: &Seams) -> Result<Checked, StoreError> {
    check_whole(bucket.as_ref())?;
    let options = Options { background: false, ..Options::at(ROOT) };
    let own = Seams { disk: Arc::new(MemoryDisk::new()), ..seams.clone() };
    let read_only: Arc<dyn Bucket> = Arc::new(ReadOnly(bucket.clone()));
    let storage = BucketStorage::new(read_only.clone(), seams.clone(), ROOT, 0, Duration::ZERO);
    let logs = kind::said(bucket.as_ref())?.0 == SharedLog::Bucket.kind();
    let all = storage.collections()?;
    // A mistake in the address must not pass for a sound bucket.
    if all.is_empty() && matches!(groups_of(bucket.as_ref()), Ok(None)) {
        let detail = "there are no collections, and no owner ever was there: expected the bucket of a cluster";
        return Err(Invalid::new(detail).into());
    }
    let mut problems = match Store::open_read_only(options, own, bucket.clone()) {
        Ok(store) => {
            // What fails shows in the check.
            let problems = renewing(&|| drop(store.refresh()), || store.check());
            store.close()?;
            problems
        }
        // Without the owner's lease nothing is concluded from the rest.
        Err(error @ StoreError::Corrupt { .. }) => {
            vec![Problem::of(&error).and("collections are not checked without it")]
        }
        Err(error) => return Err(error),
    };
    if logs {
        for (tenant, name) in &all {
            let dir = |partition| Store::dir_of(Path::new(ROOT), tenant, name, partition);
            // What is wrong with the first manifest is among the problems of its collection.
            let first = storage.partition(&dir(0), 0).catalog.newest().ok().flatten();
            let partitions = first.map_or(1, |first| first.manifest.settings.partitions.min(PARTITIONS_MAX));
            for partition in 0..u32::from(partitions) {
                let found = check_log(&read_only, seams, &storage, &dir(partition));
                problems.extend(found.unwrap_or_else(|error| vec![error]).iter().map(Problem::of));
            }
        }
    }
    problems.extend(check_shared(&read_only, seams)?.iter().map(Problem::of));
    let mut seen = BTreeSet::new();
    problems.retain(|problem| seen.insert((problem.path.clone(), problem.detail.clone())));
    Ok(Checked { problems, collections: all.len(), logs })
}

/// Does something long while the pin is renewed.
pub(crate) fn renewing<T>(renew: &(dyn Fn() + Sync), work: impl FnOnce() -> T) -> T {
    let (done, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let renew = move || {
            while waits.recv_timeout(RENEW) == Err(RecvTimeoutError::Timeout) {
                renew();
            }
        };
        // Without a thread what is read stays for the owner's grace.
        let _renewing = Builder::new().spawn_scoped(scope, renew);
        // Dropped at the end, also of work that panics: the thread ends then.
        let _done = done;
        work()
    })
}

/// Problems of the log of the partition in a folder, after its newest manifest.
fn check_log(
    bucket: &Arc<dyn Bucket>,
    seams: &Seams,
    storage: &BucketStorage,
    dir: &Path,
) -> Result<Vec<StoreError>, StoreError> {
    let (catalog, folder) = (storage.partition(dir, 0).catalog, format!("{}/wal/", storage.place_of(dir)));
    let mut newest = catalog.newest()?;
    for _ in 0..TRIES {
        let Some(manifest) = newest.map(|newest| newest.manifest) else { break };
        let log = BucketLog::new(bucket.clone(), seams.clock.clone(), folder.clone(), 0, 0);
        let damage = log.damage(manifest.flushed, manifest.log)?;
        newest = catalog.newest()?;
        // What a newer manifest covers is removed, and seems to be missing.
        if damage.is_empty() || newest.as_ref().is_some_and(|now| now.manifest.version() == manifest.version()) {
            return Ok(damage);
        }
    }
    Ok(Vec::new())
}

/// Problems of the objects that the processes of a cluster share beside collections.
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
