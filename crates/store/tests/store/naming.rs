//! The name of a new collection, and the durability it reports.

use crate::world::{World, schema};
use meridian_model::IdRole;
use meridian_store::seams::Disk;
use meridian_store::{Durability, Options, Settings, Store, StoreError};
use std::path::Path;

#[test]
fn names_that_other_file_systems_take_for_one_are_refused_and_existing_ones_open() {
    let world = World::new();
    let store = world.open();
    let create = |name: &str| store.create("t", name, schema(IdRole::Made), Settings::default());
    create("ships").unwrap();
    for name in ["Ships", "SHIPS", "con", "Com3.log", "ships."] {
        let error = create(name).unwrap_err().to_string();
        assert!(error.contains(&format!("{name:?}")) && error.contains("choose another"), "{error}");
    }
    create("ships-2").unwrap();
    assert!(matches!(create("ships"), Err(StoreError::Exists { .. })));
    drop(store);
    // As created by an older version, for which the folder is the name.
    for (path, _) in world.files("ships-2/p0/MANIFEST") {
        let bytes = world.disk.vanish(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes[16..]).replace("ships-2", "SHIPS");
        let mut framed = bytes[..12].to_vec();
        framed.extend(crc32c::crc32c_append(crc32c::crc32c(&framed), text.as_bytes()).to_le_bytes());
        framed.extend(text.as_bytes());
        for sub in ["log", "segments"] {
            world.disk.create_dir(&Path::new("/data/tenants/t/SHIPS/p0").join(sub)).unwrap();
        }
        world.disk.put(Path::new("/data/tenants/t/SHIPS/p0/MANIFEST"), framed);
    }
    let store = world.open();
    assert!(store.collection("t", "SHIPS").is_some() && store.collection("t", "ships").is_some());
}

#[test]
fn an_ephemeral_store_says_that_its_collections_are_ephemeral() {
    let world = World::new();
    let store = Store::open(Options { background: false, ..Options::ephemeral() }, world.seams()).unwrap();
    let c = store.create("t", "c", schema(IdRole::Made), Settings::default()).unwrap();
    assert_eq!(c.settings().durability, Durability::Ephemeral);
    c.set_settings(Settings { retention: Some(std::time::Duration::from_secs(60)), ..c.settings() }).unwrap();
}
