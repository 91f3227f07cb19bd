//! A bucket that lost or changed what it was given, is full, or does not answer.

use super::{Fate, Process, Writes, open, seams, write};
use crate::world::{batch, content, options};
use meridian_store::bucket::{BucketFault, MemoryBucket};
use meridian_store::{Options, Store, Write, WriteError};
use std::sync::Arc;

/// Names of the log's groups, oldest first.
fn groups(bucket: &MemoryBucket) -> Vec<String> {
    let mut names: Vec<(String, usize)> = bucket.objects();
    names.retain(|(name, bytes)| name.contains("/wal/") && *bytes > 200);
    let mut names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    names
}

#[test]
fn a_group_that_is_gone_or_damaged_is_named_and_stops_the_collection() {
    for gone in [true, false] {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        (1..6).for_each(|number| assert_eq!(write(&owner.collection, number), Fate::Stored));
        drop(owner);
        let name = groups(&bucket)[2].clone();
        bucket.harm(&name, (!gone).then(|| vec![7; 300]));
        let store = open(&bucket).unwrap();
        let problems = store.problems();
        let file = name.rsplit('/').next().unwrap();
        assert!(problems.iter().any(|problem| problem.to_string().contains(file)), "{problems:?}");
        let c = store.collection("t", "c").unwrap();
        assert_eq!(content(&c.snapshot()).len(), 12, "what is there is served");
        assert_eq!(write(&c, 9), Fate::Refused);
        // Neither the next process nor a flush makes anything of it.
        drop((store, c));
        let store = open(&bucket).unwrap();
        assert_eq!(content(&store.collection("t", "c").unwrap().snapshot()).len(), 12);
        assert!(!store.problems().is_empty());
    }
}

#[test]
fn a_manifest_that_is_damaged_is_named_and_nothing_is_served() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    write(&owner.collection, 1);
    drop(owner);
    let newest = bucket.objects().into_iter().map(|(name, _)| name).rfind(|name| name.contains("/manifests/")).unwrap();
    bucket.harm(&newest, Some(vec![7; 300]));
    let store = open(&bucket).unwrap();
    assert!(store.collection("t", "c").is_none());
    let damaged = store.why_damaged("t", "c").unwrap().to_string();
    assert!(damaged.contains(newest.rsplit('/').next().unwrap()), "{damaged}");
}

#[test]
fn a_full_bucket_refuses_and_one_that_is_gone_leaves_it_open() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    let mut writes = Writes::default();
    writes.write(&owner.collection);
    bucket.fail(BucketFault::Full, 0);
    let c = &owner.collection;
    let full = c.write(Write::new(batch(&c.schema(), &[crate::world::Event::new("full", 1)])));
    assert!(matches!(full, Err(WriteError::Full(_))), "{full:?}");
    assert_eq!(writes.write(c), Fate::Stored);
    assert!(!owner.store.is_outdated());
    bucket.cut(true);
    assert_eq!(writes.write(c), Fate::Unknown);
    assert_eq!(writes.write(c), Fate::Refused);
    assert!(owner.store.is_outdated(), "it does not know what the log holds");
    assert!(open(&bucket).is_err(), "a bucket that does not answer is no empty one");
    bucket.cut(false);
    let next = Process::next(&bucket);
    writes.compare(&next.collection);
    assert_eq!(writes.write(&next.collection), Fate::Stored);
}

#[test]
fn a_store_in_memory_has_no_bucket() {
    let bucket = Arc::new(MemoryBucket::new());
    let ephemeral = Options { ephemeral: true, ..options() };
    let refused = Store::open_shared(ephemeral, seams(), bucket).unwrap_err().to_string();
    assert!(refused.contains("data folder"), "{refused}");
}
