//! The audit log shared by processes: one chain of all writers' lines, of which the oldest are removed.

use super::records::control;
use meridian_store::bucket::{Bucket, BucketFault, MemoryBucket};
use meridian_store::{Act, RecordedAct, SharedAudit, StoreError};
use sha2::{Digest, Sha256};

fn act(target: impl Into<String>) -> Act {
    Act { who: "me".into(), act: "createToken".into(), target: target.into(), ..Act::default() }
}

/// Returns all lines, read in pages. Each must follow from the previous one.
fn lines(log: &SharedAudit) -> Vec<RecordedAct> {
    let (mut after, mut lines) = (Some(0), Vec::<RecordedAct>::new());
    while let Some(from) = after {
        let page = log.page(from, 70, &|_| true).unwrap();
        assert!(page.lines.len() <= 70);
        lines.extend(page.lines);
        after = page.next;
    }
    for pair in lines.windows(2) {
        assert_eq!(pair[1].n, pair[0].n + 1);
        let hash: String = Sha256::digest(&pair[0].text).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(pair[1].previous, hash, "line {}", pair[1].n);
    }
    lines
}

#[test]
fn lines_of_many_processes_are_one_chain_and_none_is_lost() {
    const PROCESSES: u64 = 3;
    const ACTS: u64 = 200;
    let bucket = MemoryBucket::new();
    std::thread::scope(|scope| {
        for process in 0..PROCESSES {
            let log = control(&bucket).audit().clone();
            scope.spawn(move || {
                for n in 0..ACTS / 2 {
                    let acts = [act(format!("/{process}/{}", 2 * n)), act(format!("/{process}/{}", 2 * n + 1))];
                    let first = log.append(&acts).unwrap();
                    let page = log.page(first - 1, 2, &|_| true).unwrap();
                    assert_eq!(page.lines.iter().map(|line| &line.act).collect::<Vec<_>>(), [&acts[0], &acts[1]]);
                }
            });
        }
    });
    let log = control(&bucket).audit().clone();
    let found = lines(&log);
    assert_eq!((found[0].n, found.len() as u64), (1, PROCESSES * ACTS));
    let mut targets: Vec<_> = found.iter().map(|line| line.act.target.clone()).collect();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets.len() as u64, PROCESSES * ACTS, "each once");
    let wanted = log.page(0, 1_000, &|line| line.act.target.starts_with("/1/")).unwrap();
    assert_eq!(wanted.lines.len() as u64, ACTS);
}

#[test]
fn the_oldest_lines_go_and_the_rest_says_so_and_is_still_a_chain() {
    let bucket = MemoryBucket::new();
    let (one, two) = (control(&bucket).audit().clone(), control(&bucket).audit().clone());
    for n in 0..1_500 {
        let log = if n % 3 == 0 { &one } else { &two };
        log.append(&[act(format!("/{n}/{}", "x".repeat(300)))]).unwrap();
    }
    let objects: Vec<_> = bucket.objects().into_iter().filter(|(name, _)| name.starts_with("audit/")).collect();
    assert!(objects.len() < 600, "{} objects", objects.len());
    let found = lines(&control(&bucket).audit().clone());
    assert_eq!(found, lines(&one));
    let trimmed = found.iter().filter_map(|line| line.act.trimmed).max().expect("a line says it");
    assert_eq!(found[0].n, trimmed + 1);
    let bytes: usize = found.iter().map(|line| line.text.len() + 1).sum();
    assert!((200 << 10..800 << 10).contains(&bytes), "{bytes} bytes");
    assert_eq!(found.iter().filter(|line| line.act.target.starts_with("/1499/")).count(), 1);
}

#[test]
fn a_line_that_cannot_be_written_is_an_error_and_a_damaged_object_is_named() {
    let bucket = MemoryBucket::new();
    let log = control(&bucket).audit().clone();
    log.append(&[act("/1")]).unwrap();
    bucket.fail(BucketFault::Full, 0);
    assert!(log.append(&[act("/2")]).is_err());
    bucket.fail(BucketFault::After, 0);
    assert_eq!(log.append(&[act("/3")]).unwrap(), 2);
    assert_eq!(lines(&log).iter().map(|line| line.act.target.as_str()).collect::<Vec<_>>(), ["/1", "/3"]);
    let newest = bucket.objects().into_iter().map(|(name, _)| name).rfind(|name| name.starts_with("audit/")).unwrap();
    bucket.harm(&newest, Some(vec![7; 300]));
    let fresh = control(&bucket).audit().clone();
    for error in [fresh.append(&[act("/4")]).map(drop).unwrap_err(), fresh.page(0, 1, &|_| true).map(drop).unwrap_err()]
    {
        assert!(matches!(error, StoreError::Corrupt { .. }) && error.to_string().contains(&newest), "{error}");
    }
}

#[test]
fn a_segment_that_is_missing_is_named_and_one_that_went_meanwhile_is_not() {
    let bucket = MemoryBucket::new();
    let log = control(&bucket).audit().clone();
    let fill = |log: &SharedAudit, count: u32, bytes: usize| {
        for n in 0..count {
            log.append(&[act(format!("/{n}/{}", "x".repeat(bytes)))]).unwrap();
        }
    };
    fill(&log, 550, 0);
    let is_segment = |(name, bytes): &(String, usize)| name.starts_with("audit/") && *bytes > 20 << 10;
    let segments: Vec<_> = bucket.objects().into_iter().filter(is_segment).map(|(name, _)| name).collect();
    assert!(segments.len() >= 2, "{segments:?}");
    for segment in &segments {
        let held = bucket.get(segment).unwrap();
        bucket.harm(segment, None);
        let error = log.page(0, 1_000, &|_| true).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }) && error.to_string().contains(segment), "{error}");
        bucket.harm(segment, Some(held));
    }
    // While the oldest segment is read, others write so much that it is removed.
    let before = log.page(0, 1_000, &|_| true).unwrap().lines[0].n;
    let mut gone = 0;
    for after in 20..80 {
        let bucket = MemoryBucket::new();
        let log = control(&bucket).audit().clone();
        fill(&log, 300, 300);
        let others = bucket.clone();
        bucket.pause(after, move || fill(control(&others).audit(), 600, 300));
        let page = log.page(0, 1_000, &|_| true).unwrap();
        if bucket.take_pause() {
            break;
        }
        gone += u32::from(page.lines.first().is_none_or(|line| line.n > before));
    }
    assert!(gone > 0, "no segment went while it was read");
}
