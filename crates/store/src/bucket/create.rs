//! Creates an object and determines the outcome: the steps of `model::policy::owner`, executed against a bucket.

use super::{Bucket, Put};
use crate::seams::Clock;
use meridian_model::policy::owner::{self, Create, CreateStep, GetOutcome, PutOutcome, Rules};
use std::io::{self, ErrorKind};

/// The object that has the name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CreateOutcome {
    /// The caller's object, durably.
    Ours,
    /// Another object.
    Theirs(Vec<u8>),
}

/// Why a create failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The object does not exist and never will.
    Clean(io::Error),
    /// The object may exist or may yet appear.
    Unknown(io::Error),
}

impl Failure {
    pub(super) fn into_error(self) -> io::Error {
        match self {
            Failure::Clean(error) | Failure::Unknown(error) => error,
        }
    }
}

/// Returns the outcome of a create in the form that the protocol's steps take.
pub(super) fn outcome(created: &Result<CreateOutcome, Failure>) -> owner::CreateOutcome {
    match created {
        Ok(CreateOutcome::Ours) => owner::CreateOutcome::Ours,
        Ok(CreateOutcome::Theirs(_)) => owner::CreateOutcome::Theirs,
        Err(Failure::Clean(_)) => owner::CreateOutcome::Refused,
        Err(Failure::Unknown(_)) => owner::CreateOutcome::Unknown,
    }
}

/// Creates an object whose bytes are unique to this writer and this attempt.
pub(super) fn create(
    bucket: &dyn Bucket,
    clock: &dyn Clock,
    name: &str,
    bytes: &[u8],
) -> Result<CreateOutcome, Failure> {
    let mut create = Create::new(Rules::SERVER);
    // The bucket's last error, and the object found under the name.
    let (mut said, mut found) = (None, Vec::new());
    let last = |said: Option<io::Error>| {
        said.unwrap_or_else(|| io::Error::other(format!("{name} is said to exist, and cannot be read")))
    };
    loop {
        match create.step() {
            CreateStep::Put => create.put(match bucket.put(name, bytes) {
                Ok(Put::Created) => PutOutcome::Created,
                Ok(Put::Exists) => PutOutcome::Exists,
                Err(error) => {
                    let answer = answer_of(&error);
                    said = Some(error);
                    answer
                }
            }),
            CreateStep::Get => create.got(match bucket.get(name) {
                Ok(stands) if stands == bytes => GetOutcome::Ours,
                Ok(stands) => {
                    found = stands;
                    GetOutcome::Theirs
                }
                Err(error) if error.kind() == ErrorKind::NotFound => GetOutcome::Absent,
                Err(error) => {
                    said = Some(error);
                    GetOutcome::Failed
                }
            }),
            CreateStep::Settle => {
                let settled = bucket.settle(name);
                create.settled(settled.is_ok());
                said = settled.err().or(said);
            }
            CreateStep::Pause(pause) => {
                clock.sleep(pause);
                create.paused();
            }
            CreateStep::Done(owner::CreateOutcome::Ours) => return Ok(CreateOutcome::Ours),
            CreateStep::Done(owner::CreateOutcome::Theirs) => return Ok(CreateOutcome::Theirs(found)),
            CreateStep::Done(owner::CreateOutcome::Refused) => return Err(Failure::Clean(last(said))),
            CreateStep::Done(owner::CreateOutcome::Unknown) => return Err(Failure::Unknown(last(said))),
        }
    }
}

/// Classifies the effect of a failed create by its error.
fn answer_of(error: &io::Error) -> PutOutcome {
    match error {
        certain if is_certain(certain) => PutOutcome::Refused,
        lost if is_lost_answer(lost) => PutOutcome::Lost,
        // The store reports a failure, not slowness.
        _ => PutOutcome::Failed,
    }
}

/// Returns true if a create with this error had no effect and never will.
fn is_certain(error: &io::Error) -> bool {
    use ErrorKind::{InvalidInput, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull, Unsupported};
    matches!(
        error.kind(),
        StorageFull | QuotaExceeded | PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported
    )
}

/// Returns true if only the answer was lost, so that the call may have taken full effect.
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
            assert_eq!(create(&bucket, &clock, "a", b"one").unwrap(), CreateOutcome::Ours, "{fault:?}");
            bucket.deliver();
            assert_eq!(bucket.get("a").unwrap(), b"one", "{fault:?}");
            bucket.fail(fault, 0);
            let other = create(&bucket, &clock, "a", b"two").unwrap();
            assert_eq!(other, CreateOutcome::Theirs(b"one".to_vec()), "{fault:?}");
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
        // Refused after one whose answer was lost, which may still arrive.
        bucket.fail(BucketFault::Stalled, 0);
        (0..3).for_each(|_| bucket.fail(BucketFault::Full, 0));
        assert!(matches!(create(&bucket, &clock, "a", b"one"), Err(Failure::Unknown(_))));
    }
}
