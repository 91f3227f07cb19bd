//! The log over a disk that crashes, fills up and fails.

use super::*;
use crate::seams::{CrashStyle, FaultKind, ManualClock, MemoryDisk, SeededRandom};

const ROOT: &str = "/data";

fn disk() -> Arc<MemoryDisk> {
    with_root(MemoryDisk::new())
}

fn with_root(disk: MemoryDisk) -> Arc<MemoryDisk> {
    let disk = Arc::new(disk);
    disk.create_dir(Path::new(ROOT)).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn open(disk: &Arc<MemoryDisk>, bytes_total: u64) -> AuditLog {
    let clock = Arc::new(ManualClock::new(1_767_268_800_000_000));
    let seams = Seams { disk: disk.clone(), clock, random: Arc::new(SeededRandom::new(1)) };
    AuditLog::open(&seams, Path::new(ROOT), bytes_total, false)
}

fn act(target: &str) -> Act {
    Act {
        who: "8f1d0c2a9be34f55".to_owned(),
        act: "createToken".to_owned(),
        target: target.to_owned(),
        ..Act::default()
    }
}

fn targets(log: &AuditLog) -> Vec<String> {
    log.page(0, usize::MAX, &|_| true).unwrap().lines.into_iter().map(|line| line.act.target).collect()
}

fn first_file() -> PathBuf {
    Path::new(ROOT).join("audit/0000000000000001.ndjson")
}

/// The lines of the first file, without their ends.
fn lines(disk: &MemoryDisk) -> Vec<String> {
    let file = disk.open(&first_file(), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn acts_are_read_back_in_pages_and_survive_a_crash() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    assert_eq!((log.last(), targets(&log)), (None, Vec::<String>::new()));
    for n in 1..=5 {
        assert_eq!(log.append(&act(&format!("/tokens/{n}"))).unwrap(), n);
    }
    let last = log.last();
    disk.crash(CrashStyle::Lose);
    let log = open(&disk, 1 << 20);
    assert_eq!(log.last(), last);
    assert_eq!(log.append(&act("/tokens/6")).unwrap(), 6);
    assert_eq!((log.verify(), targets(&log).len()), (None, 6));
    let page = log.page(2, 2, &|line| line.act.target != "/tokens/4").unwrap();
    assert_eq!(page.lines.iter().map(|line| line.n).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(log.page(page.next.unwrap(), 2, &|_| true).unwrap().lines[0].n, 6);
    // Each line holds the hash of the one before, as any other tool computes it.
    let lines = lines(&disk);
    for pair in lines.windows(2) {
        assert!(pair[1].contains(&act::hex(&tail::hash(pair[0].as_bytes()))), "{}", pair[1]);
    }
    assert!(lines[0].contains(&"0".repeat(64)) && lines[0].contains("2026-01-01T12:00:00Z"), "{}", lines[0]);
}

#[test]
fn a_line_that_was_changed_removed_or_moved_is_found() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    for n in 1..=6 {
        log.append(&act(&format!("/tokens/{n}"))).unwrap();
    }
    let whole = lines(&disk);
    let with = |lines: Vec<String>| {
        disk.put(&first_file(), (lines.join("\n") + "\n").into_bytes());
        open(&disk, 1 << 20).verify().map(|problem| problem.detail).unwrap_or_default()
    };
    assert_eq!(with(whole.clone()), "");
    let mut changed = whole.clone();
    changed[2] = changed[2].replace("/tokens/3", "/tokens/9");
    assert!(with(changed).starts_with("line 4 (number 4) does not follow"));
    let mut removed = whole.clone();
    removed.remove(3);
    assert!(with(removed).starts_with("line 4 (number 4) is not a line"));
    let mut moved = whole.clone();
    moved.swap(1, 2);
    assert!(with(moved).starts_with("line 2 (number 2) is not a line"));
    // Renumbered, as if it had never been.
    let mut renumbered = whole.clone();
    renumbered.remove(0);
    for (n, line) in renumbered.iter_mut().enumerate() {
        *line = line.replace(&format!("\"n\":{}", n + 2), &format!("\"n\":{}", n + 1));
    }
    assert!(with(renumbered).starts_with("line 1 (number 1) does not follow"));
    let mut nulled = whole.clone();
    nulled[1] = nulled[1].replace("createToken", "create\0oken");
    // Not taken for what a crash left: lines follow.
    assert!(with(nulled).starts_with("line 2 (number 2) is not a line"));
    assert_eq!(with(whole), "");
}

#[test]
fn what_a_crash_left_of_a_line_is_cut_off() {
    for seed in 1..200 {
        let disk = with_root(MemoryDisk::seeded(seed));
        let log = open(&disk, 1 << 20);
        log.append(&act("/tokens/1")).unwrap();
        log.append(&act("/tokens/2")).unwrap();
        // Written, and not synced.
        disk.inject_times(FaultKind::SyncFails, "audit", 0, 1);
        assert!(log.append(&act(&format!("/tokens/{}", "3".repeat(400)))).is_err());
        assert!(log.append(&act("/tokens/4")).is_err(), "nobody knows what is on disk");
        assert!(log.verify().is_some());
        disk.crash(CrashStyle::Scatter(&SeededRandom::new(seed)));
        let log = open(&disk, 1 << 20);
        log.append(&act("/tokens/5")).unwrap();
        assert_eq!(log.verify(), None);
        let found = targets(&log);
        assert_eq!((&*found[0], &*found[1], &**found.last().unwrap()), ("/tokens/1", "/tokens/2", "/tokens/5"));
        assert!(found.len() <= 4);
    }
}

#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    log.append(&act("/tokens/1")).unwrap();
    disk.inject_times(FaultKind::WriteFails, "audit", 0, 1);
    assert!(log.append(&act(&"2".repeat(300))).is_err());
    log.append(&act("/tokens/3")).unwrap();
    assert_eq!((log.verify(), targets(&log)), (None, vec!["/tokens/1".to_owned(), "/tokens/3".to_owned()]));
}

#[test]
fn the_oldest_files_go_and_the_rest_is_still_a_chain() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    let long = "x".repeat(500);
    for _ in 0..5_000 {
        log.append(&act(&long)).unwrap();
    }
    let names = disk.list(&Path::new(ROOT).join("audit")).unwrap();
    assert!(names.len() > 10 && !names.contains(&"0000000000000001.ndjson".to_owned()), "{names:?}");
    let bytes: u64 = log.files.sizes().unwrap().values().sum();
    assert!(bytes <= 1 << 20 && bytes > 900 << 10, "{bytes}");
    assert_eq!(log.verify(), None);
    let log = open(&disk, 1 << 20);
    assert_eq!((log.verify(), log.last().unwrap().0), (None, 5_000));
    let page = log.page(0, 3, &|_| true).unwrap();
    assert_eq!(page.lines.len(), 3);
    // A file in the middle is missed.
    disk.vanish(&Path::new(ROOT).join("audit").join(&names[4])).unwrap();
    let problem = open(&disk, 1 << 20).verify().unwrap().to_string();
    assert!(problem.contains(&names[5]) && problem.contains("are missing before it"), "{problem}");
}

#[test]
fn acts_are_recorded_on_a_full_disk_for_a_while() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    log.append(&act("/tokens/1")).unwrap();
    disk.set_capacity(Some(disk.files().iter().map(|(_, bytes)| bytes).sum()));
    for n in 0..100 {
        log.append(&act(&format!("/collections/{n}"))).unwrap();
    }
    let refused = (0..10_000).find_map(|n| log.append(&act(&format!("/{n}"))).err());
    assert!(refused.unwrap().is_full());
    disk.set_capacity(None);
    log.append(&act("/tokens/2")).unwrap();
    assert_eq!((log.verify(), targets(&log).last().unwrap().as_str()), (None, "/tokens/2"));
}

#[test]
fn texts_of_clients_are_cut() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    log.append(&Act { who: "ä".repeat(50_000), target: "\n\u{1}".repeat(50_000), ..act("") }).unwrap();
    log.append(&act("/tokens/1")).unwrap();
    let lines = lines(&disk);
    assert!(lines.len() == 2 && lines[0].len() < 8 << 10, "{}", lines[0].len());
    assert_eq!(log.verify(), None);
}
