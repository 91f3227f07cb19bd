//! Marks a bucket as being restored. Until the mark is removed, no process serves the bucket.

use super::create::{CreateOutcome, create};
use super::{Bucket, COLLECTIONS, peers, pins, records, roll};
use crate::error::StoreError;
use crate::seams::Clock;
use meridian_model::Invalid;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the object that identifies the backup being restored.
const NAME: &str = "restoring";
/// Name of the object that records that the bucket was empty when the restore began.
const BEGUN: &str = "restoring-empty";
/// Prefixes of names in a bucket that a cluster has used, or that a server reads. A running server would serve half a
/// restore.
const USED: [&str; 8] =
    [COLLECTIONS, records::RECORDS, "audit/", "leases/", "tenants/", pins::FOLDER, peers::FOLDER, roll::FOLDER];

fn path(bucket: &dyn Bucket) -> PathBuf {
    Path::new(&bucket.place()).join(NAME)
}

/// Refuses a bucket with an incomplete restore.
///
/// # Errors
/// [`StoreError::Invalid`] for such a bucket, [`StoreError::Io`] if the bucket does not answer.
pub fn check_whole(bucket: &dyn Bucket) -> Result<(), StoreError> {
    match bucket.len(NAME) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(StoreError::io("read", &path(bucket))(e)),
        Ok(_) => {
            let detail = format!(
                "a restore into {} is at work, or was broken off: run it again until it ends, or empty the bucket",
                bucket.place()
            );
            Err(Invalid::field("bucket", detail).into())
        }
    }
}

/// Marks an empty bucket as being restored from the backup that this note identifies; does nothing if it is already
/// marked so.
///
/// # Errors
/// [`StoreError::Invalid`] if the bucket holds other content, or part of another backup; errors of the bucket.
pub(crate) fn begin(bucket: &dyn Bucket, clock: &dyn Clock, note: &str) -> Result<(), StoreError> {
    let refuse = |why: &str| Err(Invalid::field("bucket", format!("{} {why}", bucket.place())).into());
    let used = |bucket| match first_used(bucket)? {
        Some(name) => refuse(&format!("is not empty, it holds {name}: name a bucket or a prefix without objects")),
        None => Ok(()),
    };
    if !is_begun(bucket)? {
        used(bucket)?;
    }
    match create(bucket, clock, NAME, note.as_bytes()) {
        // Also after an interrupted attempt of the same restore, whose object has these bytes.
        Ok(CreateOutcome::Ours) => {}
        Ok(CreateOutcome::Theirs(_)) => {
            return refuse("holds the beginning of another restore: run that one again, or empty the bucket");
        }
        Err(failure) => return Err(StoreError::io("create", &path(bucket))(failure.into_error())),
    }
    if is_begun(bucket)? {
        return Ok(());
    }
    // Checked again after the mark: an owner takes its lease before it checks for the mark, so one of the two sees the
    // other.
    if let Err(refused) = used(bucket) {
        end(bucket)?;
        return Err(refused);
    }
    create(bucket, clock, BEGUN, b"")
        .map(drop)
        .map_err(|failure| StoreError::io("create", &path(bucket))(failure.into_error()))
}

/// Returns the name of an existing object of a cluster.
fn first_used(bucket: &dyn Bucket) -> Result<Option<String>, StoreError> {
    for folder in USED {
        let names = bucket.list(folder).map_err(StoreError::io("list", &Path::new(&bucket.place()).join(folder)))?;
        if let Some(name) = names.into_iter().next() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn is_begun(bucket: &dyn Bucket) -> Result<bool, StoreError> {
    match bucket.len(BEGUN) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(StoreError::io("read", &path(bucket))(e)),
    }
}

/// Marks the restore as complete: from here on the bucket is served.
pub(crate) fn end(bucket: &dyn Bucket) -> Result<(), StoreError> {
    // The mark last: without the other object a retry would be refused, but an incomplete bucket is never served.
    for name in [BEGUN, NAME] {
        bucket.delete(name).map_err(StoreError::io("remove", &Path::new(&bucket.place()).join(name)))?;
    }
    Ok(())
}
