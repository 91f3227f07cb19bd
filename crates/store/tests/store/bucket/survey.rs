//! The results of a survey of a bucket, and that it changes nothing.

use super::{Process, WriteOutcome, seams, write};
use meridian_store::SharedLog;
use meridian_store::bucket::{Bucket, FlushedTotals, MemoryBucket, Survey};
use std::sync::Arc;

fn look(survey: &Survey) -> FlushedTotals {
    let mut all = survey.collections(Some(&SharedLog::Bucket)).unwrap();
    assert_eq!(all.len(), 1);
    let one = all.remove(0);
    assert_eq!((one.tenant.as_str(), one.name.as_str()), ("t", "c"));
    one.flushed.unwrap()
}

#[test]
fn a_look_finds_what_is_flushed_and_what_is_not_and_writes_nothing() {
    let bucket = MemoryBucket::new();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let survey = Survey::new(&shared, &seams());
    assert_eq!(survey.log().unwrap(), "bucket");
    assert!(survey.owners().unwrap().iter().all(|owner| owner.term.is_none()) && survey.readers().unwrap().is_empty());
    assert!(survey.collections(None).unwrap().is_empty());

    let first = Process::first(&bucket);
    assert_eq!(write(&first.collection, 1), WriteOutcome::Stored);
    let before = look(&survey);
    assert_eq!((before.segments, before.rows, before.bytes), (0, 0, 0));
    let tail = before.tail.unwrap().unwrap();
    assert!(tail.entries > 0 && tail.bytes > Some(0), "{tail:?}");
    first.collection.flush().unwrap();

    let objects = bucket.objects().len();
    let after = look(&survey);
    assert_eq!((after.segments, after.rows), (1, 3));
    assert!(
        after.bytes > 0
            && after.version > before.version
            && after.position != before.position
            && after.position.covers(&before.position)
    );
    assert_eq!(after.tail.unwrap().unwrap().entries, 0);
    assert!(survey.collections(None).unwrap()[0].flushed.as_ref().unwrap().tail.is_none());
    assert_eq!(bucket.objects().len(), objects);
}
