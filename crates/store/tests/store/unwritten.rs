//! A collection that is dropped only if it was never written to.

use crate::world::{Event, World, batch, schema};
use meridian_model::IdRole;
use meridian_store::{Definition, Durability, Settings, StoreError, Write};

fn definition(durability: Durability) -> Definition {
    Definition { schema: schema(IdRole::Given), settings: Settings { durability, ..Settings::default() } }
}

#[test]
fn a_collection_is_dropped_as_it_was_seen_until_it_is_written_to() {
    for durability in [Durability::Local, Durability::Ephemeral] {
        let world = World::new();
        let store = world.open();
        let seen = definition(durability);
        let create = |name, settings| store.create("t", name, seen.schema.clone(), settings).unwrap();
        let made = create("c", seen.settings.clone());
        let write = || made.write(Write::new(batch(&made.schema(), &[Event::new("e", 1)])));
        let changed = |name, created, seen: &Definition| {
            matches!(store.drop_unwritten("t", name, created, seen), Err(StoreError::Changed))
        };
        let limited = Settings { retention_bytes: Some(1 << 40), ..seen.settings.clone() };
        assert!(changed("c", made.created(), &Definition { settings: limited, ..seen.clone() }));
        assert!(changed("c", made.created() + 1, &seen));
        // What it refused has left no trace.
        write().unwrap();
        made.delete(&["e".to_owned()]).unwrap();
        assert!(changed("c", made.created(), &seen), "its events were deleted, and it was written to");
        let empty = create("d", seen.settings.clone());
        assert!(store.drop_unwritten("t", "d", empty.created(), &seen).unwrap());
        assert!(store.collection("t", "d").is_none());
        assert!(empty.write(Write::new(batch(&empty.schema(), &[Event::new("e", 1)]))).is_err());
        assert!(!store.drop_unwritten("t", "d", empty.created(), &seen).unwrap());
        let settings = Settings { partitions: 2, ..seen.settings.clone() };
        let first = create("parts", settings.clone());
        assert!(changed("parts", first.created(), &Definition { settings, ..seen.clone() }));
        assert!(store.collection("t", "parts").is_some());
    }
}

#[test]
fn of_a_first_write_and_a_removal_one_is_done() {
    let world = World::new();
    let store = world.open();
    let seen = definition(Durability::Local);
    for round in 0..64 {
        let made = store.create("t", "c", seen.schema.clone(), seen.settings.clone()).unwrap();
        let (written, removed) = std::thread::scope(|scope| {
            let write = || made.write(Write::new(batch(&made.schema(), &[Event::new("e", 1)]))).is_ok();
            let writer = scope.spawn(write);
            let removed = match store.drop_unwritten("t", "c", made.created(), &seen) {
                Ok(removed) => removed,
                Err(StoreError::Changed) => false,
                Err(error) => panic!("{round}: {error}"),
            };
            (writer.join().unwrap(), removed)
        });
        assert_ne!(written, removed, "{round}");
        assert_eq!(store.collection("t", "c").is_some(), written, "{round}");
        store.drop_collection("t", "c").unwrap();
    }
}
