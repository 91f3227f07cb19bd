use super::*;
use crate::seams::MemoryDisk;

fn record(position: u64, len: usize) -> Record {
    let body = vec![position as u8; len];
    Record { position, kind: Kind::Write, time: 5, events: 1, key: b"k".to_vec(), body }
}

fn open(disk: &MemoryDisk, flushed: u64) -> (Log, Recovered) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    disk.create_dir(Path::new("/l")).unwrap();
    Log::open(&disk, Path::new("/l"), 4096, flushed).unwrap()
}

fn positions(found: &Recovered) -> Vec<u64> {
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
        log.release(round * 10 + 9).unwrap();
    }
    // Spares are few, and what was written last is all that is found.
    assert!(disk.files().len() <= 6, "{:?}", disk.files());
    let (_, found) = open(&disk, 99);
    assert_eq!(positions(&found), [100]);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
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

/// Every bit of a log of three groups, flipped one at a time.
#[test]
fn a_flipped_bit_is_damage_unless_it_lies_in_the_last_group() {
    let build = || {
        let disk = MemoryDisk::new();
        let (mut log, _) = open(&disk, 0);
        let mut ends = vec![0];
        for group in [vec![record(1, 20), record(2, 30)], vec![record(3, 25)], vec![record(4, 9), record(5, 40)]] {
            log.append(&group).unwrap();
            ends.push(log.tail_bytes());
        }
        (disk, ends)
    };
    let (disk, ends) = build();
    let path = disk.files()[0].0.clone();
    for bit in 0..ends[3] * 8 {
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

/// A group of which the first record was lost and the second kept must not come back behind later writes.
#[test]
fn a_forgotten_tail_stays_forgotten() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    log.append(&[record(1, 24)]).unwrap();
    let first = log.tail_bytes();
    log.append(&[record(2, 24), record(3, 24)]).unwrap();
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

/// Of a group that the disk took only in part, not even the records that reached it whole may come back.
#[test]
fn a_group_that_did_not_fit_leaves_nothing_behind() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 0);
    log.append(&[record(1, 24)]).unwrap();
    disk.set_capacity(Some(log.tail_bytes() + 500));
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

/// Once a manifest covers all records a start reads no file, and one that is gone is missed only if it held more.
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
    log.release(3).unwrap();
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
