//! Backups beside drops, renames and new creations: each has a whole collection or none of it.

use crate::bucket::{open, seams};
use crate::world::{Event, World, batch, schema};
use meridian_model::{IdRole, Positions};
use meridian_store::bucket::MemoryBucket;
use meridian_store::{
    Backup, BackupFolder, BackupScope, ControlPlane, Flusher, Options, Restore, Settings, Store, StoreError, Write,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

const DROP: fn(&Store) = |store| assert!(store.drop_collection("t", "c").unwrap());
const RENEW: fn(&Store) = |store| {
    DROP(store);
    create(store, "c", 2);
};
const RENAME: fn(&Store) = |store| assert!(store.rename("t", "c", "new").unwrap());

/// Creates a collection with events in each partition.
fn create(store: &Store, name: &str, partitions: u16) {
    let settings = Settings { partitions, ..Settings::default() };
    store.create("t", name, schema(IdRole::Made), settings).unwrap();
    let events: Vec<Event> = (0..10).map(|n| Event::new(format!("e{n}"), n)).collect();
    for partition in store.partitions("t", name).unwrap().iter() {
        partition.write(Write::new(batch(&partition.schema(), &events))).unwrap();
    }
}

/// Returns the number of partitions of the collection in a backup, and of all collections.
fn partitions(backup: &Backup) -> (usize, usize) {
    (backup.collections.iter().filter(|saved| saved.name() == "c").count(), backup.collections.len())
}

/// The output of a backup, which makes a change when the first file of this name begins.
struct Output<'a> {
    tar: Vec<u8>,
    at: &'static str,
    change: Option<Box<dyn FnOnce() + 'a>>,
}

impl io::Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The head of a file is written at once, and begins with its name.
        if bytes.starts_with(self.at.as_bytes())
            && let Some(change) = self.change.take()
        {
            change();
        }
        self.tar.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_backup_has_all_partitions_of_a_collection_that_is_dropped_meanwhile_or_none() {
    // While records are sent, before its turn; and while its first file is.
    let (before, begun) = ("files/record-", "files/");
    for (at, change, expected) in [
        (before, DROP, Some(0)),
        (before, RENEW, Some(0)),
        (before, RENAME, None),
        (begun, DROP, Some(3)),
        (begun, RENEW, Some(3)),
        (begun, RENAME, Some(3)),
    ] {
        let world = World::new();
        let store = world.open();
        create(&store, "c", 3);
        create(&store, "keep", 1);
        if at == before {
            store.records("notes").put("a", b"one").unwrap();
        }
        // Of one tenant: without the audit log.
        let scope = BackupScope { tenant: Some("t".to_owned()), ..BackupScope::everything() };
        let mut out = Output { tar: Vec::new(), at, change: Some(Box::new(|| change(&store))) };
        let sent = store.backup(&scope, &BTreeMap::new(), &mut out, &|| false);
        assert!(out.change.is_none());
        let folder = BackupFolder::open(Arc::new(world.disk.clone()), Path::new("/kept")).unwrap();
        let received = folder.receive(&mut out.tar.as_slice(), &mut |_| {});
        drop(folder);
        let Some(expected) = expected else {
            let why = received.unwrap_err().to_string();
            assert!(matches!(sent, Err(StoreError::Busy(_))) && why.contains("renamed"), "{why}");
            continue;
        };
        sent.unwrap();
        assert_eq!(partitions(&received.unwrap().backup), (expected, expected + 1), "{at}");
        let options = Options { data: "/restored".into(), ..world.options.clone() };
        Restore::of("/kept").to_folder(options, world.seams(), &mut |_| {}).unwrap();
    }
}

/// An owner whose collection is changed right after its first flush.
struct Restless<'a> {
    owner: &'a Store,
    change: Cell<Option<fn(&Store)>>,
}

impl Flusher for Restless<'_> {
    fn all(&self) -> Result<Vec<(String, String)>, StoreError> {
        Flusher::all(self.owner)
    }

    fn flush(&self, tenant: &str, name: &str) -> Result<Option<Positions>, StoreError> {
        let flushed = Flusher::flush(self.owner, tenant, name);
        if name == "c"
            && let Some(change) = self.change.take()
        {
            change(self.owner);
        }
        flushed
    }
}

#[test]
fn a_backup_of_a_bucket_has_the_next_collection_of_the_name_or_none() {
    for (change, expected) in [(DROP, 0), (RENEW, 2)] {
        let bucket = MemoryBucket::new();
        let owner = open(&bucket).unwrap();
        create(&owner, "c", 3);
        create(&owner, "keep", 1);
        let restless = Restless { owner: &owner, change: Cell::new(Some(change)) };
        let control = ControlPlane::new(Arc::new(bucket.clone()), &seams(), 1 << 20);
        let backup = control
            .backup(&restless, &BackupScope::everything(), &BTreeMap::new(), &mut Vec::new(), &|| false)
            .unwrap();
        assert_eq!(partitions(&backup), (expected, expected + 1));
    }
}

#[test]
fn an_owner_that_closes_does_not_say_that_its_collections_are_gone() {
    let owner = open(&MemoryBucket::new()).unwrap();
    create(&owner, "c", 1);
    assert!(Flusher::flush(&owner, "t", "absent").unwrap().is_none());
    owner.close().unwrap();
    assert!(matches!(Flusher::flush(&owner, "t", "c"), Err(StoreError::Busy(_))));
}
