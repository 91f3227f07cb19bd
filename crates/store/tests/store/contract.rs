//! The contract of the store's seams: one suite, run for each implementation.

use crate::world::{Event, World, batch, schema};
use meridian_model::IdRole;
use meridian_store::bucket::{BucketStorage, MemoryBucket};
use meridian_store::seams::{
    AppendError, CommitError, Disk, Kind, ManualClock, MemoryDisk, MemoryStorage, PartitionStorage, Record, Seams,
    SeededRandom, Storage,
};
use meridian_store::stream::{MemoryStreams, Streams};
use meridian_store::{DiskStorage, Manifest, Settings, SharedLog, Store, Write, partition_dir};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Folder of the partition under test.
const DIR: &str = "/p0";

/// Returns the implementations; each handle is that of one process, on the same partition.
fn implementations() -> Vec<(&'static str, Arc<dyn Storage>)> {
    let disk = MemoryDisk::new();
    for folder in ["log", "segments"] {
        disk.create_dir(&Path::new(DIR).join(folder)).unwrap();
    }
    let seams = Seams {
        disk: Arc::new(MemoryDisk::new()),
        clock: Arc::new(ManualClock::new(0)),
        random: Arc::new(SeededRandom::new(3)),
    };
    let of_bucket = |seams| BucketStorage::new(Arc::new(MemoryBucket::new()), seams, "/", 0, Duration::ZERO);
    let bucket = of_bucket(seams.clone());
    // Small messages: groups take several.
    let streams = Arc::new(MemoryStreams::new(300));
    // A collection has its stream from its creation on.
    streams.create("m.b.p0.0.0").unwrap();
    let stream = of_bucket(seams).with_log(SharedLog::Streams { streams, accept_loss: false }, "b");
    vec![
        ("disk", Arc::new(DiskStorage(Arc::new(disk)))),
        ("memory", Arc::new(MemoryStorage::new())),
        ("bucket", Arc::new(bucket)),
        ("stream", Arc::new(stream)),
    ]
}

fn handle(storage: &Arc<dyn Storage>) -> PartitionStorage {
    storage.partition(Path::new(DIR), 1 << 14)
}

fn put(storage: &PartitionStorage, name: &str, bytes: &[u8]) -> std::io::Result<u64> {
    let mut writer = storage.objects.put(name)?;
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    writer.write(head)?;
    writer.write(tail)?;
    writer.finish()
}

fn get(storage: &PartitionStorage, name: &str) -> std::io::Result<Vec<u8>> {
    let object = storage.objects.open(name)?;
    let mut bytes = vec![0; object.len()? as usize];
    object.read_at(0, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn objects_have_one_content_for_ever() {
    for (kind, storage) in implementations() {
        let (one, two) = (handle(&storage), handle(&storage));
        assert_eq!(put(&one, "a", b"0123456789").unwrap(), 10, "{kind}");
        assert_eq!(put(&two, "a", b"other").unwrap_err().kind(), ErrorKind::AlreadyExists, "{kind}");
        assert_eq!(put(&one, "b", b"").unwrap(), 0, "{kind}");
        one.objects.sync().unwrap();
        assert_eq!(get(&two, "a").unwrap(), b"0123456789", "{kind}");
        assert!(two.objects.open("b").unwrap().is_empty().unwrap(), "{kind}");
        let (object, mut range) = (two.objects.open("a").unwrap(), [0; 4]);
        object.read_at(3, &mut range).unwrap();
        assert_eq!(&range, b"3456", "{kind}");
        assert_eq!(object.read_at(8, &mut range).unwrap_err().kind(), ErrorKind::UnexpectedEof, "{kind}");
        assert_eq!(one.objects.list().unwrap(), ["a", "b"], "{kind}");
        one.objects.delete("b").unwrap();
        assert_eq!(one.objects.delete("b").unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        assert_eq!(one.objects.open("b").unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        assert_eq!(two.objects.list().unwrap(), ["a"], "{kind}");
    }
}

#[test]
fn of_two_puts_of_one_name_at_once_one_takes_effect() {
    for (kind, storage) in implementations() {
        let (one, two) = (handle(&storage), handle(&storage));
        let mut first = one.objects.put("a").unwrap();
        // Refused by the implementation, at its beginning or at its end.
        let second = two.objects.put("a").and_then(|mut writer| writer.write(b"second").map(|()| writer));
        first.write(b"first").unwrap();
        first.finish().unwrap();
        let refused = second.and_then(|writer| writer.finish()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{kind}");
        assert_eq!(get(&two, "a").unwrap(), b"first", "{kind}");
    }
}

#[test]
fn an_object_that_replaces_another_does_so_whole() {
    for (kind, storage) in implementations() {
        let in_bucket = storage.registry().is_some();
        let storage = handle(&storage);
        put(&storage, "a", b"old").unwrap();
        let mut writer = storage.objects.replace("a").unwrap();
        writer.write(b"newer").unwrap();
        assert_eq!(get(&storage, "a").unwrap(), b"old", "{kind}");
        writer.finish().unwrap();
        assert_eq!(get(&storage, "a").unwrap(), b"newer", "{kind}");
        // In a bucket, for this process only.
        assert_eq!(storage.objects.is_provisional("a"), in_bucket, "{kind}");
    }
}

/// Returns a manifest as a store creates it.
fn first_manifest() -> Manifest {
    let world = World::new();
    let (_store, _c) = world.with_collection(IdRole::Given);
    let dir = partition_dir(Path::new("/data"), "t", "c", 0);
    let newest = DiskStorage(Arc::new(world.disk.clone())).partition(&dir, 0).catalog.newest().unwrap();
    newest.expect("the collection was made").manifest
}

#[test]
fn of_two_commits_after_one_version_one_takes_effect() {
    for (kind, storage) in implementations() {
        let (one, two) = (handle(&storage).catalog, handle(&storage).catalog);
        assert!(one.newest().unwrap().is_none(), "{kind}");
        let first = first_manifest();
        one.commit(0, &first).unwrap();
        assert!(matches!(two.commit(0, &first), Err(CommitError::Stale { .. })), "{kind}: it is made already");
        assert_eq!(two.newest().unwrap().unwrap().manifest, first, "{kind}");
        let second = first.successor();
        assert!(second.version() > first.version());
        two.commit(first.version(), &second).unwrap();
        let late = one.commit(first.version(), &second.successor());
        assert!(matches!(late, Err(CommitError::Stale { newest }) if newest == second.version()), "{kind}: {late:?}");
        for handle in [one, two] {
            assert_eq!(handle.newest().unwrap().unwrap().manifest.version(), second.version(), "{kind}");
        }
    }
}

fn records(positions: std::ops::Range<u64>) -> Vec<Record> {
    let record = |position| Record {
        position,
        kind: Kind::Write,
        time: 7,
        events: 1,
        key: format!("key {position}").into_bytes(),
        body: vec![position as u8; 100],
    };
    positions.map(record).collect()
}

#[test]
fn a_log_replays_what_was_appended_until_it_is_released() {
    for (kind, storage) in implementations() {
        let mut log = handle(&storage).log;
        assert!(log.append(&records(1..2)).is_err(), "{kind}: it was not replayed");
        assert!(log.replay(0, None).unwrap().records.is_empty(), "{kind}");
        for group in [1..3, 3..4, 4..9] {
            log.append(&records(group)).unwrap();
        }
        assert_eq!(log.append(&[]).unwrap(), 0, "{kind}");
        assert!(log.tail_bytes() > 0, "{kind}");
        log.seal().unwrap();
        assert!(log.verify(0, 8).is_empty(), "{kind}");
        drop(log);
        let mut log = handle(&storage).log;
        let found = log.replay(0, None).unwrap();
        assert!(found.damage.is_empty(), "{kind}");
        assert_eq!(found.records, records(1..9), "{kind}");
        log.append(&records(9..13)).unwrap();
        let place = log.place(10);
        while let Some(remove) = log.release(10, place).unwrap() {
            remove().unwrap();
            log.removed();
        }
        drop(log);
        let found = handle(&storage).log.replay(10, place).unwrap();
        assert_eq!(found.records, records(11..13), "{kind}");
    }
}

#[test]
fn a_replay_fences_the_writers_before_it() {
    // For the disk, the lock of the data folder does that.
    for (kind, storage) in implementations().into_iter().filter(|(_, storage)| storage.is_shared()) {
        let (mut old, mut new) = (handle(&storage).log, handle(&storage).log);
        old.replay(0, None).unwrap();
        old.append(&records(1..3)).unwrap();
        assert_eq!(new.replay(0, None).unwrap().records, records(1..3), "{kind}");
        assert!(matches!(old.append(&records(3..4)), Err(AppendError::Fenced(_))), "{kind}");
        new.append(&records(3..5)).unwrap();
        assert!(!matches!(old.release(4, None), Ok(Some(_))), "{kind}");
        assert_eq!(handle(&storage).log.replay(0, None).unwrap().records, records(1..5), "{kind}");
        assert!(matches!(new.append(&records(5..6)), Err(AppendError::Fenced(_))), "{kind}");
    }
}

/// A snapshot is read from a folder that another process holds locked and keeps writing to.
#[test]
fn a_second_process_reads_what_the_first_has_flushed() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    let events: Vec<Event> = (0..3000).map(|n| Event::new(format!("e{n}"), n)).collect();
    c.write(Write::new(batch(&c.schema(), &events))).unwrap();
    c.flush().unwrap();
    c.delete(&["e7".to_owned(), "e8".to_owned()]).unwrap();
    c.flush().unwrap();
    let flushed = crate::world::content(&c.snapshot());
    c.write(Write::new(batch(&c.schema(), &[Event::new("later", 9)]))).unwrap();
    assert!(Store::open(world.options.clone(), world.seams()).is_err(), "the folder is locked");
    let before: Vec<PathBuf> = world.disk.files().into_iter().map(|(path, _)| path).collect();
    let other: Arc<dyn Disk> = Arc::new(world.disk.clone());
    let storage = DiskStorage(other).partition(&partition_dir(store.root(), "t", "c", 0), 0);
    let newest = storage.catalog.newest().unwrap().unwrap();
    let snapshot = meridian_store::Snapshot::open(&newest.manifest, storage.objects, 1 << 20, 5).unwrap();
    assert_eq!(crate::world::content(&snapshot), flushed);
    assert_eq!((snapshot.seq.position(), snapshot.taken_at), (newest.manifest.flushed(), 5));
    drop(snapshot);
    let after: Vec<PathBuf> = world.disk.files().into_iter().map(|(path, _)| path).collect();
    assert_eq!(before, after, "it only reads");
    let memory = Settings::default();
    assert_eq!(store.create("t", "d", schema(IdRole::Made), memory).unwrap().stats().events, 0);
}
