//! The cache of a bucket's objects: results equal those of the bucket, whatever happens to the cache.

use super::{Process, WriteOutcome, seams, write};
use crate::world::{DAY, Event, START, batch, content, options, schema};
use meridian_model::IdRole;
use meridian_model::filter::Predicate;
use meridian_store::bucket::{Bucket, MemoryBucket, Put, Span, Upload};
use meridian_store::seams::{CrashStyle, Disk, FaultKind, MemoryDisk, OpenMode, Random, Seams, SeededRandom};
use meridian_store::{Collection, Options, Settings, Snapshot, Store, StoreError, Write};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};

const FILE: &str = "/data/extents";
/// Bytes of the head of the file, and of a slot.
const HEAD: u64 = 4 << 10;
const SLOT: u64 = HEAD + (1 << 20);

/// Options with room for everything the tests read.
fn ample() -> Options {
    Options { extent_memory: 64 << 20, extent_disk: HEAD + 100 * SLOT, tree_bytes: Some(64 << 20), ..options() }
}

/// Options with hardly any room, so that each step evicts.
fn tiny() -> Options {
    Options {
        extent_memory: 12 << 10,
        extent_disk: HEAD + 3 * SLOT,
        tree_bytes: Some(1),
        cache_bytes: 1 << 10,
        ..options()
    }
}

fn on(disk: &MemoryDisk) -> Seams {
    Seams { disk: Arc::new(disk.clone()), ..seams() }
}

/// Reads a bucket, counts its calls, and may delay their answers.
#[derive(Debug, Clone)]
struct Counting {
    inner: MemoryBucket,
    /// How often each range was read, by object.
    ranges: Arc<Mutex<BTreeMap<(String, u64), u64>>>,
}

impl Counting {
    fn over(bucket: &MemoryBucket) -> Counting {
        Counting { inner: bucket.clone(), ranges: Arc::default() }
    }

    fn most_of_one(&self) -> u64 {
        self.ranges.lock().unwrap().values().copied().max().unwrap_or(0)
    }

    /// Returns the objects of segments that were read, completely or in part.
    fn segments(&self) -> Vec<String> {
        let ranges = self.ranges.lock().unwrap();
        let mut names: Vec<String> = ranges.keys().map(|(name, _)| name.clone()).collect();
        names.retain(|name| name.ends_with(".segment"));
        names.dedup();
        names
    }
}

impl Bucket for Counting {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<Put> {
        self.inner.put(name, bytes)
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.inner.upload(name)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.inner.get(name)
    }

    fn get_range(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        *self.ranges.lock().unwrap().entry((name.to_owned(), offset)).or_default() += 1;
        // Others arrive meanwhile.
        std::thread::yield_now();
        self.inner.get_range(name, offset, into)
    }

    fn get_ranges(&self, wanted: &[Span]) -> Vec<io::Result<Vec<u8>>> {
        let read = |span: &Span| {
            let mut bytes = vec![0; span.bytes()];
            self.get_range(&span.name, span.range.start, &mut bytes).map(|()| bytes)
        };
        wanted.iter().map(read).collect()
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.inner.len(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.inner.list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.inner.delete(name)
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}

fn open_reader(options: Options, seams: Seams, bucket: &MemoryBucket) -> Store {
    Store::open_read_only(options, seams, Arc::new(bucket.clone())).unwrap()
}

fn shown(store: &Store) -> Vec<(String, u64, i64)> {
    shown_of(&store.collection("t", "c").unwrap())
}

fn shown_of(collection: &Collection) -> Vec<(String, u64, i64)> {
    content(&collection.snapshot().open_all().unwrap())
}

/// Creates an owner with some segments.
fn flushed(bucket: &MemoryBucket, segments: i64) -> Process {
    let owner = Process::first(bucket);
    for number in 1..=segments {
        assert_eq!(write(&owner.collection, number), WriteOutcome::Stored);
        owner.collection.flush().unwrap();
    }
    owner
}

#[test]
fn a_reader_with_hardly_any_room_answers_as_the_owner_did() {
    for seed in 0..12 {
        let random = SeededRandom::new(seed);
        let below = |n: u64| random.next_u64() % n;
        let bucket = MemoryBucket::new();
        let role = if seed % 2 == 0 { IdRole::Given } else { IdRole::Made };
        let owner = super::open(&bucket).unwrap();
        let of_owner = owner.create("t", "c", schema(role), Settings::default()).unwrap();
        let readers = [tiny(), ample()].map(|options| open_reader(options, seams(), &bucket));
        for step in 0..25 {
            let from = below(600) as i64;
            let events: Vec<Event> =
                (from..from + 1 + below(200) as i64).map(|n| Event::new(format!("e{n}"), n)).collect();
            match below(4) {
                0 => drop(of_owner.delete(&(from..from + 40).map(|n| format!("e{n}")).collect::<Vec<_>>())),
                1 => drop(of_owner.write(Write::new(batch(&of_owner.schema(), &events)).replacing())),
                2 => of_owner.maintain().map(drop).unwrap(),
                _ => drop(of_owner.write(Write::new(batch(&of_owner.schema(), &events)))),
            }
            of_owner.flush().unwrap();
            let wanted = content(&of_owner.snapshot());
            for reader in &readers {
                reader.refresh().unwrap();
                let collection = reader.collection("t", "c").unwrap();
                assert_eq!(shown_of(&collection), wanted, "seed {seed}, step {step}");
                // An earlier snapshot that is still held although its segments were closed.
                let snapshot = collection.snapshot();
                assert_eq!(snapshot.rows(), collection.snapshot().open_all().unwrap().rows());
                for (id, ..) in wanted.iter().step_by(37) {
                    assert!(snapshot.find(id).unwrap().is_some(), "seed {seed}: {id}");
                }
                assert!(snapshot.find("not there").unwrap().is_none());
            }
        }
        let [small, large] = &readers;
        assert!(small.trees().evicted > 0 && small.extents().unwrap().bytes_fetched > 0, "seed {seed}");
        assert_eq!(large.trees().evicted, 0, "seed {seed}");
        assert_eq!(readers.map(|reader| reader.check()), [[], []], "seed {seed}");
    }
}

#[test]
fn only_segments_that_a_question_may_concern_are_opened() {
    let bucket = MemoryBucket::new();
    let owner = Process::first(&bucket);
    // Each segment covers its own day.
    for day in 0..6 {
        let of_day = |i: i64| Event { time: START + day * DAY + i, ..Event::new(format!("w{day}-{i}"), day * 10 + i) };
        let events: Vec<Event> = (0..3).map(of_day).collect();
        owner.collection.write(Write::new(batch(&owner.collection.schema(), &events))).unwrap();
        owner.collection.flush().unwrap();
    }
    let counting = Counting::over(&bucket);
    let reader = Store::open_read_only(ample(), seams(), Arc::new(counting.clone())).unwrap();
    let snapshot = reader.collection("t", "c").unwrap().snapshot();
    assert_eq!((counting.segments(), reader.trees().loaded), (vec![], 0), "the manifest is enough to begin with");
    assert_eq!((snapshot.rows(), snapshot.is_open()), (18, false));
    let all = snapshot.open_all().unwrap();
    let (first, last) = (all.parts[0].bounds().start, all.parts[0].bounds().end);
    let interval = meridian_model::Interval { start: first, end: last };
    let fresh = Store::open_read_only(ample(), seams(), Arc::new(counting.clone())).unwrap();
    let snapshot = fresh.collection("t", "c").unwrap().snapshot();
    let expected = all.parts.iter().filter(|part| part.bounds().start <= last && first <= part.bounds().end).count();
    let few = snapshot.open_for(&Predicate::interval(interval)).unwrap();
    assert_eq!((few.parts.len(), fresh.trees().loaded), (expected, expected as u64));
    assert_eq!(expected, 1);
    // Open segments are shared.
    drop(snapshot.open_for(&Predicate::interval(interval)).unwrap());
    assert_eq!(fresh.trees().loaded, expected as u64);
}

#[test]
fn what_lies_on_disk_survives_a_restart_and_is_read_from_there() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    let owner = flushed(&bucket, 5);
    let wanted = content(&owner.collection.snapshot());
    let first = open_reader(ample(), on(&disk), &bucket);
    assert_eq!(shown(&first), wanted);
    let before = first.extents().unwrap();
    assert!(before.bytes_fetched > 0 && before.disk_bytes > 0 && before.disk_hits == 0);
    first.close().unwrap();
    drop(first);
    let again = open_reader(ample(), on(&disk), &bucket);
    assert_eq!(shown(&again), wanted);
    let stats = again.extents().unwrap();
    assert_eq!((stats.bytes_fetched, stats.damaged), (0, 0));
    assert!(stats.disk_hits > 0);
    // With a lower limit the rest of the file is cut off.
    drop(again);
    let less = Options { extent_disk: HEAD + 2 * SLOT, ..ample() };
    assert_eq!(shown(&open_reader(less, on(&disk), &bucket)), wanted);
    assert!(disk.files().iter().any(|(path, bytes)| path == Path::new(FILE) && *bytes <= HEAD + 2 * SLOT));
}

#[test]
fn another_bucket_of_the_same_names_is_not_answered_from_what_is_kept() {
    let disk = MemoryDisk::new();
    for n in 0..2 {
        let bucket = MemoryBucket::new();
        let owner = Process::first(&bucket);
        let events: Vec<Event> = (0..50).map(|i| Event::new(format!("e{n}-{i}"), i)).collect();
        owner.collection.write(Write::new(batch(&owner.collection.schema(), &events))).unwrap();
        owner.collection.flush().unwrap();
        let wanted = content(&owner.collection.snapshot());
        assert_eq!(shown(&open_reader(ample(), on(&disk), &bucket)), wanted);
    }
}

#[test]
fn a_damaged_or_cut_extent_is_read_again_and_never_served() {
    let bucket = MemoryBucket::new();
    let owner = flushed(&bucket, 4);
    let wanted = content(&owner.collection.snapshot());
    let mut damaged = 0;
    for seed in 0..24u64 {
        let disk = MemoryDisk::new();
        drop(shown(&open_reader(ample(), on(&disk), &bucket)));
        let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
        let len = file.len().unwrap();
        let random = SeededRandom::new(seed + 1);
        match seed % 3 {
            0 => file.set_len(random.next_u64() % len).unwrap(),
            1 => {
                // The head of a slot, or its first bytes.
                let slot = random.next_u64() % (len / SLOT);
                let at =
                    HEAD + slot * SLOT + [random.next_u64() % 36, HEAD + random.next_u64() % 64][seed as usize % 2];
                let mut byte = [0];
                file.read_at(at, &mut byte).unwrap();
                file.write_at(at, &[byte[0] ^ 1 << (seed % 8)]).unwrap();
            }
            _ => (0..len).step_by(512).for_each(|at| file.write_at(at, &[0x5a]).unwrap()),
        }
        drop(file);
        let again = open_reader(ample(), on(&disk), &bucket);
        assert_eq!(shown(&again), wanted, "seed {seed}");
        damaged += again.extents().unwrap().damaged;
        // It was repaired.
        drop(again);
        let last = open_reader(ample(), on(&disk), &bucket);
        assert_eq!(shown(&last), wanted, "seed {seed}");
        assert_eq!(last.extents().unwrap().damaged, 0, "seed {seed}");
    }
    assert!(damaged > 0);
}

#[test]
fn a_crash_while_extents_are_written_leaves_nothing_wrong() {
    let bucket = MemoryBucket::new();
    let owner = flushed(&bucket, 6);
    let wanted = content(&owner.collection.snapshot());
    // Three slots, overwritten again and again.
    let few = Options { extent_disk: HEAD + 3 * SLOT, extent_memory: 12 << 10, ..ample() };
    for seed in 0..40u64 {
        let disk = MemoryDisk::seeded(seed);
        let reader = open_reader(few.clone(), on(&disk), &bucket);
        assert_eq!(shown(&reader), wanted);
        // The name is durable, so that the remaining content counts.
        disk.sync_dir(Path::new("/data")).unwrap();
        if seed % 2 == 0 {
            disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap().sync().unwrap();
            assert_eq!(shown(&reader), wanted);
        }
        drop(reader);
        let random = SeededRandom::new(seed);
        disk.crash(if seed % 4 < 2 { CrashStyle::Tear(&random) } else { CrashStyle::Scatter(&random) });
        let again = open_reader(few.clone(), on(&disk), &bucket);
        assert_eq!(shown(&again), wanted, "seed {seed}");
    }
}

#[test]
fn a_full_or_broken_disk_costs_only_what_it_would_keep() {
    let bucket = MemoryBucket::new();
    let owner = flushed(&bucket, 6);
    let wanted = content(&owner.collection.snapshot());
    for kind in [None, Some(FaultKind::WriteFails), Some(FaultKind::ReadFails)] {
        let disk = MemoryDisk::new();
        let reader = open_reader(ample(), on(&disk), &bucket);
        match kind {
            None => disk.set_capacity(Some(disk.files().iter().map(|(_, bytes)| bytes).sum::<u64>() + SLOT)),
            Some(kind) => disk.inject(kind, "extents", 0),
        }
        assert_eq!(shown(&reader), wanted, "{kind:?}");
        assert!(!reader.met_full_disk(), "a server without room for extents is ready");
        if kind.is_none() {
            assert!(reader.extents().unwrap().disk_bytes <= 2 * SLOT);
        }
    }
    // A disk on which the file cannot even be created.
    let disk = MemoryDisk::new();
    disk.inject(FaultKind::NameFails, "extents", 0);
    let reader = open_reader(ample(), on(&disk), &bucket);
    assert_eq!((shown(&reader), reader.extents().unwrap().disk_bytes), (wanted, 0));
}

#[test]
fn callers_that_miss_the_same_extents_fetch_them_once() {
    let bucket = MemoryBucket::new();
    let owner = flushed(&bucket, 8);
    let wanted = content(&owner.collection.snapshot());
    let counting = Counting::over(&bucket);
    let options = Options { background: true, cache_bytes: 1 << 10, ..ample() };
    let reader = Store::open_read_only(options, seams(), Arc::new(counting.clone())).unwrap();
    let snapshot = reader.collection("t", "c").unwrap().snapshot();
    let together = Barrier::new(8);
    let ask = |snapshot: &Snapshot| {
        together.wait();
        content(&snapshot.open_all().unwrap())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(&snapshot))).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), wanted));
    });
    assert_eq!(counting.most_of_one(), 1, "{:?}", counting.ranges);
}

#[test]
fn a_segment_that_turns_out_to_be_damaged_is_named_at_the_next_look() {
    meet_damage(|bytes| Some(bytes.iter().map(|byte| byte ^ 0x11).collect()));
    meet_damage(|bytes| Some(bytes[..bytes.len() / 2].to_vec()));
    meet_damage(|_| None);
}

fn meet_damage(harm: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    let bucket = MemoryBucket::new();
    let owner = flushed(&bucket, 3);
    let reader = open_reader(ample(), seams(), &bucket);
    assert_eq!(reader.problems(), []);
    // Index and rows of a segment: nothing can be rebuilt.
    let files: Vec<String> = bucket.objects().into_iter().map(|(name, _)| name).collect();
    let index = files.iter().find(|name| name.ends_with(".segment")).unwrap().clone();
    let mut whole = Vec::new();
    for name in [index.clone(), index.replace(".segment", ".rows")] {
        let bytes = bucket.get(&name).unwrap();
        bucket.harm(&name, harm(&bytes));
        whole.push((name, bytes));
    }
    let collection = reader.collection("t", "c").unwrap();
    // An answer without it would be wrong.
    let met = collection.snapshot().open_all().map(drop);
    assert!(matches!(met, Err(StoreError::Corrupt { .. })), "{met:?}");
    reader.refresh().unwrap();
    assert!(!reader.problems().is_empty());
    let snapshot = collection.snapshot();
    assert!(!snapshot.missing.is_empty());
    reader.refresh().unwrap();
    assert!(!reader.problems().is_empty(), "it stays named for as long as it is damaged");
    assert_eq!(content(&snapshot.open_all().unwrap()).len(), 6);
    // Once restored, it is read from the bucket, not from the cached copy of the damaged object.
    for (name, bytes) in whole {
        bucket.harm(&name, Some(bytes));
    }
    reader.refresh().unwrap();
    assert_eq!((reader.problems(), shown(&reader)), (vec![], content(&owner.collection.snapshot())));
}
