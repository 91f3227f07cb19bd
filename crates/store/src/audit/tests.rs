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

fn names(disk: &MemoryDisk) -> Vec<String> {
    disk.list(&Path::new(ROOT).join("audit")).unwrap()
}

/// Returns the lines of the first file, without line endings.
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
    assert_eq!((log.ends(), targets(&log)), (None, Vec::<String>::new()));
    for n in 1..=5 {
        assert_eq!(log.append(&[act(&format!("/tokens/{n}"))]).unwrap(), n);
    }
    let ends = log.ends();
    disk.crash(CrashStyle::Lose);
    let log = open(&disk, 1 << 20);
    assert_eq!(log.ends(), ends);
    assert_eq!(log.append(&[act("/tokens/6")]).unwrap(), 6);
    assert_eq!((log.verify(), targets(&log).len()), (None, 6));
    let page = log.page(2, 2, &|line| line.act.target != "/tokens/4").unwrap();
    assert_eq!(page.lines.iter().map(|line| line.n).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(log.page(page.next.unwrap(), 2, &|_| true).unwrap().lines[0].n, 6);
    // Each line holds the hash of the previous one, as any other tool would compute it.
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
        log.append(&[act(&format!("/tokens/{n}"))]).unwrap();
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
    // Removed, and the rest renumbered.
    let mut renumbered = whole.clone();
    renumbered.remove(0);
    for (n, line) in renumbered.iter_mut().enumerate() {
        *line = line.replace(&format!("\"n\":{}", n + 2), &format!("\"n\":{}", n + 1));
    }
    assert!(with(renumbered).starts_with("line 1 (number 1) does not follow"));
    let mut nulled = whole.clone();
    nulled[1] = nulled[1].replace("createToken", "create\0oken");
    // Lines follow, so this is not taken for the remains of a crash.
    assert!(with(nulled).starts_with("line 2 (number 2) is not a line"));
    assert_eq!(with(whole), "");
}

#[test]
fn what_a_crash_left_of_a_line_is_cut_off() {
    for seed in 1..200 {
        let disk = with_root(MemoryDisk::seeded(seed));
        let log = open(&disk, 1 << 20);
        log.append(&[act("/tokens/1")]).unwrap();
        log.append(&[act("/tokens/2")]).unwrap();
        // Written but not synced.
        disk.inject_times(FaultKind::SyncFails, "audit", 0, 1);
        let group: Vec<Act> = (0..10).map(|_| act(&format!("/tokens/{}", "3".repeat(400)))).collect();
        assert!(log.append(&group).is_err());
        assert!(log.append(&[act("/tokens/4")]).is_err(), "nobody knows what is on disk");
        assert!(log.verify().is_some());
        disk.crash(CrashStyle::Scatter(&SeededRandom::new(seed)));
        let log = open(&disk, 1 << 20);
        log.append(&[act("/tokens/5")]).unwrap();
        assert_eq!(log.verify(), None);
        let found = targets(&log);
        assert_eq!((&*found[0], &*found[1], &**found.last().unwrap()), ("/tokens/1", "/tokens/2", "/tokens/5"));
        assert!(found.len() <= 13);
    }
}

#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    log.append(&[act("/tokens/1")]).unwrap();
    disk.inject_times(FaultKind::WriteFails, "audit", 0, 1);
    assert!(log.append(&[act(&"2".repeat(300))]).is_err());
    log.append(&[act("/tokens/3")]).unwrap();
    assert_eq!((log.verify(), targets(&log)), (None, vec!["/tokens/1".to_owned(), "/tokens/3".to_owned()]));
}

#[test]
fn the_oldest_files_go_and_the_rest_is_still_a_chain() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    let long = "x".repeat(500);
    for _ in 0..5_000 {
        log.append(&[act(&long)]).unwrap();
    }
    let names = names(&disk);
    assert!(names.len() > 10 && !names.contains(&"0000000000000001.ndjson".to_owned()), "{names:?}");
    let bytes: u64 = log.files.sizes().unwrap().values().sum();
    assert!(bytes <= 1 << 20 && bytes > 800 << 10, "{bytes}");
    assert_eq!(log.verify(), None);
    let ends = log.ends();
    let log = open(&disk, 1 << 20);
    assert_eq!((log.verify(), log.ends()), (None, ends));
    let page = log.page(0, 3, &|_| true).unwrap();
    assert_eq!(page.lines.len(), 3);
    // A missing file is detected in the middle, at the start unless a line records the removal, and if all are missing.
    let vanish = |name: &String| drop(disk.vanish(&Path::new(ROOT).join("audit").join(name)).unwrap());
    vanish(&names[0]);
    let problem = open(&disk, 1 << 20).verify().unwrap().to_string();
    assert!(problem.contains(&names[1]) && problem.contains("no line says"), "{problem}");
    vanish(&names[4]);
    let problem = open(&disk, 1 << 20).verify().unwrap().to_string();
    assert!(problem.contains(&names[5]) && problem.contains("are missing before it"), "{problem}");
    self::names(&disk).iter().filter(|name| name.ends_with(EXTENSION)).for_each(vanish);
    let problem = open(&disk, 1 << 20).verify().unwrap().to_string();
    assert!(problem.contains("all of its lines are missing"), "{problem}");
}

#[test]
fn a_tenant_that_floods_the_log_pushes_out_its_own_lines() {
    let disk = disk();
    let mut log = open(&disk, 1 << 20);
    let of = |tenant: &str, target: &str, status| Act { tenant: tenant.to_owned(), status, ..act(target) };
    for n in 0..50 {
        log.append(&[of("red", &format!("/collections/{n}"), None), of("blue", &format!("/users/{n}"), None)]).unwrap();
    }
    let long = "x".repeat(400);
    for n in 0..12_000 {
        // By users without rights, and by admins.
        let status = (n % 2 == 0).then_some(403);
        log.append(&[of("blue", &long, status)]).unwrap();
        if n == 7_000 {
            disk.crash(CrashStyle::Lose);
            log = open(&disk, 1 << 20);
        }
    }
    let bytes: u64 = log.files.sizes().unwrap().values().sum();
    assert!(bytes <= 1 << 20, "{bytes}");
    assert_eq!(log.verify(), None);
    let all = log.page(0, usize::MAX, &|_| true).unwrap().lines;
    let red: Vec<_> = all.iter().filter(|line| line.act.tenant == "red").collect();
    let (numbers, targets): (Vec<_>, Vec<_>) =
        red.iter().map(|line| (line.act.first.unwrap(), line.act.target.clone())).unzip();
    assert_eq!(numbers, (0..50).map(|n| 2 * n + 1).collect::<Vec<_>>());
    assert_eq!(targets, (0..50).map(|n| format!("/collections/{n}")).collect::<Vec<_>>());
    assert!(red.iter().all(|line| line.time == 1_767_268_800_000_000), "when it was done, not when it was kept");
    assert!(all.iter().all(|line| !line.act.target.starts_with("/users")), "the oldest of the tenant itself go");
    let said = all.iter().rfind(|line| line.act.act == "trimAudit").unwrap();
    assert_eq!((said.act.trimmed.unwrap() + 1, &*said.act.who), (log.ends().unwrap().0, "server"));
    assert!(said.act.change.as_ref().unwrap().contains("lines were removed"));
}

#[test]
fn a_flood_of_attempts_pushes_out_no_acts_of_the_same_tenant() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    log.append(&[act("/users/anna")]).unwrap();
    for _ in 0..5_000 {
        log.append(&[Act { status: Some(200), ..act(&"x".repeat(400)) }]).unwrap();
    }
    assert_eq!(log.page(0, usize::MAX, &|line| line.act.target == "/users/anna").unwrap().lines.len(), 1);
}

#[test]
fn acts_are_recorded_on_a_full_disk_for_a_while() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    log.append(&[act("/tokens/1")]).unwrap();
    disk.set_capacity(Some(disk.files().iter().map(|(_, bytes)| bytes).sum()));
    for n in 0..100 {
        log.append(&[act(&format!("/collections/{n}"))]).unwrap();
    }
    let refused = (0..10_000).find_map(|n| log.append(&[act(&format!("/{n}"))]).err());
    assert!(refused.unwrap().is_full());
    disk.set_capacity(None);
    log.append(&[act("/tokens/2")]).unwrap();
    assert_eq!((log.verify(), targets(&log).last().unwrap().as_str()), (None, "/tokens/2"));
}

#[test]
fn texts_of_clients_are_cut() {
    let disk = disk();
    let log = open(&disk, 1 << 20);
    let whole = "x".repeat(1_300);
    log.append(&[Act { change: Some(whole.clone()), ..act("") }]).unwrap();
    log.append(&[Act { who: "ä".repeat(50_000), target: "\n\u{1}".repeat(50_000), ..act("") }]).unwrap();
    log.append(&[act("/tokens/1")]).unwrap();
    let lines = lines(&disk);
    assert!(lines.len() == 3 && lines[1].len() < 8 << 10, "{}", lines[1].len());
    assert!(lines[0].contains(&whole), "a grant over the longest pattern");
    assert_eq!(log.verify(), None);
}
