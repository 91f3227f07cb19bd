//! Collections of several partitions: created, dropped, opened, backed up and repaired as one, in a folder and in a
//! bucket.

use crate::world::{Event, World, batch, content, options, schema};
use meridian_model::{IdRole, SeqLayout};
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::{CrashStyle, FaultKind, ManualClock, MemoryDisk, Seams, SeededRandom};
use meridian_store::{BackupFolder, BackupScope, Collection, Options, Settings, Store, StoreError, Write};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const PARTITIONS: u16 = 4;

fn several() -> Settings {
    Settings { partitions: PARTITIONS, ..Settings::default() }
}

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("e{n}"), n)).collect()
}

/// Writes ten events into each partition; the caller chooses the partition of an event.
fn fill(store: &Store) {
    for (number, partition) in store.partitions("t", "c").unwrap().iter().enumerate() {
        let from = number as i64 * 10;
        partition.write(Write::new(batch(&partition.schema(), &events(from, from + 10)))).unwrap();
    }
}

/// Returns the ids of all events, by partition.
fn ids(store: &Store) -> Vec<Vec<String>> {
    let of = |partition: &Arc<Collection>| content(&partition.snapshot()).into_iter().map(|(id, ..)| id).collect();
    store.partitions("t", "c").unwrap().iter().map(of).collect()
}

#[test]
fn a_crash_at_any_write_of_a_creation_or_drop_leaves_all_partitions_or_none() {
    let (mut made_none, mut dropped_none) = (0, 0);
    for kind in [FaultKind::SyncFails, FaultKind::WriteFails, FaultKind::NameFails] {
        for step in 0..120 {
            let world = World::new();
            let store = world.open();
            store.create("t", "c", schema(IdRole::Given), several()).unwrap();
            fill(&store);
            let before = ids(&store);
            // Forever from there on: undoing a failed creation fails too.
            world.disk.inject_times(kind, "/t/", step, u64::MAX);
            let made = store.create("t", "new", schema(IdRole::Given), several()).map(|_| ());
            let dropped = if step % 2 == 0 { store.drop_collection("t", "c") } else { Ok(false) };
            world.disk.crash(CrashStyle::Lose);
            drop(store);
            let store = world.open();
            assert_eq!(store.problems(), [], "{kind:?} {step}");
            match store.partitions("t", "c") {
                Some(partitions) => {
                    assert!(!matches!(dropped, Ok(true)), "{kind:?} {step}");
                    assert_eq!(partitions.len(), usize::from(PARTITIONS));
                    assert_eq!(ids(&store), before, "{kind:?} {step}");
                    dropped_none += 1;
                }
                None => assert!(step % 2 == 0, "{kind:?} {step}: nobody dropped it"),
            }
            match store.partitions("t", "new") {
                Some(partitions) => {
                    assert_eq!(partitions.len(), usize::from(PARTITIONS), "{kind:?} {step}");
                    assert!(partitions.iter().all(|partition| partition.settings() == several()));
                }
                None => {
                    assert!(made.is_err(), "{kind:?} {step}");
                    made_none += 1;
                }
            }
            // Remains are not in the way.
            for name in ["c", "new"] {
                store.drop_collection("t", name).unwrap();
                store.create("t", name, schema(IdRole::Given), several()).unwrap();
            }
            fill(&store);
            assert_eq!(store.check(), [], "{kind:?} {step}");
        }
    }
    assert!(made_none > 0 && dropped_none > 0, "{made_none} {dropped_none}: no fault was met in the middle");
}

#[test]
fn numbers_of_partitions_never_meet_and_outlive_a_restart() {
    let world = World::new();
    let store = world.open();
    store.create("t", "c", schema(IdRole::Given), several()).unwrap();
    let mut seen = BTreeMap::new();
    for round in 0..3 {
        let partitions = store.partitions("t", "c").unwrap();
        for (number, partition) in partitions.iter().enumerate() {
            let from = round * 1_000 + number as i64 * 100;
            let written = partition.write(Write::new(batch(&partition.schema(), &events(from, from + 20)))).unwrap();
            for ordinal in 0..20 {
                let seq = SeqLayout::Partitioned.seq(written.position, number as u8, ordinal);
                assert_eq!(usize::from(SeqLayout::Partitioned.partition(seq)), number);
                assert!(seen.insert(seq, number).is_none());
            }
            assert_eq!(written.first, SeqLayout::Partitioned.seq(written.position, number as u8, 0));
        }
        if round == 1 {
            partitions.iter().for_each(|partition| partition.flush().unwrap());
        }
    }
    world.disk.crash(CrashStyle::Lose);
    drop(store);
    let store = world.open();
    for (number, partition) in store.partitions("t", "c").unwrap().iter().enumerate() {
        let mut since = partition.written_since(0, u64::MAX >> 24, 1_000).unwrap();
        let mut found = 0;
        while let Some((batch, seqs)) = since.read().unwrap() {
            assert!(seqs.iter().all(|seq| seen.get(seq) == Some(&number)));
            found += batch.rows();
        }
        assert_eq!(found, 60);
    }
    assert_eq!(store.check(), []);
}

#[test]
fn a_first_partition_that_is_gone_deletes_nothing() {
    let world = World::new();
    let store = world.open();
    store.create("t", "c", schema(IdRole::Given), several()).unwrap();
    fill(&store);
    store.close().unwrap();
    drop(store);
    for (path, _) in world.files("/t/c/p0/") {
        world.disk.vanish(&path).unwrap();
    }
    let before = world.files("/t/c/");
    let store = world.open();
    assert!(store.partitions("t", "c").is_none());
    let damaged = store.why_damaged("t", "c").expect("a reason");
    assert!(damaged.to_string().contains("p0"), "{damaged}");
    assert!(matches!(store.create("t", "c", schema(IdRole::Given), several()), Err(StoreError::Damaged(_))));
    assert!(store.drop_collection("t", "c").is_err());
    assert_eq!(world.files("/t/c/"), before);
}

#[test]
fn a_repair_puts_a_partition_together_and_leaves_the_others() {
    let world = World::new();
    let store = world.open();
    store.create("t", "c", schema(IdRole::Given), several()).unwrap();
    fill(&store);
    store.partitions("t", "c").unwrap().iter().for_each(|partition| partition.flush().unwrap());
    let before = ids(&store);
    store.close().unwrap();
    drop(store);
    for name in ["MANIFEST", "MANIFEST.copy"] {
        world.disk.vanish(&Path::new("/data/tenants/t/c/p2").join(name)).unwrap();
    }
    let store = world.open();
    assert!(store.partitions("t", "c").is_none());
    let repairs = store.repair();
    assert!(repairs.len() == 1 && repairs[0].mended, "{repairs:?}");
    let after = ids(&store);
    assert_eq!(after, before);
    let settings = store.partitions("t", "c").unwrap()[2].settings();
    assert_eq!(settings.partitions, PARTITIONS);
    drop(store);
    let store = world.open();
    assert_eq!((ids(&store), store.check()), (before, vec![]));
}

#[test]
fn a_repaired_partition_has_the_schema_settings_and_age_of_the_others() {
    for harmed in 0..PARTITIONS {
        let world = World::new();
        let store = world.open();
        store.create("t", "c", schema(IdRole::Given), several()).unwrap();
        let partitions = store.partitions("t", "c").unwrap();
        let created = partitions[0].created();
        fill(&store);
        partitions.iter().for_each(|partition| partition.flush().unwrap());
        let later = meridian_model::Field {
            name: "later".to_owned(),
            kind: meridian_model::FieldType::Int,
            required: false,
            title: None,
        };
        let settings = Settings { retention_bytes: Some(1 << 40), ..several() };
        for partition in partitions.iter().rev() {
            partition.change(vec![later.clone()], Some(settings.clone())).unwrap();
        }
        let (before, schema) = (ids(&store), partitions[0].schema());
        store.close().unwrap();
        drop((store, partitions));
        world.clock.advance(60_000_000);
        for name in ["MANIFEST", "MANIFEST.copy"] {
            world.disk.vanish(&Path::new(&format!("/data/tenants/t/c/p{harmed}")).join(name)).unwrap();
        }
        let store = world.open();
        let repairs = store.repair();
        assert!(repairs.len() == 1 && repairs[0].mended, "{repairs:?}");
        assert_eq!(ids(&store), before);
        for partition in store.partitions("t", "c").unwrap().iter() {
            let number = partition.partition();
            assert_eq!(
                (partition.schema(), partition.settings(), partition.created()),
                (schema.clone(), settings.clone(), created),
                "partition {number} after the loss of {harmed}"
            );
        }
    }
}

#[test]
fn a_change_that_a_crash_cut_reaches_all_partitions_at_the_next_start() {
    let field = |name: &str| meridian_model::Field {
        name: name.to_owned(),
        kind: meridian_model::FieldType::Int,
        required: false,
        title: None,
    };
    for changed in 0..=usize::from(PARTITIONS) {
        let world = World::new();
        let store = world.open();
        store.create("t", "c", schema(IdRole::Given), several()).unwrap();
        fill(&store);
        let settings = Settings { retention_bytes: Some(1 << 30), ..several() };
        let partitions = store.partitions("t", "c").unwrap();
        // From the last one on, as a change of the collection does.
        for partition in partitions.iter().rev().take(changed) {
            partition.change(vec![field("later")], Some(settings.clone())).unwrap();
        }
        world.disk.crash(CrashStyle::Lose);
        drop((store, partitions));
        let store = world.open();
        let partitions = store.partitions("t", "c").unwrap();
        let fields = partitions[0].schema().fields.len();
        assert_eq!(fields, schema(IdRole::Given).fields.len() + usize::from(changed > 0));
        let retention = (changed > 0).then_some(1 << 30);
        assert!(
            partitions
                .iter()
                .all(|p| p.schema() == partitions[0].schema() && p.settings().retention_bytes == retention)
        );
    }
}

#[test]
fn a_partition_that_lacks_a_field_gets_it_at_a_start_whichever_it_is() {
    for lacking in 0..usize::from(PARTITIONS) {
        let world = World::new();
        let store = world.open();
        store.create("t", "c", schema(IdRole::Given), several()).unwrap();
        let later = meridian_model::Field {
            name: "later".to_owned(),
            kind: meridian_model::FieldType::Int,
            required: false,
            title: None,
        };
        let partitions = store.partitions("t", "c").unwrap();
        for (_, partition) in partitions.iter().enumerate().filter(|(number, _)| *number != lacking) {
            partition.change(vec![later.clone()], None).unwrap();
        }
        store.close().unwrap();
        drop((store, partitions));
        let store = world.open();
        let partitions = store.partitions("t", "c").unwrap();
        let fields = schema(IdRole::Given).fields.len() + 1;
        assert!(partitions.iter().all(|partition| partition.schema().fields.len() == fields), "{lacking}");
    }
}

#[test]
fn a_backup_restores_every_partition() {
    let world = World::new();
    let store = world.open();
    store.create("t", "c", schema(IdRole::Given), several()).unwrap();
    fill(&store);
    let mut tar = Vec::new();
    let backup = store.backup(&BackupScope::everything(), &BTreeMap::new(), &mut tar, &|| false).unwrap();
    let numbers: Vec<u32> = backup.collections.iter().map(|saved| saved.partition()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert!(backup.collections.iter().all(|saved| saved.partitions() == PARTITIONS && saved.events() == 10));
    let before = ids(&store);
    let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..world.seams() };
    let folder = BackupFolder::open(seams.disk.clone(), Path::new("/backup")).unwrap();
    folder.receive(&mut tar.as_slice(), &mut |_| {}).unwrap();
    drop(folder);
    let options = Options { data: "/restored".into(), ..options() };
    meridian_store::Restore::of("/backup").to_folder(options.clone(), seams.clone(), &mut |_| {}).unwrap();
    let restored = Store::open(options, seams).unwrap();
    assert_eq!((ids(&restored), restored.problems()), (before, vec![]));
}

/// Opens a process that owns a bucket, with a disk of its own. No two of them draw the same random numbers.
fn shared(bucket: &MemoryBucket, process: u64) -> Store {
    let seams = Seams {
        disk: Arc::new(MemoryDisk::new()),
        clock: Arc::new(ManualClock::new(1_700_000_000_000_000)),
        random: Arc::new(SeededRandom::new(process)),
    };
    Store::open_shared(options(), seams, Arc::new(bucket.clone())).unwrap()
}

#[test]
fn an_owner_takes_all_partitions_over_and_a_reader_follows_them() {
    let bucket = MemoryBucket::new();
    let first = shared(&bucket, 1);
    first.create("t", "c", schema(IdRole::Given), several()).unwrap();
    fill(&first);
    let before = ids(&first);
    let second = shared(&bucket, 2);
    assert_eq!(ids(&second), before, "every acknowledged write, without a flush");
    for partition in first.partitions("t", "c").unwrap().iter() {
        let late = partition.write(Write::new(batch(&partition.schema(), &events(900, 901))));
        assert!(late.is_err(), "the former owner writes to partition {}", partition.partition());
    }
    second.partitions("t", "c").unwrap().iter().for_each(|partition| partition.flush().unwrap());
    let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
    let reader = Store::open_read_only(options(), seams, Arc::new(bucket.clone())).unwrap();
    assert_eq!(ids(&reader), before);
    let partitions = second.partitions("t", "c").unwrap();
    partitions[3].write(Write::new(batch(&partitions[3].schema(), &events(500, 503)))).unwrap();
    partitions[3].flush().unwrap();
    drop(partitions);
    assert!(reader.refresh().unwrap());
    assert_eq!(ids(&reader), ids(&second));
    // A drop removes all of it, for every process, and the name is free.
    assert!(second.drop_collection("t", "c").unwrap());
    reader.refresh().unwrap();
    assert!(reader.partitions("t", "c").is_none());
    second.create("t", "c", schema(IdRole::Given), Settings { partitions: 2, ..Settings::default() }).unwrap();
    drop(second);
    let third = shared(&bucket, 3);
    let partitions = third.partitions("t", "c").unwrap();
    assert_eq!((partitions.len(), partitions.iter().map(|p| p.stats().events).sum::<u64>()), (2, 0));
}

#[test]
fn a_check_of_a_bucket_reads_the_log_of_every_partition() {
    for harmed in 0..PARTITIONS {
        let bucket = MemoryBucket::new();
        let owner = shared(&bucket, 1);
        owner.create("t", "c", schema(IdRole::Given), several()).unwrap();
        // Two groups each: a log whose end is gone looks like one that was never written.
        fill(&owner);
        for partition in owner.partitions("t", "c").unwrap().iter() {
            partition.write(Write::new(batch(&partition.schema(), &events(700, 701)))).unwrap();
        }
        let check = || {
            let bucket: Arc<dyn meridian_store::Bucket> = Arc::new(bucket.clone());
            meridian_store::check_bucket(&bucket, &Seams::real()).unwrap().problems
        };
        assert_eq!(check(), []);
        let folder = format!("tenants/t/c/p{harmed}/00000000/wal/");
        let logs = bucket.objects().into_iter().map(|(name, _)| name).filter(|name| name.starts_with(&folder));
        // Not the last ones: a loss at the end cannot be distinguished from no write.
        let logs: Vec<String> = logs.collect();
        assert!(logs.len() > 1, "{logs:?}");
        bucket.harm(&logs[logs.len() - 2], Some(vec![7; 40]));
        let problems = check();
        assert!(!problems.is_empty(), "partition {harmed}");
        assert!(problems.iter().all(|problem| problem.path.to_string_lossy().contains(&folder)), "{problems:?}");
        drop(owner);
    }
}

#[test]
fn a_reader_takes_no_schema_up_that_a_later_partition_lacks() {
    for harmed in 0..PARTITIONS {
        let bucket = MemoryBucket::new();
        let owner = shared(&bucket, 1);
        owner.create("t", "c", schema(IdRole::Given), several()).unwrap();
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), ..Seams::real() };
        let reader = Store::open_read_only(options(), seams, Arc::new(bucket.clone())).unwrap();
        let later = meridian_model::Field {
            name: "later".to_owned(),
            kind: meridian_model::FieldType::Int,
            required: false,
            title: None,
        };
        for partition in owner.partitions("t", "c").unwrap().iter().rev() {
            partition.change(vec![later.clone()], None).unwrap();
        }
        let folder = format!("tenants/t/c/p{harmed}/00000000/manifests/");
        let names = bucket.objects().into_iter().map(|(name, _)| name);
        let number = |name: &String| u64::from_str_radix(name.strip_prefix(&folder)?, 16).ok();
        let newest = names.filter(|name| number(name).is_some()).max_by_key(number).expect("a manifest");
        bucket.harm(&newest, Some(vec![7; 40]));
        assert!(reader.refresh().is_err());
        let partitions = reader.partitions("t", "c").unwrap();
        let fields: Vec<usize> = partitions.iter().map(|partition| partition.schema().fields.len()).collect();
        assert!(fields.iter().all(|count| fields[0] <= *count), "{fields:?} without {harmed}");
    }
}
