//! Partitions in groups, each with an owner: collections shared by several stores, takeovers of one group, and what
//! readers see.

use super::{WriteOutcome, seams, write};
use crate::world::{options, readable, schema};
use meridian_model::IdRole;
use meridian_model::policy::groups::{Group, Groups};
use meridian_store::bucket::{Bucket, MemoryBucket, Survey, decide_groups, lease_of};
use meridian_store::seams::{ManualClock, Seams};
use meridian_store::{Collection, Lease, LeaseState, Settings, SharedLog, SharedResources, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

const PARTITIONS: u16 = 4;

fn groups() -> Groups {
    Groups::new(3).unwrap()
}

fn bucket() -> MemoryBucket {
    let bucket = MemoryBucket::new();
    decide_groups(&bucket, &ManualClock::new(0), groups()).unwrap();
    bucket
}

fn group_of(partition: u32) -> Group {
    groups().of("t", "c", partition)
}

fn open_with(bucket: &MemoryBucket, group: Group, seams: Seams) -> Result<Store, StoreError> {
    let options = options();
    let resources = SharedResources::of(&options);
    Store::open_group(options, seams, Arc::new(bucket.clone()), SharedLog::Bucket, group, &resources)
}

fn open(bucket: &MemoryBucket, group: Group) -> Store {
    open_with(bucket, group, seams()).unwrap()
}

/// Opens an owner for each group; the owner of the first partition creates the collection.
fn owners(bucket: &MemoryBucket) -> Vec<Store> {
    let stores: Vec<Store> = groups().all().map(|group| open(bucket, group)).collect();
    make(&stores);
    stores
}

fn make(stores: &[Store]) {
    let settings = Settings { partitions: PARTITIONS, ..Settings::default() };
    let first = &stores[usize::from(group_of(0).number())];
    first.create("t", "c", schema(IdRole::Given), settings).unwrap();
    stores.iter().for_each(|store| store.adopt("t", "c").unwrap());
}

fn partition(stores: &[Store], number: u32) -> Arc<Collection> {
    let store = &stores[usize::from(group_of(number).number())];
    store.partition("t", "c", number).expect("its owner has it")
}

fn count(collection: &Collection) -> usize {
    let (found, errors) = readable(&collection.snapshot());
    assert!(errors.is_empty(), "{errors:?}");
    found.len()
}

#[test]
fn a_command_owns_all_groups_for_a_while() {
    let bucket = bucket();
    let former = owners(&bucket);
    let numbers = || 0..u32::from(PARTITIONS);
    numbers().for_each(|number| assert_eq!(write(&partition(&former, number), 1), WriteOutcome::Stored));
    // Nothing is flushed: it replays the logs, and fences the former owners.
    let all: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let visit = Store::open_groups(options(), seams(), all, SharedLog::Bucket, groups()).unwrap();
    assert_eq!((visit.problems(), visit.partitions("t", "c").unwrap().len()), (vec![], usize::from(PARTITIONS)));
    for number in numbers() {
        let own = visit.partition("t", "c", number).unwrap();
        assert_eq!(count(&own), 3, "partition {number}");
        assert_eq!(write(&own, 2), WriteOutcome::Stored);
        assert_ne!(write(&partition(&former, number), 3), WriteOutcome::Stored, "partition {number}");
    }
    visit.close().unwrap();
    let next: Vec<Store> = groups().all().map(|group| open(&bucket, group)).collect();
    numbers().for_each(|number| assert_eq!(count(&partition(&next, number)), 6, "partition {number}"));
}

#[test]
fn each_owner_has_the_partitions_of_its_group() {
    let bucket = bucket();
    let stores = owners(&bucket);
    for number in 0..u32::from(PARTITIONS) {
        let holders = stores.iter().filter(|store| store.partition("t", "c", number).is_some()).count();
        assert_eq!(holders, 1, "partition {number}");
        assert_eq!(write(&partition(&stores, number), i64::from(number)), WriteOutcome::Stored);
    }
    // Only the owner of the first partition creates and drops it.
    let other = &stores[usize::from(group_of(1).number())];
    let settings = Settings { partitions: PARTITIONS, ..Settings::default() };
    assert!(matches!(other.create("t", "c", schema(IdRole::Given), settings), Err(StoreError::Busy(_))));
    assert!(matches!(other.drop_collection("t", "c"), Err(StoreError::Busy(_))));
    // A reader sees all of it once it is flushed.
    for store in &stores {
        assert_eq!(store.problems(), []);
        store.collections().iter().for_each(|collection| collection.flush().unwrap());
    }
    let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone())).unwrap();
    let all: Vec<usize> = reader.partitions("t", "c").unwrap().iter().map(|one| count(one)).collect();
    assert_eq!(all, [3; PARTITIONS as usize]);
}

#[test]
fn a_paused_owner_of_one_group_changes_nothing_while_the_others_go_on() {
    let bucket = bucket();
    let mut stores = owners(&bucket);
    (0..u32::from(PARTITIONS))
        .for_each(|number| assert_eq!(write(&partition(&stores, number), 1), WriteOutcome::Stored));
    let of = usize::from(group_of(1).number());
    // It is paused, and another process takes over its group.
    let paused = std::mem::replace(&mut stores[of], open(&bucket, group_of(1)));
    assert_eq!(write(&partition(&stores, 1), 2), WriteOutcome::Stored);
    // It resumes: neither its log nor its catalog accepts anything.
    let former = paused.partition("t", "c", 1).unwrap();
    assert_ne!(write(&former, 3), WriteOutcome::Stored);
    assert!(paused.is_outdated());
    let _ = former.flush();
    drop((former, paused));
    for number in 0..u32::from(PARTITIONS) {
        let events = if group_of(number) == group_of(1) && number == 1 { 6 } else { 3 };
        assert_eq!(count(&partition(&stores, number)), events, "partition {number}");
        assert_eq!(write(&partition(&stores, number), 9), WriteOutcome::Stored, "partition {number} goes on");
    }
    for group in groups().all() {
        let next = open(&bucket, group);
        assert_eq!(next.problems(), []);
        assert!(next.collections().iter().all(|one| group.has("t", "c", one.partition()) && count(one) >= 6));
    }
}

#[test]
fn what_the_first_partition_says_is_taken_up() {
    let bucket = bucket();
    let clock = seams();
    let of = |group: Group| if group == group_of(0) { clock.clone() } else { seams() };
    let stores: Vec<Store> = groups().all().map(|group| open_with(&bucket, group, of(group)).unwrap()).collect();
    make(&stores);
    let (first, other) = (&stores[usize::from(group_of(0).number())], &stores[usize::from(group_of(1).number())]);
    let former = partition(&stores, 1);
    assert_eq!(write(&former, 1), WriteOutcome::Stored);
    // Dropped by the owner of the first partition: the others release it at their next check.
    assert!(first.drop_collection("t", "c").unwrap());
    assert!(other.partition("t", "c", 1).is_some(), "nobody has told it");
    other.adopt("t", "c").unwrap();
    assert!(other.partition("t", "c", 1).is_none());
    assert_eq!(write(&former, 2), WriteOutcome::Refused);
    // Recreated under its name, later: it begins empty, whether or not the others saw the drop.
    clock.clock.sleep(Duration::from_secs(1));
    make(&stores);
    assert_eq!(count(&partition(&stores, 1)), 0);
    let third = &stores[usize::from(group_of(2).number())];
    assert!(third.partition("t", "c", 2).is_some_and(|one| one.created() == partition(&stores, 0).created()));
    // A collection dropped without the others' knowledge does not exist for the next owner.
    assert!(first.drop_collection("t", "c").unwrap());
    assert!(open(&bucket, group_of(1)).collections().is_empty());
}

#[test]
fn a_creation_that_was_broken_off_is_completed_by_the_next_owner_of_the_first_partition() {
    for calls in 0..60 {
        let bucket = bucket();
        let stores: Vec<Store> = groups().all().map(|group| open(&bucket, group)).collect();
        let first = usize::from(group_of(0).number());
        // It ends midway: from some call on nothing of it arrives.
        let cut = bucket.clone();
        bucket.pause(calls, move || cut.cut(true));
        let settings = Settings { partitions: PARTITIONS, ..Settings::default() };
        let made = stores[first].create("t", "c", schema(IdRole::Given), settings).is_ok();
        bucket.take_pause();
        bucket.heal();
        let next = open(&bucket, group_of(0));
        let there = next.partition("t", "c", 0).is_some();
        assert!(there || !made, "{calls}: it was made");
        for number in 1..u32::from(PARTITIONS) {
            let owner = open(&bucket, group_of(number));
            assert_eq!(owner.problems(), [], "{calls}");
            assert_eq!(owner.partition("t", "c", number).is_some(), there, "{calls}: partition {number}");
        }
    }
}

#[test]
fn each_owner_says_what_its_group_is_complete_to() {
    let bucket = bucket();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let lease = |group: Group, seams: &Seams| {
        let (name, ttl) = (lease_of(group), Duration::from_secs(3));
        let lease = Lease::new(&shared, &name, format!("n{}", group.number()), "host:1", ttl, seams);
        assert!(matches!(lease.turn().unwrap(), LeaseState::Owner(_)));
        lease
    };
    let own: Vec<(Lease, Store)> = groups()
        .all()
        .map(|group| {
            let seams = seams();
            (lease(group, &seams), open_with(&bucket, group, seams).unwrap())
        })
        .collect();
    let (leases, stores): (Vec<Lease>, Vec<Arc<Store>>) = own.into_iter().map(|(l, s)| (l, Arc::new(s))).unzip();
    let settings = Settings { partitions: PARTITIONS, ..Settings::default() };
    stores[usize::from(group_of(0).number())].create("t", "c", schema(IdRole::Given), settings).unwrap();
    stores.iter().for_each(|store| store.adopt("t", "c").unwrap());
    // All but one state what they know when they give up their leases.
    let silent = group_of(1).number();
    for (number, (lease, store)) in leases.iter().zip(&stores).enumerate() {
        let said = store.clone();
        if number != usize::from(silent) {
            lease.say(lease.epoch().unwrap(), Some(Arc::new(move || said.complete())));
        }
        lease.resign().unwrap();
    }
    let survey = Survey::new(&shared, &seams());
    let owners = survey.owners().unwrap();
    assert_eq!(owners.len(), 3);
    for owner in &owners {
        let (term, _) = owner.term.as_ref().unwrap();
        assert!(term.resigned && term.complete.is_some() == (owner.group.number() != silent));
    }
    let reader = Store::open_read_only(options(), seams(), shared).unwrap();
    let made = reader.partition("t", "c", 0).unwrap().created();
    for one in reader.partitions("t", "c").unwrap().iter() {
        let taken = one.snapshot().taken_at;
        match group_of(one.partition()).number() == silent {
            // No owner states more than the creation time.
            true => assert_eq!(taken, made, "partition {}", one.partition()),
            false => assert!(taken >= made, "partition {}", one.partition()),
        }
    }
}

#[test]
fn memory_of_partitions_whose_collection_is_not_opened_is_given_back() {
    let bucket = bucket();
    let stores = owners(&bucket);
    // The first and the last partition are in one group, and hold unflushed writes.
    let (group, last) = (group_of(0), u32::from(PARTITIONS) - 1);
    assert_eq!(group, group_of(last));
    [0, last].into_iter().for_each(|number| assert_eq!(write(&partition(&stores, number), 1), WriteOutcome::Stored));
    drop(stores);
    let manifests = |(name, _): &&(String, usize)| name.contains(&format!("/p{last}/")) && name.contains("/manifests/");
    for (name, _) in bucket.objects().iter().filter(manifests) {
        bucket.harm(name, Some(b"damaged".to_vec()));
    }
    let next = open(&bucket, group);
    assert!(next.why_damaged("t", "c").is_some() && next.collections().is_empty());
    assert_eq!(next.memory().1, 0);
}

#[test]
fn a_folder_is_free_once_its_store_is_left_though_a_read_goes_on() {
    let (bucket, own) = (bucket(), seams());
    let group = group_of(0);
    let store = Arc::new(open_with(&bucket, group, own.clone()).unwrap());
    store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    let collection = store.partition("t", "c", 0).unwrap();
    assert_eq!(write(&collection, 1), WriteOutcome::Stored);
    // A reader holds the store and a snapshot.
    let (reading, snapshot) = (store.clone(), collection.snapshot());
    assert!(matches!(open_with(&bucket, group, own.clone()), Err(StoreError::InUse { .. })));
    store.abandon();
    let next = open_with(&bucket, group, own).unwrap();
    assert_eq!(count(&next.partition("t", "c", 0).unwrap()), 3, "it was not flushed, and is in the log");
    assert_eq!((readable(&snapshot).0.len(), write(&collection, 2)), (3, WriteOutcome::Refused));
    drop(reading);
    assert_eq!(
        write(&next.partition("t", "c", 0).unwrap(), 3),
        WriteOutcome::Stored,
        "the end of the read takes nothing"
    );
}
