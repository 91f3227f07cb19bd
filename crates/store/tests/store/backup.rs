//! Backups: their content, interruptions, and the effects of damage.

use crate::world::{Event, World, batch, content, schema};
use meridian_model::{IdRole, Mode, RecordPart, Schema};
use meridian_store::seams::{CrashStyle, Disk, Random, SeededRandom};
use meridian_store::{
    BackupFolder, BackupKey, BackupOutcome, BackupScope, Collection, Durability, Options, Restore, Settings, Store,
    StoreError, Write, WriteError,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEPT: &str = "/kept";

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

/// Creates a store with archived and unarchived segments, dead rows, keys, a tail in memory, and collections of several
/// kinds.
fn store(world: &World) -> Store {
    let store = world.open();
    let ships = Schema { object: Some(1), mode: Mode::Latest, ..schema(IdRole::Made) };
    let settings = Settings { retention: Some(Duration::from_secs(900 * 86_400)), ..Settings::default() };
    for (name, schema) in [("given", schema(IdRole::Given)), ("made", schema(IdRole::Made)), ("ships", ships)] {
        let c = store.create("t", name, schema, settings.clone()).unwrap();
        for i in 0..4 {
            let write = Write::new(batch(&c.schema(), &events(i * 200, i * 200 + 300)));
            c.write(write.replacing().with_key(format!("k{i}"))).unwrap();
            c.flush().unwrap();
            if i == 1 {
                c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
            }
        }
        c.write(Write::new(batch(&c.schema(), &events(5000, 5100))).with_key("last")).unwrap();
        let gone: Vec<String> = content(&c.snapshot()).into_iter().step_by(9).map(|(id, _, _)| id).collect();
        assert!(c.delete(&gone).unwrap().deleted > 0);
    }
    let records = store.records("notes");
    for (name, content) in [("a", &b"one"[..]), ("B_2-seen", &[0; 5_000]), ("empty", b"")] {
        records.put(name, content).unwrap();
    }
    let ephemeral = Settings { durability: Durability::Ephemeral, ..Settings::default() };
    let fleeting = store.create("t", "fleeting", schema(IdRole::Made), ephemeral).unwrap();
    fleeting.write(Write::new(batch(&fleeting.schema(), &events(0, 50)))).unwrap();
    store
}

fn folder(world: &World) -> BackupFolder {
    BackupFolder::open(Arc::new(world.disk.clone()), Path::new(KEPT)).unwrap()
}

/// Returns the output of a backup to a folder.
fn sent(world: &World, store: &Store) -> Vec<u8> {
    let mut tar = Vec::new();
    store.backup(&BackupScope::everything(), &folder(world).have().unwrap(), &mut tar, &|| false).unwrap();
    tar
}

fn receive(world: &World, mut tar: &[u8]) -> Result<BackupOutcome, StoreError> {
    folder(world).receive(&mut tar, &mut |_| {})
}

fn restored(world: &World, to: &str) -> Result<Options, StoreError> {
    let options = Options { data: to.into(), ..world.options.clone() };
    Restore::of(KEPT).to_folder(options.clone(), world.seams(), &mut |_| {}).map(|_| options)
}

fn of(store: &Store, name: &str) -> Arc<Collection> {
    store.collection("t", name).unwrap()
}

/// Returns the records of a store.
fn notes(store: &Store) -> Vec<(String, Vec<u8>)> {
    let records = store.records("notes");
    records.names().unwrap().into_iter().map(|name| (name.clone(), records.get(&name).unwrap().unwrap())).collect()
}

type Content = Vec<(String, Vec<(String, u64, i64)>)>;

fn all(store: &Store) -> Content {
    let both = |name: &str| {
        let c = of(store, name);
        [(name.to_owned(), content(&c.snapshot())), (format!("{name}, history"), content(&c.history()))]
    };
    ["given", "made", "ships"].into_iter().flat_map(both).collect()
}

#[test]
fn what_is_restored_is_what_was_there_and_goes_on_from_there() {
    let world = World::new();
    let store = store(&world);
    let (before, noted) = (all(&store), notes(&store));
    let tar = sent(&world, &store);
    store.records("notes").put("later", b"x").unwrap();
    let positions: Vec<u64> = ["given", "made", "ships"].iter().map(|name| of(&store, name).position()).collect();
    let began = ["given", "made", "ships", "fleeting"].map(|name| of(&store, name).began());
    // Writes after the start of the backup are not in it.
    of(&store, "made").write(Write::new(batch(&of(&store, "made").schema(), &events(7000, 7010)))).unwrap();
    let received = receive(&world, &tar).unwrap();
    let saved = &received.backup.collections;
    assert_eq!(saved.iter().map(|s| s.name()).collect::<Vec<_>>(), ["fleeting", "given", "made", "ships"]);
    assert_eq!(saved[1..].iter().map(|s| s.position()).collect::<Vec<_>>(), positions);
    // A crash loses nothing of it.
    world.disk.crash(CrashStyle::Lose);
    drop(store);
    world.clock.advance(1_000_000);
    let options = restored(&world, "/restored").unwrap();
    let back = Store::open(options, world.seams()).unwrap();
    // Its next writes get numbers that other events have in the original.
    for (name, began) in ["given", "made", "ships", "fleeting"].into_iter().zip(began) {
        assert!(of(&back, name).began() > began, "{name}");
    }
    assert_eq!((all(&back), notes(&back)), (before, noted));
    assert_eq!(received.backup.records(), (3, 5_003));
    assert_eq!(back.check(), []);
    assert_eq!(of(&back, "fleeting").stats().events, 0);
    for (name, position) in ["given", "made", "ships"].into_iter().zip(positions) {
        let c = of(&back, name);
        assert_eq!(c.settings().retention, Some(Duration::from_secs(900 * 86_400)));
        for key in ["k0", "k3", "last"] {
            let again = c.write(Write::new(batch(&c.schema(), &events(0, 5))).with_key(key));
            assert!(matches!(again, Err(WriteError::KeyReused { .. })), "{name}: {key} was forgotten");
        }
        let next = c.write(Write::new(batch(&c.schema(), &events(8000, 8010)))).unwrap();
        assert_eq!((next.written, next.position), (10, position + 1), "{name}");
        c.maintain().unwrap();
    }
    let after = all(&back);
    drop(back);
    let again = Options { data: "/restored".into(), ..world.options.clone() };
    assert_eq!(all(&Store::open(again, world.seams()).unwrap()), after);
}

#[test]
fn a_later_backup_adds_what_is_new_and_takes_the_place_of_the_older_when_it_is_whole() {
    let world = World::new();
    let store = store(&world);
    let first = receive(&world, &sent(&world, &store)).unwrap();
    let c = of(&store, "given");
    c.write(Write::new(batch(&c.schema(), &events(9000, 9100)))).unwrap();
    let then = all(&store);
    let tar = sent(&world, &store);
    let file = |path: &Path| world.disk.open(path, meridian_store::seams::OpenMode::Read).unwrap().len().unwrap();
    let listing = file(Path::new("/kept/BACKUP"));
    // Wherever the transfer is interrupted, the older backup stays.
    for cut in [0, 700, tar.len() / 2, tar.len() - 2000] {
        assert!(receive(&world, &tar[..cut]).is_err());
        assert_eq!(file(Path::new("/kept/BACKUP")), listing);
    }
    let second = receive(&world, &sent(&world, &store)).unwrap();
    assert!(second.files < first.files && second.bytes < first.bytes / 2, "{} of {}", second.bytes, first.bytes);
    drop((store, c));
    // Later merges create other files; files that no backup needs any more are removed.
    let store = world.open();
    of(&store, "given").maintain().unwrap();
    receive(&world, &sent(&world, &store)).unwrap();
    store.records("notes").put("a", b"another").unwrap();
    let last = receive(&world, &sent(&world, &store)).unwrap();
    assert_eq!((last.files, last.bytes), (1, 7), "the record that is new, and nothing else");
    let listed = last.backup.collections.iter().map(|s| s.bytes()).sum::<u64>() + last.backup.records().1;
    assert_eq!(world.files("/kept/files/").iter().map(|(_, bytes)| bytes).sum::<u64>(), listed);
    restored(&world, "/restored").unwrap();
    let back = Store::open(Options { data: "/restored".into(), ..world.options.clone() }, world.seams()).unwrap();
    assert_eq!((all(&back), notes(&back)), (then, notes(&store)));
    assert_eq!(notes(&back)[1].1, b"another");
}

#[test]
fn a_backup_that_was_broken_off_is_none_and_goes_on_from_where_it_was() {
    let random = SeededRandom::new(5);
    for case in 0..12 {
        let world = World::new();
        let store = store(&world);
        let tar = sent(&world, &store);
        let cut = random.next_u64() as usize % (tar.len() - 1500);
        assert!(receive(&world, &tar[..cut]).is_err());
        if case % 2 == 0 {
            world.disk.crash(CrashStyle::Tear(&random));
        }
        let error = restored(&world, "/restored").unwrap_err().to_string();
        assert!(error.contains("holds no backup"), "{error}");
        drop(store);
        let store = world.open();
        let rest = receive(&world, &sent(&world, &store)).unwrap();
        assert!(cut < 60_000 || rest.bytes < tar.len() as u64, "nothing of {cut} bytes was used");
        let then = all(&store);
        drop(store);
        let options = restored(&world, "/restored").unwrap();
        assert_eq!(all(&Store::open(options, world.seams()).unwrap()), then);
    }
}

#[test]
fn a_flipped_bit_in_a_backup_is_named_and_the_next_backup_mends_it() {
    let random = SeededRandom::new(3);
    let world = World::new();
    let store = store(&world);
    receive(&world, &sent(&world, &store)).unwrap();
    for (n, (path, bytes)) in world.files("/kept/").into_iter().filter(|(_, bytes)| *bytes > 0).enumerate() {
        world.disk.flip_bit(&path, random.next_u64() % (bytes * 8)).unwrap();
        let error = restored(&world, &format!("/restored-{n}")).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{} is not named: {error}", path.display());
        let half = Options { data: format!("/restored-{n}").into(), ..world.options.clone() };
        if !path.ends_with("BACKUP") {
            let error = Store::open(half, world.seams()).unwrap_err().to_string();
            assert!(error.contains("restore"), "half a restore opens: {error}");
        }
        let mended = receive(&world, &sent(&world, &store)).unwrap();
        assert_eq!(mended.files, u64::from(!path.ends_with("BACKUP")));
        restored(&world, &format!("/restored-{n}")).unwrap();
    }
}

#[test]
fn damage_of_the_store_is_named_instead_of_being_copied() {
    let random = SeededRandom::new(4);
    for kind in [".parquet", ".rows", ".segment", ".dead", ".keys", ".hidden", "/notes/"] {
        let world = World::new();
        let store = store(&world);
        store.close().unwrap();
        let store = world.open();
        let manifests: Vec<PathBuf> = world.files(kind).into_iter().map(|(path, _)| path).collect();
        // Files that archived segments can do without are not part of a backup: the newest belongs to none.
        let path = manifests.last().unwrap_or_else(|| panic!("there is no {kind}")).clone();
        let bytes = world.files(path.to_str().unwrap())[0].1;
        world.disk.flip_bit(&path, random.next_u64() % (bytes * 8)).unwrap();
        let mut tar = Vec::new();
        let error = store
            .backup(&BackupScope::everything(), &folder(&world).have().unwrap(), &mut tar, &|| false)
            .unwrap_err()
            .to_string();
        assert!(error.contains(path.to_str().unwrap()), "{} is not named: {error}", path.display());
        let told = receive(&world, &tar).unwrap_err().to_string();
        assert!(tar.is_empty() || told.contains(path.to_str().unwrap()), "{told}");
    }
}

#[test]
fn damage_of_an_archive_that_a_backup_meets_is_mended_from_the_cache_while_the_store_runs() {
    let world = World::new();
    let store = store(&world);
    let then = all(&store);
    let (path, bytes) = world
        .files("given/p0/segments/")
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|e| e == "parquet"))
        .unwrap();
    world.disk.flip_bit(&path, bytes / 3 * 8).unwrap();
    let backup = || store.backup(&BackupScope::everything(), &Default::default(), &mut Vec::new(), &|| false);
    let error = backup().unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
    let given = of(&store, "given");
    while given.maintain_segments().unwrap() {}
    assert_eq!(given.problems().len(), 1, "it is said until the file is whole again");
    backup().unwrap();
    // A listing archives the segment again.
    given.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap();
    assert_eq!(given.problems(), []);
    assert_eq!(store.check(), []);
    assert_eq!(all(&store), then);
    world.disk.crash(CrashStyle::Lose);
    drop((store, given));
    let store = world.open();
    assert_eq!(store.check(), []);
    assert_eq!(all(&store), then);
}

#[test]
fn folders_that_hold_other_things_are_refused() {
    let world = World::new();
    let store = store(&world);
    receive(&world, &sent(&world, &store)).unwrap();
    drop(store);
    for (data, because) in [("/data", "is a data folder already"), ("/other", "is not empty")] {
        world.disk.put(Path::new("/other/notes.txt"), b"mine".to_vec());
        let error = restored(&world, data).unwrap_err().to_string();
        assert!(error.contains(because), "{error}");
    }
    let other = BackupFolder::open(Arc::new(world.disk.clone()), Path::new("/other")).unwrap_err().to_string();
    assert!(other.contains("notes.txt"), "{other}");
    // An interrupted restore can be retried, but only from the same backup.
    let listing = world.files("/kept/BACKUP");
    assert_eq!(listing.len(), 1);
    world.disk.inject_times(meridian_store::seams::FaultKind::SyncFails, "/third", 9, 1);
    restored(&world, "/third").unwrap_err();
    assert!(world.files("/third/RESTORING").len() == 1);
    world.disk.heal();
    restored(&world, "/third").unwrap();
    assert!(world.files("/third/RESTORING").is_empty());
}

/// Returns a scope that tells records apart by name: a secret, one that contains a secret, and one without any.
fn with_secrets(key: Option<&BackupKey>) -> BackupScope {
    let part_of = |_: &str, name: &str, content: &[u8]| match name {
        "a" => RecordPart::secret("notes", None),
        "B_2-seen" => RecordPart::secret("marks", Some(b"shown".to_vec())),
        "empty" => RecordPart::absent(),
        _ => RecordPart::plain(content),
    };
    BackupScope { part_of: Box::new(part_of), key: key.cloned(), ..BackupScope::everything() }
}

#[test]
fn secrets_are_left_out_or_sealed_and_come_back_with_their_key_alone() {
    let world = World::new();
    let store = store(&world);
    let (secret, known) = (&b"canary-of-a-record"[..], &b"canary-of-another"[..]);
    store.records("notes").put("a", secret).unwrap();
    store.records("notes").put("B_2-seen", known).unwrap();
    let (ours, theirs) = (BackupKey::parse(&"ab".repeat(32)).unwrap(), BackupKey::parse(&"cd".repeat(32)).unwrap());
    let backup = |key: Option<&BackupKey>| {
        let mut tar = Vec::new();
        store.backup(&with_secrets(key), &folder(&world).have().unwrap(), &mut tar, &|| false).unwrap();
        assert!(!tar.windows(9).any(|part| part == b"canary-of"), "in clear");
        receive(&world, &tar).unwrap().backup
    };
    let restored = |to: &str, key: Option<&BackupKey>| {
        let options = Options { data: to.into(), ..world.options.clone() };
        Restore::of(KEPT)
            .with_key(key.cloned())
            .to_folder(options.clone(), world.seams(), &mut |_| {})
            .map(|_| notes(&Store::open(options, world.seams()).unwrap()))
    };
    let without = [("B_2-seen".to_owned(), b"shown".to_vec())];
    let left = backup(None);
    let counted: Vec<(&str, u64)> = left.left_out().iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
    assert_eq!((counted, left.sealed()), (vec![("marks", 1), ("notes", 1)], 0));
    assert_eq!(restored("/1", Some(&ours)).unwrap(), without);
    let sealed = backup(Some(&ours));
    assert!(sealed.left_out().is_empty() && sealed.sealed() == 2);
    assert_eq!(restored("/2", None).unwrap(), without);
    let error = restored("/3", Some(&theirs)).unwrap_err();
    assert!(matches!(&error, StoreError::Invalid(wrong) if wrong.field.as_deref() == Some("key")), "{error}");
    assert!(world.disk.list(Path::new("/3")).is_err(), "nothing was begun");
    let whole = [("B_2-seen".to_owned(), known.to_vec()), ("a".to_owned(), secret.to_vec())];
    assert_eq!(restored("/4", Some(&ours)).unwrap(), whole);
    // Damage of a sealed record is reported, and affects nothing else.
    let files = world.files("/kept/files/sealed-");
    let (path, _) = files.last().unwrap();
    world.disk.flip_bit(path, 77).unwrap();
    let error = restored("/5", Some(&ours)).unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()) && error.contains("checksum"), "{error}");
    assert_eq!(restored("/6", None).unwrap(), without);
}

#[test]
fn a_backup_of_a_tenant_has_its_collections_alone() {
    let world = World::new();
    let store = store(&world);
    let other = store.create("other", "given", schema(IdRole::Given), Settings::default()).unwrap();
    other.write(Write::new(batch(&other.schema(), &events(0, 5)))).unwrap();
    let scope = BackupScope { tenant: Some("other".to_owned()), ..with_secrets(None) };
    let mut tar = Vec::new();
    store.backup(&scope, &folder(&world).have().unwrap(), &mut tar, &|| false).unwrap();
    let received = receive(&world, &tar).unwrap();
    assert_eq!(received.backup.tenant(), Some("other"));
    let saved: Vec<_> = received.backup.collections.iter().map(|saved| (saved.tenant(), saved.name())).collect();
    assert_eq!(saved, [("other", "given")]);
    let back = Store::open(restored(&world, "/restored").unwrap(), world.seams()).unwrap();
    assert!(back.list("t").is_empty());
    assert_eq!(back.collection("other", "given").unwrap().stats().events, 5);
}
