//! Records shared by processes: races, pauses at every call, faults of the bucket, and losses.

use super::seams;
use crate::world::options;
use meridian_model::{RecordChange, RecordChanges};
use meridian_store::bucket::{BucketFault, MemoryBucket};
use meridian_store::seams::OpenMode;
use meridian_store::{ControlPlane, MoveOutcome, SharedRecords, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More calls than any of the runs makes.
const CALLS: u64 = 2_000;
/// More links than are kept.
const MANY: u64 = 300;

/// Opens the control plane as another process.
pub fn control(bucket: &MemoryBucket) -> Arc<ControlPlane> {
    ControlPlane::new(Arc::new(bucket.clone()), &seams(), 300 << 10)
}

fn process(bucket: &MemoryBucket) -> Arc<SharedRecords> {
    control(bucket).records("access")
}

/// Rereads all records and their version, as a new process.
fn all(records: &SharedRecords) -> (u64, BTreeMap<String, Vec<u8>>) {
    let Some(RecordChanges { version, whole, changes }) = records.since(0).unwrap() else {
        return (0, BTreeMap::new());
    };
    assert!(whole);
    (version, changes.into_iter().map(|change| (change.name, change.content.unwrap())).collect())
}

/// Makes another process write so much that earlier links are deleted.
fn go_on(bucket: &MemoryBucket) {
    let other = process(bucket);
    (0..MANY).for_each(|n| other.put("busy", &vec![n as u8; 8 << 10]).unwrap());
}

fn links(bucket: &MemoryBucket) -> Vec<String> {
    let names = bucket.objects().into_iter().map(|(name, _)| name);
    names.filter(|name| name.starts_with("records/access/")).collect()
}

#[test]
fn changes_of_many_processes_at_once_are_all_made_and_each_once() {
    const PROCESSES: u64 = 4;
    const CHANGES: u64 = 60;
    let bucket = MemoryBucket::new();
    std::thread::scope(|scope| {
        for number in 0..PROCESSES {
            let records = process(&bucket);
            scope.spawn(move || {
                let mut made = 0;
                while made < CHANGES {
                    // The sum loses a change applied to an old version, and counts twice one that is applied twice.
                    let (version, found) = all(&records);
                    let sum: u64 = found.get("sum").map_or(0, |text| String::from_utf8_lossy(text).parse().unwrap());
                    let changes = [
                        RecordChange::put("sum", (sum + 1).to_string()),
                        RecordChange::put(format!("p{number}-{made}"), sum.to_string()),
                    ];
                    made += u64::from(records.commit(version, &changes).unwrap().is_some());
                }
            });
        }
        let blind = process(&bucket);
        scope.spawn(move || (0..CHANGES).for_each(|n| blind.put(&format!("blind-{n}"), b"").unwrap()));
    });
    let (version, found) = all(&process(&bucket));
    assert_eq!(version, (PROCESSES + 1) * CHANGES, "a link for each change");
    assert_eq!(found["sum"], (PROCESSES * CHANGES).to_string().into_bytes());
    let mut sums: Vec<u64> = found
        .iter()
        .filter(|(name, _)| name.starts_with('p'))
        .map(|(_, sum)| String::from_utf8_lossy(sum).parse().unwrap())
        .collect();
    sums.sort_unstable();
    assert_eq!(sums, (0..PROCESSES * CHANGES).collect::<Vec<_>>());
}

#[test]
fn a_writer_that_wakes_up_changes_what_there_is_then_or_says_that_it_is_not_known() {
    let (mut paused, mut stray) = (0, 0);
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let writer = process(&bucket);
        (0..3).for_each(|n| writer.put(&format!("w{n}"), b"before").unwrap());
        let others = bucket.clone();
        bucket.pause(after, move || go_on(&others));
        let (version, _) = all(&writer);
        let done = writer.commit(version, &[RecordChange::put("paused", "here")]);
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        let (_, found) = all(&process(&bucket));
        let there = found.contains_key("paused");
        match done {
            Ok(Some(_)) => assert!(there, "pause after {after}: it was made and is gone"),
            Ok(None) => assert!(!there, "pause after {after}: it was not made and is there"),
            Err(StoreError::Unknown(_)) => stray += u32::from(!there),
            Err(error) => panic!("pause after {after}: {error}"),
        }
        assert_eq!(found["busy"], vec![(MANY - 1) as u8; 8 << 10], "pause after {after}: a change of others is lost");
        assert_eq!((0..3).filter(|n| found.contains_key(&format!("w{n}"))).count(), 3, "pause after {after}");
        // It continues from the current state.
        writer.put("after", b"").unwrap();
        let (version, found) = all(&writer);
        assert!(found.contains_key("after"));
        assert_eq!((version, found), all(&process(&bucket)), "pause after {after}");
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
    assert!(stray > 0, "no create met a number that was deleted");
}

#[test]
fn a_change_that_was_made_is_not_called_undone_by_a_writer_that_pauses_twice() {
    // Another process appends before one call of the writer, and many append before a later one.
    let run = |first: u64, second: Option<u64>| {
        let bucket = MemoryBucket::new();
        let writer = process(&bucket);
        (0..3).for_each(|n| writer.put(&format!("w{n}"), b"before").unwrap());
        let (version, _) = all(&writer);
        let others = bucket.clone();
        bucket.pause(first, move || {
            process(&others).put("next", b"").unwrap();
            if let Some(second) = second {
                let many = others.clone();
                others.pause(second, move || go_on(&many));
            }
        });
        let done = writer.commit(version, &[RecordChange::put("paused", "here")]);
        let ended = bucket.take_pause();
        (done, ended, all(&process(&bucket)).1.contains_key("paused"))
    };
    // The first call after the create: from there on the change is made whatever others do.
    let created = (0..CALLS).find(|first| matches!(run(*first, None).0, Ok(Some(_)))).unwrap();
    let (mut paused, mut unknown) = (0, 0);
    for second in 0..CALLS {
        let (done, ended, there) = run(created, Some(second));
        if ended {
            break;
        }
        paused += 1;
        match done {
            Ok(Some(_)) => assert!(there, "pause after {second}: it was made and is gone"),
            Ok(None) => assert!(!there, "pause after {second}: it was made and is called undone"),
            Err(StoreError::Unknown(_)) => unknown += 1,
            Err(error) => panic!("pause after {second}: {error}"),
        }
    }
    assert!((10..CALLS).contains(&paused) && unknown > 0, "{paused} calls were paused at, {unknown} unknown");
}

#[test]
fn old_links_are_deleted_a_few_at_a_time_also_those_that_a_process_has_left() {
    const DELETES: usize = 64;
    let bucket = MemoryBucket::new();
    // So much that all records are rewritten with every 500th change.
    let mut writer = process(&bucket);
    writer.put("much", &vec![0; 2 << 20]).unwrap();
    let (mut before, mut ended) = (1, false);
    for n in 0..1_700 {
        writer.put("busy", &[n as u8]).unwrap();
        let now = links(&bucket).len();
        assert!(now + DELETES > before, "{} links were deleted with change {n}", before + 1 - now);
        if now < before && !ended {
            // It ends before deleting most of the obsolete links.
            writer = process(&bucket);
            ended = true;
        }
        before = now;
    }
    assert!(ended && before < 520, "{before} links");
    assert_eq!(all(&process(&bucket)).1["busy"], [1_699u32 as u8]);
}

#[test]
fn a_reader_that_wakes_up_sees_what_there_is_then() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        let (writer, reader) = (process(&bucket), process(&bucket));
        writer.put("gone", b"").unwrap();
        let (known, _) = all(&reader);
        writer.put("new", b"").unwrap();
        let others = bucket.clone();
        bucket.pause(after, move || {
            process(&others).remove("gone").unwrap();
            go_on(&others);
        });
        let first = reader.since(known).unwrap().unwrap();
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        // It saw a state that existed, and the next poll returns the newest.
        assert!(first.changes.iter().any(|change| change.name == "new"), "pause after {after}");
        let (version, found) = all(&reader);
        assert!(!found.contains_key("gone") && found.contains_key("busy"), "pause after {after}: {:?}", found.keys());
        assert_eq!((version, found), all(&process(&bucket)), "pause after {after}");
        assert_eq!(reader.since(version).unwrap(), None);
    }
    assert!((10..CALLS).contains(&paused), "{paused} calls were paused at");
}

#[test]
fn followers_get_changes_in_order_and_all_records_once_they_are_far_behind() {
    let bucket = MemoryBucket::new();
    let (writer, reader) = (process(&bucket), process(&bucket));
    assert_eq!((reader.since(0).unwrap(), reader.names().unwrap(), reader.get("a").unwrap()), (None, vec![], None));
    let changes = [RecordChange::put("a", "1"), RecordChange::put("b", "1")];
    let first = writer.commit(0, &changes).unwrap().unwrap();
    assert_eq!(writer.commit(0, &changes).unwrap(), None, "of an old version");
    assert_eq!(all(&reader).0, first);
    writer.put("a", b"2").unwrap();
    writer.remove("b").unwrap();
    writer.remove("b").unwrap();
    let news = reader.since(first).unwrap().unwrap();
    let expected = vec![RecordChange::put("a", "2"), RecordChange::remove("b")];
    assert_eq!(news, RecordChanges { version: first + 2, whole: false, changes: expected });
    assert_eq!((reader.names().unwrap(), reader.get("a").unwrap()), (vec!["a".to_owned()], Some(b"2".to_vec())));
    go_on(&bucket);
    let news = reader.since(first + 2).unwrap().unwrap();
    assert!(news.whole && news.changes.len() == 2, "{:?}", news.version);
    assert!(writer.put("../a", b"").is_err() && writer.get("").is_err());
    // Old links are gone, and a stale listing hides no new one.
    (0..4).for_each(|_| go_on(&bucket));
    assert!(links(&bucket).len() < 400, "{}", links(&bucket).len());
    bucket.freeze_listings(true);
    go_on(&bucket);
    writer.put("last", b"").unwrap();
    assert!(process(&bucket).get("last").unwrap().is_some());
}

#[test]
fn a_create_that_goes_wrong_is_made_once() {
    let bucket = MemoryBucket::new();
    let writer = process(&bucket);
    let faults = [BucketFault::Before, BucketFault::After, BucketFault::Doubled, BucketFault::Stalled];
    for (n, fault) in (1..).zip(faults) {
        bucket.fail(fault, 0);
        assert_eq!(writer.commit(n - 1, &[RecordChange::put("a", n.to_string())]).unwrap(), Some(n), "{fault:?}");
        bucket.deliver();
        assert_eq!(all(&process(&bucket)).0, n, "{fault:?}");
    }
    bucket.fail(BucketFault::Full, 0);
    assert!(matches!(writer.commit(4, &[RecordChange::remove("a")]), Err(StoreError::Io { .. })));
    // The next poll shows what the store could not report.
    bucket.fail(BucketFault::Broken, 0);
    assert!(matches!(writer.commit(4, &[RecordChange::remove("a")]), Err(StoreError::Unknown(_))));
    assert_eq!(writer.since(4).unwrap(), None);
    bucket.cut(true);
    assert!(writer.get("a").is_err() && writer.put("b", b"").is_err());
    bucket.heal();
    assert_eq!(writer.get("a").unwrap().unwrap(), b"4");
}

/// Happens, for example, in a folder that is no longer mounted.
#[test]
fn records_that_are_gone_are_not_taken_for_unchanged() {
    let bucket = MemoryBucket::new();
    let reader = process(&bucket);
    process(&bucket).put("token", b"1").unwrap();
    let (version, _) = all(&reader);
    assert!(reader.since(version).unwrap().is_none());
    links(&bucket).iter().for_each(|link| bucket.harm(link, None));
    let error = reader.since(version).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }) && error.to_string().contains("mounted"), "{error}");
    assert!(matches!(reader.put("more", b""), Err(StoreError::Corrupt { .. })), "nothing is begun anew");
}

#[test]
fn a_link_that_is_damaged_or_missing_is_named_and_not_served_around() {
    for gone in [true, false] {
        let bucket = MemoryBucket::new();
        let (writer, reader) = (process(&bucket), process(&bucket));
        writer.put("token", b"1").unwrap();
        let (version, _) = all(&reader);
        writer.remove("token").unwrap();
        writer.put("other", b"").unwrap();
        let hit = links(&bucket)[1].clone();
        bucket.harm(&hit, (!gone).then(|| vec![7; 300]));
        let fresh = process(&bucket);
        let mut errors = vec![
            fresh.names().map(drop).unwrap_err(),
            fresh.commit(3, &[RecordChange::put("token", "2")]).map(drop).unwrap_err(),
        ];
        if !gone {
            errors.extend([reader.since(version).map(drop).unwrap_err(), reader.put("more", b"").unwrap_err()]);
        }
        for error in errors {
            let said = error.to_string();
            assert!(matches!(error, StoreError::Corrupt { .. }) && said.contains(&hit), "{said}");
        }
        assert_eq!(links(&bucket).len(), if gone { 2 } else { 3 }, "nothing is built on it");
        // A reader that has not read that far cannot know of the lost number, and gets an error.
        assert!(matches!(reader.put("more", b""), Err(StoreError::Corrupt { .. })), "{gone}");
    }
}

#[test]
fn records_of_a_folder_move_once_and_those_of_the_bucket_count() {
    let bucket = MemoryBucket::new();
    let open = || Store::open_shared(options(), seams(), Arc::new(bucket.clone())).unwrap();
    let kinds = ["saved", "access"];
    let store = open();
    assert_eq!(control(&bucket).move_in(&store, &kinds).unwrap(), MoveOutcome::Nothing);
    store.records("access").put_twice("token-1", b"mine").unwrap();
    store.records("saved").put("looked", b"here").unwrap();
    assert_eq!(control(&bucket).move_in(&store, &kinds).unwrap(), MoveOutcome::Records(2));
    assert_eq!(control(&bucket).move_in(&store, &kinds).unwrap(), MoveOutcome::Kept, "once");
    assert_eq!(process(&bucket).get("token-1").unwrap().unwrap(), b"mine");
    assert_eq!(control(&bucket).records("saved").get("looked").unwrap().unwrap(), b"here");
    let page = control(&bucket).audit().page(0, 10, &|_| true).unwrap();
    assert_eq!(page.lines.iter().map(|line| line.act.act.as_str()).collect::<Vec<_>>(), ["moveRecords"]);
    // Another owner's records do not join them.
    let other = open();
    other.records("access").put_twice("token-2", b"theirs").unwrap();
    assert_eq!(control(&bucket).move_in(&other, &kinds).unwrap(), MoveOutcome::Kept);
    assert_eq!(process(&bucket).names().unwrap(), ["token-1"]);
    // Saved searches alone move once too.
    let alone = MemoryBucket::new();
    let looked = open();
    looked.records("saved").put("looked", b"here").unwrap();
    assert_eq!(control(&alone).move_in(&looked, &kinds).unwrap(), MoveOutcome::Records(1));
    assert_eq!(control(&alone).move_in(&looked, &kinds).unwrap(), MoveOutcome::Kept, "once");
    assert_eq!(control(&alone).audit().page(0, 10, &|_| true).unwrap().lines.len(), 1);
    // A process that was interrupted between the two kinds moves the rest.
    let half = MemoryBucket::new();
    control(&half).records("saved").put("looked", b"here").unwrap();
    assert_eq!(control(&half).move_in(&store, &kinds).unwrap(), MoveOutcome::Records(2));
    assert_eq!(process(&half).names().unwrap(), ["token-1"]);
    // So does one with another folder, whose records join the existing ones.
    let mixed = MemoryBucket::new();
    control(&mixed).records("saved").put("looked", b"elsewhere").unwrap();
    control(&mixed).records("saved").put("theirs", b"here").unwrap();
    looked.records("saved").put("more", b"here").unwrap();
    looked.records("access").put("token-3", b"mine").unwrap();
    assert_eq!(control(&mixed).move_in(&looked, &kinds).unwrap(), MoveOutcome::Records(2));
    let saved = control(&mixed).records("saved");
    assert_eq!(saved.names().unwrap(), ["looked", "more", "theirs"]);
    assert_eq!(saved.get("looked").unwrap().unwrap(), b"elsewhere");
    assert_eq!(process(&mixed).names().unwrap(), ["token-3"]);
}

#[test]
fn records_of_a_folder_are_said_to_be_moved_only_where_they_count() {
    let mut paused = 0;
    for after in 0..CALLS {
        let bucket = MemoryBucket::new();
        // Over a bucket of its own, so that only calls of the move are paused.
        let store = Store::open_shared(options(), seams(), Arc::new(MemoryBucket::new())).unwrap();
        store.records("saved").put("looked", b"here").unwrap();
        store.records("access").put("token-1", b"mine").unwrap();
        let others = bucket.clone();
        bucket.pause(after, move || process(&others).put("token-2", b"theirs").unwrap());
        let moved = control(&bucket).move_in(&store, &["saved", "access"]);
        if bucket.take_pause() {
            break;
        }
        paused += 1;
        let there = process(&bucket).names().unwrap();
        match moved {
            Ok(MoveOutcome::Records(2)) => assert_eq!(there, ["token-1", "token-2"], "pause after {after}"),
            Ok(MoveOutcome::Kept) | Err(StoreError::Busy(_)) => assert_eq!(there, ["token-2"], "pause after {after}"),
            other => panic!("pause after {after}: {other:?}"),
        }
    }
    assert!((20..CALLS).contains(&paused), "{paused} calls were paused at");
}

#[test]
fn damage_in_a_folder_that_does_not_count_keeps_no_owner_from_starting() {
    let bucket = MemoryBucket::new();
    let seams = seams();
    let store = Store::open_shared(options(), seams.clone(), Arc::new(bucket.clone())).unwrap();
    store.records("access").put("token-1", b"mine").unwrap();
    let path = store.root().join("access").join("token-1");
    seams.disk.open(&path, OpenMode::Create).unwrap().write_at(0, &[7; 300]).unwrap();
    let refused = control(&bucket).move_in(&store, &["saved", "access"]);
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    assert_eq!(control(&bucket).audit().page(0, 10, &|_| true).unwrap().lines, [], "nothing was moved");
    process(&bucket).put("token-2", b"theirs").unwrap();
    assert_eq!(control(&bucket).move_in(&store, &["saved", "access"]).unwrap(), MoveOutcome::Kept);
}
