//! Collections that move from a cluster's bucket into a folder and back, interrupted moves, and copies of a bucket that
//! are older than the log.

use crate::bucket::{WriteOutcome, Writes, open, seams};
use crate::stream::Cluster;
use crate::world::{Event, batch, content, options, schema};
use meridian_model::{IdRole, Mode, RecordChange, Schema};
use meridian_store::bucket::{Bucket, BucketFault, MemoryBucket, Put};
use meridian_store::seams::Seams;
use meridian_store::stream::MemoryStreams;
use meridian_store::{
    Backup, BackupFolder, BackupScope, ControlPlane, Durability, Options, Restore, Settings, SharedLog, Store,
    StoreError, Write, WriteError, check_bucket,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAMES: [&str; 4] = ["given", "made", "parts", "ships"];

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

/// Fills a store with collections of several kinds: archived and unarchived segments, dead rows, keys, and unflushed
/// writes.
fn fill(store: &Store) {
    let ships = Schema { object: Some(3), mode: Mode::Latest, ..schema(IdRole::Made) };
    let several = Settings { partitions: 3, ..Settings::default() };
    for (name, schema, settings) in [
        ("given", schema(IdRole::Given), Settings::default()),
        ("made", schema(IdRole::Made), Settings::default()),
        ("parts", schema(IdRole::Made), several),
        ("ships", ships, Settings::default()),
    ] {
        store.create("t", name, schema, settings).unwrap();
        for partition in store.partitions("t", name).unwrap().iter() {
            let number = i64::from(partition.partition()) * 10_000;
            for i in 0..3 {
                let write = Write::new(batch(&partition.schema(), &events(number + i * 80, number + i * 80 + 100)));
                partition.write(write.replacing().with_key(format!("k{i}"))).unwrap();
                partition.flush().unwrap();
                if i == 1 {
                    partition.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
                }
            }
            let last = batch(&partition.schema(), &events(number + 5000, number + 5040));
            partition.write(Write::new(last).with_key("last")).unwrap();
            let gone: Vec<String> = content(&partition.snapshot()).into_iter().step_by(9).map(|(id, ..)| id).collect();
            assert!(partition.delete(&gone).unwrap().deleted > 0);
        }
    }
}

type Content = Vec<Vec<(String, u64, i64)>>;

/// Returns the content of each partition, and its history.
fn all(store: &Store) -> Content {
    assert_eq!(store.problems(), []);
    let of = |name: &&str| store.partitions("t", name).unwrap_or_else(|| panic!("{name} is not there"));
    let partitions: Vec<_> = NAMES.iter().map(of).collect();
    let both = partitions.iter().flat_map(|of| of.iter()).map(|c| [content(&c.snapshot()), content(&c.history())]);
    both.flatten().collect()
}

fn put(control: &ControlPlane) {
    for (kind, names) in [("access", ["token-1", "user-1"]), ("saved", ["search-1", "checkpoint"])] {
        let changes = names.map(|name| RecordChange::put(name, name.as_bytes().to_vec()));
        control.records(kind).commit(0, &changes).unwrap().unwrap();
    }
}

fn records(control: &ControlPlane) -> Vec<(String, Vec<u8>)> {
    let of = |kind: &&str| {
        let records = control.records(kind);
        let names = records.names().unwrap();
        names.into_iter().map(|name| (name.clone(), records.get(&name).unwrap().unwrap())).collect::<Vec<_>>()
    };
    ["access", "saved"].iter().flat_map(of).collect()
}

fn control(bucket: &MemoryBucket) -> Arc<ControlPlane> {
    ControlPlane::new(Arc::new(bucket.clone()), &seams(), 1 << 20)
}

/// Backs up the bucket of an owner, from another process.
fn back_up(bucket: &MemoryBucket, owner: &Store, at: &Seams, folder: &str) -> Backup {
    let kept = BackupFolder::open(at.disk.clone(), Path::new(folder)).unwrap();
    let mut tar = Vec::new();
    let have = kept.have().unwrap();
    control(bucket).backup(owner, &BackupScope::everything(), &have, &mut tar, &|| false).unwrap();
    kept.receive(&mut tar.as_slice(), &mut |_| {}).unwrap().backup
}

fn at(data: &str) -> Options {
    Options { data: data.into(), ..options() }
}

fn to_bucket(restore: &Restore, at: &Seams, bucket: &MemoryBucket) -> Result<Backup, StoreError> {
    restore.to_bucket(at, &(Arc::new(bucket.clone()) as Arc<dyn Bucket>), SharedLog::Bucket, &mut |_| {})
}

#[test]
fn what_a_cluster_has_goes_into_a_folder_and_back() {
    let (bucket, here) = (MemoryBucket::new(), seams());
    let owner = open(&bucket).unwrap();
    fill(&owner);
    put(&control(&bucket));
    // A stale listing hides nothing.
    bucket.freeze_listings(true);
    owner.collection("t", "made").unwrap().flush().unwrap();
    let (before, noted) = (all(&owner), records(&control(&bucket)));
    let pins = || bucket.objects().iter().filter(|(name, _)| name.starts_with("pins/")).count();
    let backup = back_up(&bucket, &owner, &here, "/kept");
    assert_eq!((backup.collections.len(), backup.records().0, pins()), (6, 4, 0));
    bucket.freeze_listings(false);
    // A second backup adds nothing, and does not prevent a restore from the first.
    let kept = BackupFolder::open(here.disk.clone(), Path::new("/kept")).unwrap();
    let mut tar = Vec::new();
    let have = kept.have().unwrap();
    control(&bucket).backup(&owner, &BackupScope::everything(), &have, &mut tar, &|| false).unwrap();
    assert_eq!(kept.receive(&mut tar.as_slice(), &mut |_| {}).unwrap().files, 0);
    drop(kept);

    Restore::of("/kept").to_folder(at("/folder"), here.clone(), &mut |_| {}).unwrap();
    let folder = Store::open(at("/folder"), here.clone()).unwrap();
    assert_eq!(all(&folder), before);
    let access = folder.records("access");
    assert_eq!(access.names().unwrap(), ["token-1", "user-1"]);
    for name in NAMES {
        let c = folder.collection("t", name).unwrap();
        let again = c.write(Write::new(batch(&c.schema(), &events(0, 5))).with_key("last"));
        assert!(matches!(again, Err(WriteError::KeyReused { .. })), "{name}: the key was forgotten");
        let next = c.write(Write::new(batch(&c.schema(), &events(8000, 8010)))).unwrap();
        assert_eq!((next.written, next.position), (10, c.position()), "{name}");
    }
    let ephemeral = Settings { durability: Durability::Ephemeral, ..Settings::default() };
    folder.create("t", "fleeting", schema(IdRole::Made), ephemeral).unwrap();
    let before = all(&folder);
    let kept = BackupFolder::open(here.disk.clone(), Path::new("/back")).unwrap();
    let mut tar = Vec::new();
    folder.backup(&BackupScope::everything(), &BTreeMap::new(), &mut tar, &|| false).unwrap();
    kept.receive(&mut tar.as_slice(), &mut |_| {}).unwrap();
    drop(kept);

    let other = MemoryBucket::new();
    let mut bytes = 0;
    let restore = Restore::of("/back");
    let to: Arc<dyn Bucket> = Arc::new(other.clone());
    restore.to_bucket(&here, &to, SharedLog::Bucket, &mut |more| bytes += more).unwrap();
    assert!(bytes > 0);
    assert_eq!(records(&control(&other)), noted);
    assert_eq!(check_bucket(&to, &seams()).unwrap().problems, []);
    // A read-only server needs no owner to show flushed writes.
    let reader = Store::open_read_only(options(), seams(), to).unwrap();
    assert_eq!(all(&reader), before);
    let owner = open(&other).unwrap();
    assert_eq!(all(&owner), before);
    assert_eq!(owner.collection("t", "fleeting").unwrap().settings().durability, Durability::Local);
    let c = owner.collection("t", "made").unwrap();
    let next = c.write(Write::new(batch(&c.schema(), &events(9000, 9010)))).unwrap();
    assert_eq!(next.position, folder.collection("t", "made").unwrap().position() + 1);
    let after = all(&owner);
    drop(owner);
    assert_eq!(all(&open(&other).unwrap()), after);
}

#[test]
fn a_restore_into_a_bucket_that_is_broken_off_is_not_served_and_goes_on() {
    let (source, here) = (MemoryBucket::new(), seams());
    let owner = open(&source).unwrap();
    fill(&owner);
    put(&control(&source));
    back_up(&source, &owner, &here, "/kept");
    let before = all(&owner);
    for restore in [Restore::of("/kept"), Restore::of("/kept").in_partitions(Some(2))] {
        let whole = MemoryBucket::new();
        to_bucket(&restore, &here, &whole).unwrap();
        let mut broken = 0;
        for after in (0..whole.objects().len() as u64).step_by(4) {
            let bucket = MemoryBucket::new();
            bucket.fail(BucketFault::Full, after);
            match to_bucket(&restore, &here, &bucket) {
                // It was a receipt, on which nothing depends.
                Ok(_) => continue,
                Err(error) => assert!(error.is_full(), "{error}"),
            }
            broken += 1;
            bucket.heal();
            if after > 0 {
                let reader = Store::open_read_only(options(), seams(), Arc::new(bucket.clone()));
                for refused in [open(&bucket).map(drop), reader.map(drop)] {
                    let refused = refused.unwrap_err().to_string();
                    assert!(refused.contains("a restore into"), "after {after}: {refused}");
                }
                let other = to_bucket(&Restore::of("/kept").in_partitions(Some(7)), &here, &bucket);
                assert!(other.unwrap_err().to_string().contains("another restore"), "after {after}");
            }
            to_bucket(&restore, &here, &bucket).unwrap();
            let restored = open(&bucket).unwrap();
            assert_eq!(records(&control(&bucket)).len(), 4);
            match restored.partitions("t", "given").unwrap().len() {
                1 => assert_eq!(all(&restored), before, "after {after}"),
                _ => {
                    let events = |store: &Store| store.collections().iter().map(|c| c.stats().events).sum::<u64>();
                    assert_eq!(events(&restored), events(&owner), "after {after}");
                }
            }
        }
        assert!(broken > 5, "{broken}");
    }
}

#[test]
fn a_bucket_that_is_used_is_not_restored_into() {
    let (source, here) = (MemoryBucket::new(), seams());
    let owner = open(&source).unwrap();
    fill(&owner);
    back_up(&source, &owner, &here, "/kept");
    let restore = Restore::of("/kept");
    let before = source.objects();
    let refused = to_bucket(&restore, &here, &source).unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");
    assert_eq!(source.objects(), before);
    // A token alone makes a bucket count as used, and so does an owner without collections.
    let tokens = MemoryBucket::new();
    put(&control(&tokens));
    assert!(to_bucket(&restore, &here, &tokens).unwrap_err().to_string().contains("records/"));
    // A process that takes the lease between the two checks.
    let raced = MemoryBucket::new();
    let late = raced.clone();
    raced.pause(8, move || assert_eq!(late.put("leases/owner/0000000000000001", b"").unwrap(), Put::Created));
    let refused = to_bucket(&restore, &here, &raced).unwrap_err().to_string();
    assert!(refused.contains("leases/"), "{refused}");
    assert!(!raced.objects().iter().any(|(name, _)| name.starts_with("restoring")));
    // A collection that another number of partitions cannot hold is refused by name.
    let latest = Schema { object: Some(3), mode: Mode::Latest, ..schema(IdRole::Given) };
    owner.create("t", "newest", latest, Settings::default()).unwrap();
    back_up(&source, &owner, &here, "/kept");
    let unused = MemoryBucket::new();
    let refused = to_bucket(&restore.in_partitions(Some(2)), &here, &unused).unwrap_err().to_string();
    assert!(refused.contains("newest") && refused.contains("partitions"), "{refused}");
    assert!(unused.objects().is_empty(), "another number is not refused after that");
}

#[test]
fn a_backup_that_cannot_have_all_is_refused() {
    let (bucket, here) = (MemoryBucket::new(), seams());
    let owner = open(&bucket).unwrap();
    fill(&owner);
    let kept = BackupFolder::open(here.disk.clone(), Path::new("/kept")).unwrap();
    let refused = || {
        let (mut tar, scope) = (Vec::new(), BackupScope::everything());
        let sent = control(&bucket).backup(&owner, &scope, &BTreeMap::new(), &mut tar, &|| false);
        // The part sent before is not a backup.
        assert!(kept.receive(&mut tar.as_slice(), &mut |_| {}).is_err());
        sent.unwrap_err().to_string()
    };
    // A damaged segment.
    let segment = bucket.objects().into_iter().map(|(name, _)| name).find(|name| name.ends_with(".parquet")).unwrap();
    let mut bytes = bucket.get(&segment).unwrap();
    bytes[40] ^= 1;
    bucket.harm(&segment, Some(bytes));
    let file = segment.rsplit('/').next().unwrap();
    assert!(refused().contains(file), "{}", refused());
}

/// Returns a copy of a bucket, like one kept elsewhere.
fn copy(bucket: &MemoryBucket) -> MemoryBucket {
    let kept = MemoryBucket::new();
    for (name, _) in bucket.objects() {
        assert_eq!(kept.put(&name, &bucket.get(&name).unwrap()).unwrap(), Put::Created);
    }
    kept
}

#[test]
fn a_copy_of_the_bucket_that_is_older_than_the_log_lacks_nothing_silently() {
    for flush in [false, true] {
        let cluster = Cluster::default();
        let owner = cluster.first();
        let mut writes = Writes::default();
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        owner.collection.flush().unwrap();
        let older = Cluster { bucket: copy(&cluster.bucket), streams: cluster.streams.clone() };
        (0..3).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
        if flush {
            // The log releases what the lost manifest covers.
            owner.collection.flush().unwrap();
        }
        drop(owner);
        let store = older.open().unwrap();
        let collection = store.collection("t", "c").unwrap();
        if flush {
            assert!(!store.problems().is_empty());
            assert_eq!(crate::bucket::write(&collection, 100), WriteOutcome::Refused);
        } else {
            // All of it is in the log.
            assert_eq!(store.problems(), []);
            writes.compare(&collection);
        }
    }
}

#[test]
fn a_log_that_is_older_than_the_bucket_is_named_and_the_bucket_has_what_it_covers() {
    let cluster = Cluster::default();
    let owner = cluster.first();
    let mut writes = Writes::default();
    (0..6).for_each(|_| assert_eq!(writes.write(&owner.collection), WriteOutcome::Stored));
    owner.collection.flush().unwrap();
    // Unflushed, so lost with the log.
    assert_eq!(crate::bucket::write(&owner.collection, 50), WriteOutcome::Stored);
    drop(owner);
    // The streams are restored to an earlier state.
    cluster.streams.lose(2);
    let store = cluster.open().unwrap();
    assert!(!store.problems().is_empty());
    let collection = store.collection("t", "c").unwrap();
    writes.compare(&collection);
    assert_eq!(crate::bucket::write(&collection, 100), WriteOutcome::Refused);
}

#[test]
fn streams_of_a_restored_bucket_are_its_own() {
    let (source, here) = (MemoryBucket::new(), seams());
    let owner = open(&source).unwrap();
    fill(&owner);
    back_up(&source, &owner, &here, "/kept");
    let before = all(&owner);
    let cluster = Cluster { bucket: MemoryBucket::new(), streams: MemoryStreams::default() };
    let to: Arc<dyn Bucket> = Arc::new(cluster.bucket.clone());
    Restore::of("/kept").to_bucket(&here, &to, cluster.log(false), &mut |_| {}).unwrap();
    let restored = cluster.open().unwrap();
    assert_eq!(all(&restored), before);
    let c = restored.collection("t", "made").unwrap();
    c.write(Write::new(batch(&c.schema(), &events(9000, 9010)))).unwrap();
    let after = all(&restored);
    drop((restored, c));
    assert_eq!(all(&cluster.open().unwrap()), after);
}
