//! A check of a bucket reports each missing or damaged object, and nothing while an owner is at work.

use super::{Process, WriteOutcome, open, seams, write};
use crate::world::schema;
use meridian_model::IdRole;
use meridian_store::bucket::{Bucket, MemoryBucket};
use meridian_store::{Act, ControlPlane, Lease, Settings, Store};
use meridian_store::{CheckReport, check_bucket};
use std::sync::Arc;
use std::time::Duration;

/// More calls than any check here makes.
const CALLS: u64 = 2_000;

fn checked(bucket: &MemoryBucket) -> CheckReport {
    check_bucket(&(Arc::new(bucket.clone()) as Arc<dyn Bucket>), &seams()).unwrap()
}

/// Returns the result of a check, as text.
fn found(bucket: &MemoryBucket) -> String {
    checked(bucket).problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// Creates a bucket with segments, an unflushed log of several objects, records, audit lines and a lease.
fn filled() -> (MemoryBucket, Process) {
    let bucket = MemoryBucket::new();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let seams = seams();
    let control = ControlPlane::new(shared.clone(), &seams, u64::MAX);
    (0..3).for_each(|n| control.records("access").put(&format!("r{n}"), b"{}").unwrap());
    for _ in 0..3 {
        control.audit().append(&[Act::default()]).unwrap();
    }
    Lease::new(&shared, "owner", "n", "host:1", Duration::from_secs(3), &seams).turn().unwrap();
    let owner = Process::first(&bucket);
    (1..4).for_each(|number| assert_eq!(write(&owner.collection, number), WriteOutcome::Stored));
    owner.collection.flush().unwrap();
    owner.collection.delete(&["w1-0".to_owned()]).unwrap();
    owner.collection.flush().unwrap();
    (4..8).for_each(|number| assert_eq!(write(&owner.collection, number), WriteOutcome::Stored));
    (bucket, owner)
}

#[test]
fn a_sound_bucket_is_in_order_and_only_a_pin_is_written() {
    let (bucket, owner) = filled();
    let before = bucket.objects();
    let all = checked(&bucket);
    assert_eq!((all.problems.len(), all.collections, all.logs), (0, 1, true), "{:?}", all.problems);
    let mut after = bucket.objects();
    after.retain(|(name, _)| !name.starts_with("pins/"));
    assert_eq!(after, before);
    owner.collection.delete(&["w1-1".to_owned(), "w5-1".to_owned()]).unwrap();
    owner.collection.flush().unwrap();
    owner.collection.maintain().unwrap();
    assert_eq!(found(&bucket), "");
    drop(owner);
    assert_eq!(found(&bucket), "");
}

#[test]
fn a_bucket_that_no_cluster_has_used_is_not_in_order() {
    let bucket = MemoryBucket::new();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let refused = check_bucket(&shared, &seams()).unwrap_err().to_string();
    assert!(refused.contains("no owner ever was there"), "{refused}");
    assert!(bucket.objects().is_empty(), "it leaves nothing there");
    Lease::new(&shared, "owner", "n", "host:1", Duration::from_secs(3), &seams()).turn().unwrap();
    assert_eq!(checked(&bucket).collections, 0);
}

/// Pauses a check at each of its calls in turn, until the owner has dropped a collection, created it, or both.
fn check_during(partitions: u16, drops: bool, creates: bool) {
    let create = move |owner: &Store| {
        let settings = Settings { partitions, ..Settings::default() };
        let first = owner.create("t", "c", schema(IdRole::Given), settings).unwrap();
        assert_eq!(write(&first, 1), WriteOutcome::Stored);
        first.flush().unwrap();
        (2..4).for_each(|number| assert_eq!(write(&first, number), WriteOutcome::Stored));
    };
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let owner = open(&bucket).unwrap();
        owner.create("t", "stays", schema(IdRole::Given), Settings::default()).unwrap();
        if drops {
            create(&owner);
        }
        bucket.pause(after, move || {
            if drops {
                assert!(owner.drop_collection("t", "c").unwrap());
            }
            if creates {
                create(&owner);
            }
        });
        let meanwhile = checked(&bucket);
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        let at = format!("{partitions} partitions, drops: {drops}, creates: {creates}, pause after {after}");
        assert_eq!(meanwhile.problems, [], "{at}");
        assert!((1..=2).contains(&meanwhile.collections), "{at}: {}", meanwhile.collections);
        let later = checked(&bucket);
        assert_eq!((later.problems.len(), later.collections), (0, 1 + usize::from(creates)), "{at}");
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}

#[test]
fn a_collection_that_comes_or_goes_meanwhile_is_no_problem() {
    for partitions in [1, 3] {
        check_during(partitions, true, false);
        check_during(partitions, false, true);
        check_during(partitions, true, true);
    }
}

/// Only an end shows that a collection was dropped: without its manifests it is lost.
#[test]
fn a_collection_that_is_lost_while_it_is_checked_is_a_problem() {
    let told = (0..CALLS).any(|after| {
        let (bucket, owner) = filled();
        drop(owner);
        let harmed = bucket.clone();
        bucket.pause(after, move || {
            let names = harmed.objects().into_iter().map(|(name, _)| name);
            names.filter(|name| name.contains("/manifests/")).for_each(|name| harmed.harm(&name, None));
        });
        let said = found(&bucket);
        assert!(!bucket.take_pause(), "no call of the check met the loss");
        said.contains("MANIFEST") && said.contains("it is missing")
    });
    assert!(told);
}

/// Nothing else remembers them, so readers that start then show the state before.
#[test]
fn manifests_that_are_gone_with_their_receipts_show_by_what_a_segment_holds() {
    let bucket = MemoryBucket::new();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    Lease::new(&shared, "owner", "n", "host:1", Duration::from_secs(3), &seams()).turn().unwrap();
    let owner = Process::first(&bucket);
    let all = |part: &str| -> Vec<(String, Vec<u8>)> {
        let names = bucket.objects().into_iter().map(|(name, _)| name).filter(|name| name.contains(part));
        names.map(|name| (name.clone(), bucket.get(&name).unwrap())).collect()
    };
    let before = all("/manifests/");
    (1..4).for_each(|number| assert_eq!(write(&owner.collection, number), WriteOutcome::Stored));
    let log = all("/wal/");
    owner.collection.flush().unwrap();
    drop(owner);
    assert_eq!(found(&bucket), "");
    let rest = all("/wal/");
    all("/manifests/").iter().for_each(|(name, _)| bucket.harm(name, None));
    before.into_iter().for_each(|(name, bytes)| bucket.harm(&name, Some(bytes)));
    let said = found(&bucket);
    assert!(said.contains(".segment") && said.contains("holds writes up to 3"), "{said:?}");
    // The same while an owner flushes: the log still has these writes, and nothing is lost.
    log.into_iter().for_each(|(name, bytes)| bucket.harm(&name, Some(bytes)));
    assert_eq!(found(&bucket), "");
    all("/wal/").iter().for_each(|(name, _)| bucket.harm(name, None));
    rest.into_iter().for_each(|(name, bytes)| bucket.harm(&name, Some(bytes)));
    let store = open(&bucket).unwrap();
    let problems: String = store.problems().iter().map(ToString::to_string).collect();
    assert!(problems.contains("from a copy of the bucket") && !problems.contains("--repair"), "{problems}");
    assert_eq!(write(&store.collection("t", "c").unwrap(), 9), WriteOutcome::Refused);
}

/// Covers every object of a collection that something names, and each record beside it.
#[test]
fn each_object_that_is_gone_or_damaged_is_named() {
    let (bucket, owner) = filled();
    drop(owner);
    let all: Vec<String> = bucket.objects().into_iter().map(|(name, _)| name).collect();
    let of = |part: &'static str| all.iter().filter(move |name| name.contains(part)).cloned();
    let mut names: Vec<String> = of("/segments/").collect();
    for end in [".segment", ".rows", ".dead"] {
        assert!(names.iter().any(|name| name.ends_with(end)), "{end}: {names:?}");
    }
    // From the log, an object that others follow.
    names.extend(of("/wal/").rev().nth(1));
    names.extend(["/manifests/", "records/access/", "audit/", "leases/"].map(|part| of(part).next_back().unwrap()));
    for name in names {
        let kept = bucket.get(&name).unwrap();
        let file = name.rsplit('/').next().unwrap();
        // A reader finds the newest link of a chain and the newest term of a lease. Nothing proves that there was a
        // later one.
        let newest_of_chain = ["records/", "audit/", "leases/"].iter().any(|part| name.starts_with(part));
        for bytes in [None, Some(vec![7; 300])].into_iter().skip(usize::from(newest_of_chain)) {
            let gone = bytes.is_none();
            bucket.harm(&name, bytes);
            let said = found(&bucket);
            assert!(said.contains(file), "{name}, gone: {gone}: {said:?}");
        }
        bucket.harm(&name, Some(kept));
        assert_eq!(found(&bucket), "", "{name} is back");
    }
}
