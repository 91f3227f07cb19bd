//! A create and what came of it, found out instead of guessed.
//!
//! The answer to a create may be lost, late, or "exists" for the caller's own object. So each object holds who wrote it and for what: what
//! stands under the name is read back and compared, byte by byte. A create whose answer was lost is sent again as it was: whichever of the
//! two arrives first, the object is the same.

use super::{Bucket, Put};
use crate::seams::Clock;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How often a create is sent.
const TRIES: u32 = 4;
/// Pause before the second try; it doubles from then on.
const PAUSE: Duration = Duration::from_millis(100);

/// What stands under the name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Created {
    /// The caller's object, durably.
    Ours,
    /// Another object.
    Theirs(Vec<u8>),
}

/// Why a create did not come to an end.
#[derive(Debug)]
pub(super) enum Failure {
    /// The object is not there, nor will be.
    Clean(io::Error),
    /// It may be there, or may yet appear.
    Unknown(io::Error),
}

impl Failure {
    pub(super) fn into_error(self) -> io::Error {
        match self {
            Failure::Clean(error) | Failure::Unknown(error) => error,
        }
    }
}

/// Creates an object whose bytes no other writer, and no other attempt of this one, would write.
pub(super) fn create(bucket: &dyn Bucket, clock: &dyn Clock, name: &str, bytes: &[u8]) -> Result<Created, Failure> {
    // Once one attempt may be on its way, a later one that is surely refused proves nothing about it.
    let mut doubt: Option<io::Error> = None;
    for turn in 0..TRIES {
        if turn > 0 {
            clock.sleep(PAUSE * (1 << (turn - 1)));
        }
        match bucket.put(name, bytes) {
            Ok(Put::Created) => return Ok(Created::Ours),
            Ok(Put::Exists) => {}
            Err(error) if doubt.is_none() && is_certain(&error) => return Err(Failure::Clean(error)),
            Err(error) => {
                // The store says that it failed, not that it was slow: an object that can be read may still not be durable.
                if !is_lost_answer(&error) {
                    return Err(Failure::Unknown(error));
                }
                doubt = Some(error);
            }
        }
        match bucket.get(name) {
            Ok(found) if found == bytes => {
                return bucket.settle(name).map(|()| Created::Ours).map_err(Failure::Unknown);
            }
            Ok(found) => return Ok(Created::Theirs(found)),
            // Not there yet, or deleted since: sent again, it is the same object.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => doubt = Some(error),
        }
    }
    Err(Failure::Unknown(
        doubt.unwrap_or_else(|| io::Error::other(format!("{name} is said to exist, and cannot be read"))),
    ))
}

/// Whether a create that failed so had no effect, nor will have.
fn is_certain(error: &io::Error) -> bool {
    use ErrorKind::{InvalidInput, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull, Unsupported};
    matches!(
        error.kind(),
        StorageFull | QuotaExceeded | PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported
    )
}

/// Whether the answer was lost on its way, so that the call may have been done in full.
pub(super) fn is_lost_answer(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, TimedOut};
    matches!(
        error.kind(),
        TimedOut | ConnectionReset | ConnectionAborted | ConnectionRefused | BrokenPipe | Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{BucketFault, MemoryBucket};
    use crate::seams::ManualClock;

    #[test]
    fn what_came_of_a_create_is_found_out() {
        let clock = ManualClock::new(0);
        for fault in [BucketFault::Before, BucketFault::After, BucketFault::Doubled, BucketFault::Stalled] {
            let bucket = MemoryBucket::new();
            bucket.fail(fault, 0);
            assert_eq!(create(&bucket, &clock, "a", b"one").unwrap(), Created::Ours, "{fault:?}");
            bucket.deliver();
            assert_eq!(bucket.get("a").unwrap(), b"one", "{fault:?}");
            bucket.fail(fault, 0);
            let other = create(&bucket, &clock, "a", b"two").unwrap();
            assert_eq!(other, Created::Theirs(b"one".to_vec()), "{fault:?}");
        }
    }

    #[test]
    fn what_cannot_be_found_out_is_unknown_and_what_was_refused_is_not() {
        let (bucket, clock) = (MemoryBucket::new(), ManualClock::new(0));
        bucket.cut(true);
        assert!(matches!(create(&bucket, &clock, "a", b"one"), Err(Failure::Unknown(_))));
        bucket.cut(false);
        bucket.fail(BucketFault::Full, 0);
        assert!(matches!(create(&bucket, &clock, "a", b"one"), Err(Failure::Clean(_))));
        // Refused after one whose answer was lost: that one may still arrive.
        bucket.fail(BucketFault::Stalled, 0);
        (0..3).for_each(|_| bucket.fail(BucketFault::Full, 0));
        assert!(matches!(create(&bucket, &clock, "a", b"one"), Err(Failure::Unknown(_))));
    }
}
