use super::open::RecoveredLog;
use super::*;
use crate::seams::Kind;
use crate::seams::{CrashStyle, FaultKind, MemoryDisk};

fn record(position: u64, len: usize) -> Record {
    let body = vec![position as u8; len];
    Record { position, kind: Kind::Write, time: 5, events: 1, key: b"k".to_vec(), body }
}

fn open(disk: &MemoryDisk, flushed: u64) -> (Log, RecoveredLog) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    disk.create_dir(Path::new("/l")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    Log::open(&disk, Path::new("/l"), 4096, flushed).unwrap()
}

fn positions(found: &RecoveredLog) -> Vec<u64> {
    found.records.iter().map(|r| r.position).collect()
}

#[test]
fn records_come_back_over_files() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    for position in 1..=30 {
        log.append(&[record(position, 700)]).unwrap();
    }
    assert!(disk.files().len() > 3);
    let (_, found) = open(&disk, 0);
    assert_eq!(found.records, (1..=30).map(|p| record(p, 700)).collect::<Vec<_>>());
    let (_, found) = open(&disk, 12);
    assert_eq!(positions(&found), (13..=30).collect::<Vec<_>>());
    assert!(found.damage.is_empty());
}

#[test]
fn files_used_again_do_not_show_their_former_records() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    for round in 0..10u64 {
        for i in 1..=10 {
            log.append(&[record(round * 10 + i, 500)]).unwrap();
        }
        log.release(round * 10 + 9, None).unwrap();
    }
    // Spares are few, and only the last write is found.
    assert!(disk.files().len() <= 6, "{:?}", disk.files());
    let (_, found) = open(&disk, 99);
    assert_eq!(positions(&found), [100]);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
}

/// A crash may restore a file's former name. Then its former records must be intact.
#[test]
fn a_reuse_that_a_crash_undoes_is_not_taken_for_damage() {
    // The syncs of a write that begins a file: folder, file, `NEWEST`, folder, file.
    for (after, again) in (0..6).flat_map(|after| [(after, false), (after, true)]) {
        let disk = MemoryDisk::new();
        let (mut log, _) = open(&disk, 0);
        log.append(&[record(1, 24)]).unwrap();
        log.release(1, None).unwrap();
        disk.inject(FaultKind::SyncFails, "/l", after);
        let mut written = log.append(&[record(2, 24)]);
        assert_eq!(written.is_ok(), after == 5, "{written:?}");
        if again && matches!(written, Err(AppendError::Clean(_))) {
            disk.heal();
            written = log.append(&[record(2, 24)]);
            assert!(written.is_ok(), "after {after}: {written:?}");
        }
        disk.crash(CrashStyle::Lose);
        let (mut log, found) = open(&disk, 1);
        assert!(found.damage.is_empty(), "after {after}, again {again}: {:?}", found.damage);
        let mut expected = if written.is_ok() { vec![2] } else { Vec::new() };
        assert_eq!(positions(&found), expected, "after {after}, again {again}");
        let next = 2 + expected.len() as u64;
        log.append(&[record(next, 24)]).unwrap();
        expected.push(next);
        disk.crash(CrashStyle::Lose);
        let (_, found) = open(&disk, 1);
        assert!(found.damage.is_empty(), "after {after}, again {again}: {:?}", found.damage);
        assert_eq!(positions(&found), expected, "after {after}, again {again}");
    }
}

#[test]
fn a_record_larger_than_a_file_is_taken() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    for position in 1..=3 {
        log.append(&[record(position, 10_000)]).unwrap();
    }
    assert_eq!(positions(&open(&disk, 0).1), [1, 2, 3]);
}

/// Flips every bit of a log of three groups, one at a time.
#[test]
fn a_flipped_bit_is_damage_unless_it_lies_in_the_last_group() {
    let build = || {
        let disk = MemoryDisk::new();
        let (mut log, _) = open(&disk, 0);
        let mut ends = vec![HEAD_BYTES];
        for group in [vec![record(1, 20), record(2, 30)], vec![record(3, 25)], vec![record(4, 9), record(5, 40)]] {
            log.append(&group).unwrap();
            ends.push(HEAD_BYTES + log.tail_bytes());
        }
        // Power fails before the kernel writes the last mark back.
        disk.crash(CrashStyle::Lose);
        (disk, ends)
    };
    let (disk, ends) = build();
    let path = disk.files()[0].0.clone();
    for bit in HEAD_BYTES * 8..ends[3] * 8 {
        let (disk, _) = build();
        disk.flip_bit(&path, bit).unwrap();
        let (_, found) = open(&disk, 0);
        let positions = positions(&found);
        let lost: Vec<u64> = (1..=5).filter(|p| !positions.contains(p)).collect();
        if bit < ends[2] * 8 {
            // Padding may be flipped without harm.
            assert_eq!(found.damage.is_empty(), lost.is_empty(), "bit {bit}: lost {lost:?}");
            assert!(lost.len() <= 2 && lost.iter().all(|p| *p <= 3), "bit {bit}: lost {lost:?}");
        } else {
            assert!(found.damage.is_empty(), "bit {bit}");
            assert!(lost.iter().all(|p| *p >= 4), "bit {bit}: lost {lost:?}");
        }
    }
}

/// A group whose first record was lost and second kept must not reappear behind later writes.
#[test]
fn a_forgotten_tail_stays_forgotten() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    log.append(&[record(1, 24)]).unwrap();
    let first = HEAD_BYTES + log.tail_bytes();
    log.append(&[record(2, 24), record(3, 24)]).unwrap();
    disk.crash(CrashStyle::Lose);
    disk.flip_bit(&disk.files()[0].0, first * 8 + 77).unwrap();
    let (mut log, found) = open(&disk, 0);
    assert_eq!(positions(&found), [1]);
    assert!(found.torn_bytes > 0);
    log.append(&[Record { body: vec![9; 24], ..record(2, 24) }]).unwrap();
    let (_, found) = open(&disk, 0);
    assert_eq!(positions(&found), [1, 2]);
    assert_eq!(found.records[1].body, vec![9; 24]);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
}

/// If a group reached the disk only in part, not even its complete records may reappear.
#[test]
fn a_group_that_did_not_fit_leaves_nothing_behind() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    log.append(&[record(1, 24)]).unwrap();
    let used: u64 = disk.files().iter().map(|(_, len)| len).sum();
    disk.set_capacity(Some(used + 500));
    let refused = log.append(&[record(2, 24), record(3, 2000)]);
    assert!(matches!(refused, Err(AppendError::Clean(_))), "{refused:?}");
    // The disk took the first record whole, which a restart would read if it were still there.
    assert_eq!(positions(&open(&disk, 0).1), [1]);
    disk.set_capacity(None);
    log.append(&[Record { body: vec![9; 24], ..record(2, 24) }]).unwrap();
    let (_, found) = open(&disk, 0);
    assert_eq!(positions(&found), [1, 2]);
    assert_eq!(found.records[1].body, vec![9; 24]);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
}

/// Once a manifest covers all records, a start reads no file. A missing file is reported only if it held more.
#[test]
fn a_log_that_is_covered_leaves_nothing_to_read() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    let records = |disk: &MemoryDisk| {
        let files = disk.files().into_iter().map(|(path, _)| path);
        files.filter(|path| path.extension().is_some_and(|e| e == "log")).collect::<Vec<_>>()
    };
    for position in 1..=3 {
        log.append(&[record(position, 24)]).unwrap();
    }
    log.release(3, None).unwrap();
    assert_eq!((records(&disk), log.tail_bytes()), (Vec::new(), 0));
    let (mut log, found) = open(&disk, 3);
    assert!(found.records.is_empty() && found.damage.is_empty(), "{:?}", found.damage);
    log.append(&[record(4, 24)]).unwrap();
    assert_eq!(positions(&open(&disk, 3).1), [4]);
    // A record that is not covered is in a file that `NEWEST` names.
    let newest = records(&disk).pop().unwrap();
    let elsewhere: Arc<dyn Disk> = Arc::new(disk.clone());
    elsewhere.remove(&newest).unwrap();
    assert_eq!(open(&disk, 3).1.damage.len(), 1);
}

/// Creates a log of 50 groups; returns its newest file too.
fn fifty() -> (MemoryDisk, PathBuf) {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    for position in 1..=50 {
        log.append(&[record(position, 20)]).unwrap();
    }
    let newest = log.newest.clone().unwrap();
    (disk, newest)
}

/// Corrupts a file from this byte on, in one of several ways.
fn spoil(disk: &MemoryDisk, path: &Path, from: usize, how: usize) {
    let mut bytes = disk.vanish(path).unwrap();
    match how {
        0 => bytes.truncate(from),
        1 => bytes[from..].fill(0),
        2 => bytes[from..].fill(0xa5),
        // The old content, as on a medium that lost the last writes.
        _ => {
            let (head, to) = (HEAD_BYTES as usize, from.min(bytes.len() - 72));
            bytes.copy_within(head..head + 72, to);
        }
    }
    disk.put(path, bytes);
}

#[test]
fn acknowledged_records_are_missed_wherever_the_newest_file_is_cut_zeroed_or_overwritten() {
    let (disk, newest) = fifty();
    let (_, len) = disk.files().into_iter().find(|(path, _)| *path == newest).unwrap();
    let head = HEAD_BYTES as usize;
    let places = (0..head).step_by(509).chain((head..len as usize).step_by(37));
    for (from, how) in places.flat_map(|from| (0..4).map(move |how| (from, how))) {
        for power in [true, false] {
            let (disk, newest) = fifty();
            if !power {
                disk.crash(CrashStyle::Lose);
            }
            spoil(&disk, &newest, from, how);
            let (_, found) = open(&disk, 0);
            let there = positions(&found);
            let said = found.damage.iter().map(ToString::to_string).collect::<Vec<_>>();
            let at = format!("{how} from byte {from}, power on: {power}: {} records, {said:?}", there.len());
            assert!(said.iter().all(|text| text.contains(newest.to_str().unwrap())), "{at}");
            // Without power the mark of the last group is not on disk, but everything else is.
            let known = if power { 50 } else { 49 };
            assert!(!said.is_empty() || there.iter().copied().eq(1..=there.len().max(known) as u64), "{at}");
            if how < 3 && !said.is_empty() {
                // Only the older of the two marks may be left.
                let missing = [known, 49].map(|last| format!("writes {} to {last}", there.len() + 1));
                let named = |t: &String| missing.iter().any(|m| t.contains(m)) || t.contains("neither of its marks");
                assert!(said.iter().any(named), "{at}");
            }
        }
    }
}

#[test]
fn a_mark_that_is_torn_or_damaged_costs_nothing_while_the_other_reads() {
    for bit in (0..28 * 8).chain(4096 * 8..(4096 + 28) * 8) {
        let (disk, newest) = fifty();
        disk.flip_bit(&newest, bit).unwrap();
        let (_, found) = open(&disk, 0);
        assert!(found.damage.is_empty() && found.records.len() == 50, "bit {bit}: {:?}", found.damage);
        // The start repaired it: a record lost now is reported, even the last one.
        spoil(&disk, &newest, HEAD_BYTES as usize + 49 * 72, 1);
        assert_eq!(open(&disk, 0).1.damage.len(), 1, "bit {bit}");
    }
}

#[test]
fn a_start_and_a_seal_say_that_the_last_group_is_there() {
    for sealed in [true, false] {
        let (disk, newest) = fifty();
        if sealed {
            let (mut log, _) = open(&disk, 0);
            log.append(&[record(51, 20)]).unwrap();
            log.seal().unwrap();
        }
        disk.crash(CrashStyle::Lose);
        let last = if sealed { 51 } else { 50 };
        if !sealed {
            open(&disk, 0);
            disk.crash(CrashStyle::Lose);
        }
        let newest = open(&disk, 0).0.newest.unwrap_or(newest);
        spoil(&disk, &newest, HEAD_BYTES as usize + 40, 1);
        let (_, found) = open(&disk, 0);
        let said = found.damage.iter().map(ToString::to_string).collect::<String>();
        assert!(said.contains(&format!("to {last} were acknowledged")), "{said}");
    }
}

/// A log written before marks existed.
#[test]
fn a_log_without_marks_opens_and_the_next_file_has_them() {
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new("/l")).unwrap();
    let mut bytes = Vec::new();
    record(1, 20).encode(1, 0, &mut bytes);
    let end = bytes.len() as u64;
    record(2, 20).encode(1, end, &mut bytes);
    disk.put(Path::new("/l/0000000000000001.log"), bytes);
    let named = crate::codec::frame(b"MRDNNEWE", 1, &1u64.to_le_bytes());
    disk.put(Path::new("/l/NEWEST"), named);
    let (mut log, found) = open(&disk, 0);
    assert_eq!(positions(&found), [1, 2]);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    log.append(&[record(3, 20)]).unwrap();
    let newest = log.newest.clone().unwrap();
    let (_, found) = open(&disk, 0);
    assert_eq!((positions(&found), found.damage.len()), (vec![1, 2, 3], 0));
    spoil(&disk, &newest, HEAD_BYTES as usize, 1);
    assert_eq!(open(&disk, 0).1.damage.len(), 1);
}
