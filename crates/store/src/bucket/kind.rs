//! Which log the collections of a bucket have: two owners with different ones would each miss what the other has acknowledged.

use super::Bucket;
use super::create::{Created, create};
use crate::error::StoreError;
use crate::seams::Clock;
use crate::stream::SharedLog;
use meridian_model::Invalid;
use std::io::ErrorKind;
use std::path::Path;

/// Holds the log's kind, unless that is the bucket.
const NAME: &str = "log";

/// Checks that the collections have this log. The first owner with another one than the bucket says so there.
///
/// # Errors
/// [`StoreError::Invalid`]: they have another; [`StoreError::Io`]: the bucket does not answer.
pub(crate) fn check_log(bucket: &dyn Bucket, clock: &dyn Clock, log: &SharedLog) -> Result<(), StoreError> {
    let kind = log.kind();
    let path = || Path::new(&bucket.place()).join(NAME);
    let found = match bucket.get(NAME) {
        Ok(found) => found,
        Err(e) if e.kind() == ErrorKind::NotFound && matches!(log, SharedLog::Bucket) => return Ok(()),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            // Collections that were made before anything was said have their log in the bucket.
            let made = bucket.list("collections/").map_err(StoreError::io("list", &path()))?;
            if !made.is_empty() {
                return Err(other("bucket", kind));
            }
            match create(bucket, clock, NAME, kind.as_bytes()) {
                Ok(Created::Ours) => return Ok(()),
                Ok(Created::Theirs(found)) => found,
                Err(failure) => return Err(StoreError::io("create", &path())(failure.into_error())),
            }
        }
        Err(e) => return Err(StoreError::io("read", &path())(e)),
    };
    match found == kind.as_bytes() {
        true => Ok(()),
        false => Err(other(&String::from_utf8_lossy(&found), kind)),
    }
}

/// Which log the collections of a bucket have, as far as an owner has said.
pub(super) fn kind_of(bucket: &dyn Bucket) -> Result<String, StoreError> {
    match bucket.get(NAME) {
        Ok(found) => Ok(String::from_utf8_lossy(&found).into_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(SharedLog::Bucket.kind().to_owned()),
        Err(e) => Err(StoreError::io("read", &Path::new(&bucket.place()).join(NAME))(e)),
    }
}

fn other(found: &str, wanted: &str) -> StoreError {
    let detail =
        format!("the collections in this bucket have the log {found:?}, not {wanted:?}: expected --log {found}");
    Invalid::field("log", detail).into()
}
