//! Every kind of harm to every kind of file, compared with the acknowledged writes. Each case is repaired from a second
//! copy, or reported. It is never silent, never gives a wrong result, and never costs the whole store.
//!
//! `MERIDIAN_DAMAGE_SECONDS` runs as many random cases as fit, starting at a random seed, which a failure reports.

use crate::world::{Event, World, batch, content, readable, schema};
use meridian_model::IdRole;
use meridian_store::seams::{CrashStyle, Disk, OpenMode, Random, SeededRandom};
use meridian_store::{Collection, Problem, Settings, Store, Write};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Files = BTreeMap<PathBuf, Vec<u8>>;
type Events = BTreeSet<(String, u64, i64)>;

/// A data folder of a stopped server, and the acknowledged writes.
struct Written {
    files: Files,
    role: IdRole,
    /// Events of `c`, and of `other`.
    shown: [Events; 2],
    /// All events ever acknowledged, including deleted and replaced ones.
    ever: [Events; 2],
    /// Positions of their last writes.
    positions: [u64; 2],
    /// Idempotency keys of `c`, and the events written under each.
    keys: BTreeMap<String, Range<i64>>,
}

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

fn write(c: &Collection, range: Range<i64>, key: &str) {
    let events = batch(&c.schema(), &events(range.start, range.end));
    c.write(Write::new(events).replacing().with_key(key)).unwrap();
}

fn shown(c: &Collection) -> Events {
    content(&c.snapshot()).into_iter().collect()
}

fn written(role: IdRole) -> Written {
    let world = World::new();
    let (store, c) = world.with_collection(role);
    let (mut keys, mut ever) = (BTreeMap::new(), Events::new());
    let mut put = |range: Range<i64>| {
        let key = format!("k{}", range.start);
        write(&c, range.clone(), &key);
        keys.insert(key, range);
        ever.extend(shown(&c));
    };
    let delete = |n: i64| {
        let (id, _, _) = content(&c.snapshot())[n as usize].clone();
        assert_eq!(c.delete(&[id]).unwrap().deleted, 1);
    };
    for i in 0..4 {
        put(i * 300..i * 300 + 400);
        (0..3).for_each(|n| delete(i * 70 + n));
        c.flush().unwrap();
        if i == 1 {
            c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
        }
    }
    // Several log files, with new, replaced and deleted events.
    for i in 0..40 {
        put(i * 17 + 100..i * 17 + 120);
        delete(i * 5);
    }
    put(5000..5010);
    let other = store.create("t", "other", schema(role), Settings::default()).unwrap();
    write(&other, 0..50, "o");
    other.flush().unwrap();
    store.records("saved").put_twice("search", b"what a saved search asks for").unwrap();
    let (shown, positions) = ([shown(&c), shown(&other)], [c.position(), other.position()]);
    let ever = [ever, shown[1].clone()];
    world.disk.crash(CrashStyle::Lose);
    drop((store, c, other));
    // A start makes the end of the log certain: only a last group that no start has seen is taken for torn.
    drop(world.open());
    world.disk.crash(CrashStyle::Lose);
    Written { files: files(&world), role, shown, ever, positions, keys }
}

fn files(world: &World) -> Files {
    let read = |path: &Path| {
        let file = world.disk.open(path, OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        bytes
    };
    world.disk.files().into_iter().map(|(path, _)| (path.clone(), read(&path))).collect()
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Flip,
    Cut,
    Zero,
    Remove,
    Append,
}

const HARMS: [Harm; 5] = [Harm::Flip, Harm::Cut, Harm::Zero, Harm::Remove, Harm::Append];

impl Harm {
    /// Returns the file's content afterwards; `None` if it is gone.
    fn to(self, good: &[u8], random: &SeededRandom) -> Option<Vec<u8>> {
        let below = |n: usize| random.next_u64() as usize % n.max(1);
        let mut bad = good.to_vec();
        match self {
            // Half of the flips hit the first bytes, which hold magic and version.
            Harm::Flip if random.next_u64().is_multiple_of(2) => bad[below(16.min(good.len()))] ^= 1 << below(8),
            Harm::Flip => bad[below(good.len())] ^= 1 << below(8),
            Harm::Cut => bad.truncate(below(good.len())),
            Harm::Zero => {
                let (from, len) = (below(good.len()), 1 + below(600));
                bad.iter_mut().skip(from).take(len).for_each(|byte| *byte = 0);
            }
            Harm::Remove => return None,
            Harm::Append => bad.extend((0..1 + below(40)).map(|_| random.next_u64() as u8)),
        }
        Some(bad)
    }
}

/// Kinds of files, by the end of their paths. The content of `LOCK` and of spare log files means nothing.
const KINDS: [&str; 12] = [
    "meridian.json",
    "MANIFEST",
    "MANIFEST.copy",
    "NEWEST",
    ".log",
    ".segment",
    ".rows",
    ".parquet",
    ".dead",
    ".keys",
    "saved/search",
    "saved-copy/search",
];

fn world_of(files: &Files) -> World {
    let world = World::new();
    for path in files.keys() {
        world.disk.create_dir(path.parent().unwrap()).unwrap();
        // A crash keeps the folders.
        path.ancestors().skip(1).for_each(|dir| world.disk.sync_dir(dir).unwrap());
    }
    files.iter().for_each(|(path, bytes)| world.disk.put(path, bytes.clone()));
    world
}

/// Runs one case; returns what is wrong with the store's reaction.
fn case(written: &Written, kind: &str, harm: Harm, random: &SeededRandom) -> Result<(), String> {
    let all: Vec<&PathBuf> = written.files.keys().filter(|path| path.to_string_lossy().ends_with(kind)).collect();
    // Without client-supplied ids nothing was replaced.
    if all.is_empty() {
        return if (written.role, kind) == (IdRole::Made, ".dead") { Ok(()) } else { Err(format!("no {kind}")) };
    }
    let path = all[random.next_u64() as usize % all.len()];
    let mut files = written.files.clone();
    let good = files.remove(path).unwrap_or_default();
    let bad = harm.to(&good, random);
    if bad.as_ref() == Some(&good) {
        return Ok(());
    }
    files.extend(bad.map(|bad| (path.clone(), bad)));
    let world = world_of(&files);
    let at = format!("{harm:?} of {}", path.display());
    let store = Store::open(world.options.clone(), world.seams()).map_err(|e| format!("{at} stops the store: {e}"))?;
    let problems: Vec<Problem> = store.check();
    let some: Vec<String> = problems.iter().take(5).map(ToString::to_string).collect();
    let named = problems.iter().any(|p| p.path == *path || p.detail.contains(&*path.to_string_lossy()));
    held(written, &store, (path, named)).map_err(|what| format!("{at}: {what}; named: {named}, {some:#?}"))?;
    let refuses = store.list("t").iter().any(|c| c.stats().refuses.is_some());
    if store.damaged("t").is_empty() && !refuses {
        return Ok(());
    }
    let manifest = kind.starts_with("MANIFEST");
    repaired(written, &world, store, manifest).map_err(|what| format!("{at}, repaired: {what}; {some:#?}"))
}

/// Repairs a store, and compares the result with the acknowledged writes: it takes writes, and missing data was
/// reported.
fn repaired(written: &Written, world: &World, store: Store, whole: bool) -> Result<(), String> {
    let demand = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    let repairs = store.repair();
    let told = repairs.iter().any(|repair| !repair.missing.is_empty());
    demand(repairs.iter().all(|repair| repair.mended) && !(whole && told), &format!("{repairs:#?}"))?;
    demand(store.check().is_empty(), &format!("{:?} after {repairs:#?}", store.check()))?;
    if !told {
        held(written, &store, (Path::new(""), false)).map_err(|what| format!("{what}, after {repairs:#?}"))?;
    }
    let names = ["c", "other"].into_iter().enumerate();
    let mut shows = Vec::new();
    for (i, name) in names.clone() {
        let c = store.collection("t", name).ok_or("a collection is gone")?;
        let found = shown(&c);
        demand(told || found == written.shown[i], &format!("events are wrong: {repairs:#?}"))?;
        demand(found.is_subset(&written.ever[i]), "events are there that never were")?;
        let new = batch(&c.schema(), &events(9000, 9003));
        let position = c.write(Write::new(new).replacing()).map_err(|e| e.to_string())?.position;
        demand(position > written.positions[i], "a position comes twice")?;
        shows.push(shown(&c));
    }
    drop(store);
    world.disk.crash(CrashStyle::Lose);
    let store = world.open();
    demand(store.check().is_empty(), "another start finds damage")?;
    for (i, name) in names {
        let c = store.collection("t", name).ok_or("a collection is gone")?;
        demand(shown(&c) == shows[i], "another start shows something else")?;
    }
    Ok(())
}

/// Compares a store with the acknowledged writes.
fn held(written: &Written, store: &Store, (path, named): (&Path, bool)) -> Result<(), String> {
    let demand = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    let record = store.records("saved").get("search");
    demand(
        named || matches!(&record, Ok(Some(b)) if b == b"what a saved search asks for") || record.is_err(),
        "a record",
    )?;
    for (name, expected) in ["c", "other"].into_iter().zip(&written.shown) {
        let hurt = path.starts_with(format!("/data/tenants/t/{name}"));
        let Some(c) = store.collection("t", name) else {
            demand(hurt && named && store.why_damaged("t", name).is_some(), "a collection is gone without a word")?;
            continue;
        };
        let snapshot = c.snapshot();
        let (found, errors) = readable(&snapshot);
        let found: BTreeSet<_> = found.into_iter().collect();
        let whole = found == *expected;
        demand(whole || hurt && named, "events are wrong, and no error says so")?;
        demand(whole || !snapshot.missing.is_empty() || !errors.is_empty(), "an answer lacks events without a word")?;
        let refuses = c.stats().refuses;
        // Deleted events may reappear only if every response reports a problem.
        demand(found.is_subset(expected) || refuses.is_some(), "events are back, or never were")?;
        demand(hurt && named || refuses.is_none(), "writes are refused without need")?;
        if name == "c" && refuses.is_none() {
            for (key, range) in &written.keys {
                let again = Write::new(batch(&c.schema(), &events(range.start, range.end))).replacing().with_key(key);
                let again = c.write(again).map_err(|e| e.to_string())?;
                demand(again.duplicates == range.clone().count() as u64 && again.written == 0, "a key is forgotten")?;
            }
        }
    }
    Ok(())
}

fn run(seed: u64) {
    let random = SeededRandom::new(seed);
    for role in [IdRole::Given, IdRole::Made] {
        let written = written(role);
        for kind in KINDS {
            for harm in HARMS {
                if let Err(what) = case(&written, kind, harm, &random) {
                    panic!("seed {seed}, {role:?}: {what}");
                }
            }
        }
    }
}

#[test]
fn any_harm_to_any_file_is_mended_or_named() {
    let Some(seconds) = std::env::var("MERIDIAN_DAMAGE_SECONDS").ok().and_then(|s| s.parse().ok()) else {
        return (0..3).for_each(run);
    };
    let from = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        run(from + count);
        count += 1;
    }
    println!("{count} rounds of every harm to every kind of file, from seed {from} on: all are mended or named");
}
