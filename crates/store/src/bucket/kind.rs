//! The kind of log that the collections of a bucket have: owners with different logs would miss each other's
//! acknowledged writes.
//!
//! For a log outside the bucket the object also holds a random id of the bucket. Stream names contain it, so that
//! several buckets can share an account.

use super::create::{CreateOutcome, create};
use super::{Bucket, COLLECTIONS};
use crate::error::StoreError;
use crate::seams::{Random, Seams};
use crate::stream::SharedLog;
use meridian_model::Invalid;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the object that holds the log's kind and the bucket's id, as `nats abcd2345`. Absent while the log is in the
/// bucket.
const NAME: &str = "log";
/// Letters of an id, of 5 bits each. Short, because every message of a stream has it in its subject, and few buckets
/// share an account.
const ID_LEN: u32 = 8;
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Checks that the collections have this log. The first owner with an external log records that in the bucket. Returns
/// the id of the bucket, which is empty if the log is in it.
///
/// # Errors
/// [`StoreError::Invalid`] if they have another; [`StoreError::Corrupt`] if the object cannot be parsed;
/// [`StoreError::Io`] if the bucket does not answer.
pub(crate) fn check_log(bucket: &dyn Bucket, seams: &Seams, log: &SharedLog) -> Result<String, StoreError> {
    let kind = log.kind();
    let found = match bucket.get(NAME) {
        Ok(found) => {
            // Without the object the streams belong to no bucket. Its creator may have ended before it was durable.
            bucket.settle(NAME).map_err(StoreError::io("sync", &path(bucket)))?;
            found
        }
        Err(e) if e.kind() == ErrorKind::NotFound && matches!(log, SharedLog::Bucket) => return Ok(String::new()),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            // Collections created before anything was recorded have their log in the bucket.
            let made = bucket.list(COLLECTIONS).map_err(StoreError::io("list", &path(bucket)))?;
            if !made.is_empty() {
                return Err(other("bucket", kind));
            }
            let id = new_id(seams.random.as_ref());
            match create(bucket, seams.clock.as_ref(), NAME, format!("{kind} {id}").as_bytes()) {
                Ok(CreateOutcome::Ours) => return Ok(id),
                // Another owner was first: its id is that of the bucket.
                Ok(CreateOutcome::Theirs(found)) => found,
                Err(failure) => return Err(StoreError::io("create", &path(bucket))(failure.into_error())),
            }
        }
        Err(e) => return Err(StoreError::io("read", &path(bucket))(e)),
    };
    let (found, id) = parse(&found);
    match log {
        _ if found != kind => Err(other(&found, kind)),
        SharedLog::Streams { .. } if !is_id(&id) => {
            let detail =
                format!("it has the id {id:?}: expected {ID_LEN} letters and digits after the kind of the log");
            Err(StoreError::corrupt(&path(bucket), detail))
        }
        SharedLog::Streams { .. } => Ok(id),
        SharedLog::Bucket => Ok(String::new()),
    }
}

/// Checks, at the start of a process that may become the owner, that the collections have a log of this kind, `bucket`
/// or `nats`. Writes nothing to the bucket.
///
/// # Errors
/// As at the takeover, which checks again: [`StoreError::Invalid`], and [`StoreError::Io`] if the bucket does not
/// answer.
pub fn expect_log(bucket: &dyn Bucket, kind: &str) -> Result<(), StoreError> {
    let found = match bucket.get(NAME) {
        Ok(found) => parse(&found).0,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let made = bucket.list(COLLECTIONS).map_err(StoreError::io("list", &path(bucket)))?;
            if made.is_empty() { kind.to_owned() } else { "bucket".to_owned() }
        }
        Err(e) => return Err(StoreError::io("read", &path(bucket))(e)),
    };
    if found == kind { Ok(()) } else { Err(other(&found, kind)) }
}

/// Returns the recorded kind of log and the bucket's id.
pub(crate) fn said(bucket: &dyn Bucket) -> Result<(String, String), StoreError> {
    match bucket.get(NAME) {
        Ok(found) => Ok(parse(&found)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok((SharedLog::Bucket.kind().to_owned(), String::new())),
        Err(e) => Err(StoreError::io("read", &path(bucket))(e)),
    }
}

fn path(bucket: &dyn Bucket) -> PathBuf {
    Path::new(&bucket.place()).join(NAME)
}

/// Splits the text into kind and id.
fn parse(found: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(found);
    let (kind, id) = text.split_once(' ').unwrap_or((&*text, ""));
    (kind.to_owned(), id.to_owned())
}

/// Returns true if the id can be part of a stream's name.
pub(super) fn is_id(id: &str) -> bool {
    id.len() == ID_LEN as usize && id.bytes().all(|byte| LETTERS.contains(&byte))
}

fn new_id(random: &dyn Random) -> String {
    let bits = random.next_u64();
    (0..ID_LEN).map(|at| char::from(LETTERS[(bits >> (5 * at)) as usize % LETTERS.len()])).collect()
}

fn other(found: &str, wanted: &str) -> StoreError {
    let detail =
        format!("the collections in this bucket have the log {found:?}, not {wanted:?}: expected --log {found}");
    Invalid::field("log", detail).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;
    use crate::seams::{ManualClock, MemoryDisk, SeededRandom};
    use crate::stream::MemoryStreams;
    use std::sync::Arc;

    fn seams(seed: u64) -> Seams {
        Seams {
            disk: Arc::new(MemoryDisk::new()),
            clock: Arc::new(ManualClock::new(0)),
            random: Arc::new(SeededRandom::new(seed)),
        }
    }

    #[test]
    fn the_first_owner_gives_a_bucket_its_id() {
        let log = SharedLog::Streams { streams: Arc::new(MemoryStreams::default()), accept_loss: false };
        let (one, two) = (MemoryBucket::new(), MemoryBucket::new());
        let id = check_log(&one, &seams(1), &log).unwrap();
        assert!(is_id(&id), "{id}");
        assert_eq!(check_log(&one, &seams(2), &log).unwrap(), id);
        assert_eq!(said(&one).unwrap(), ("nats".to_owned(), id.clone()));
        assert_ne!(check_log(&two, &seams(2), &log).unwrap(), id);
        assert!(matches!(check_log(&one, &seams(1), &SharedLog::Bucket), Err(StoreError::Invalid(_))));
        for bytes in ["nats", "nats m.>", "nats ABCDEFGH"] {
            one.harm(NAME, Some(bytes.as_bytes().to_vec()));
            assert!(matches!(check_log(&one, &seams(1), &log), Err(StoreError::Corrupt { .. })), "{bytes}");
        }
    }
}
