//! Another schema for a collection that was never written to: one step, and only while nothing would be lost.

use crate::world::{Event, World, batch, content, schema};
use meridian_model::{IdRole, Schema, schema_spec};
use meridian_store::seams::{CrashStyle, FaultKind};
use meridian_store::{Durability, Retyped, Settings, StoreError, Write};

fn other() -> Schema {
    schema_spec::parse("word:String,weight:Double,*geom:Point:srid=4326").unwrap()
}

fn of(durability: Durability) -> Settings {
    Settings { durability, ..Settings::default() }
}

#[test]
fn a_crash_at_any_step_leaves_one_of_the_two_schemas() {
    let (mut kept, mut failed_replaced) = (0, 0);
    for kind in [FaultKind::SyncFails, FaultKind::WriteFails, FaultKind::NameFails] {
        for step in 0..20 {
            let case = format!("{kind:?} {step}");
            let world = World::new();
            let store = world.open();
            let first = schema(IdRole::Given);
            store.create("t", "c", first.clone(), of(Durability::Local)).unwrap();
            world.disk.inject_times(kind, "/t", step, if step % 2 == 0 { u64::MAX } else { 1 });
            let retyped = store.retype("t", "c", other(), of(Durability::Local));
            assert!(!matches!(retyped, Ok(Retyped::Kept(_))), "{case}");
            assert!(store.collection("t", "c").is_some() || store.why_damaged("t", "c").is_some(), "{case}");
            world.disk.crash(CrashStyle::Lose);
            drop(store);
            let store = world.open();
            let found = store.collection("t", "c").unwrap_or_else(|| panic!("{case}: {:?}", store.problems())).schema();
            match (retyped, *found == other()) {
                (Ok(_), replaced) => assert!(replaced, "{case}"),
                (Err(_), true) => failed_replaced += 1,
                (Err(_), false) => {
                    assert_eq!(*found, first, "{case}");
                    kept += 1;
                }
            }
            assert_eq!(store.check(), [], "{case}");
        }
    }
    assert!(kept > 0 && failed_replaced > 0, "{kept} {failed_replaced}: no fault was met in the middle");
}

#[test]
fn a_collection_takes_another_schema_until_it_is_written_to() {
    for durability in [Durability::Local, Durability::Ephemeral] {
        let world = World::new();
        let store = world.open();
        let former = store.create("t", "c", other(), of(durability)).unwrap();
        let settings = Settings { retention_bytes: Some(1 << 40), ..of(durability) };
        let wanted = schema(IdRole::Given);
        assert_eq!(store.retype("t", "c", wanted.clone(), settings.clone()).unwrap(), Retyped::Done);
        let new = store.collection("t", "c").unwrap();
        assert_eq!((&*new.schema(), new.settings()), (&wanted, settings));
        assert!(new.created() > former.created(), "what others remember of the former one is not of this one");
        // Holders of the former collection cannot change anything through it.
        assert!(former.set_settings(of(durability)).is_err() && former.delete(&["e".to_owned()]).is_err());

        new.write(Write::new(batch(&new.schema(), &[Event::new("e", 1)]))).unwrap();
        let held = content(&new.snapshot());
        let kept = |name, schema, settings| match store.retype("t", name, schema, settings).unwrap() {
            Retyped::Kept(why) => why,
            Retyped::Done => panic!("{name} got another schema"),
        };
        assert_eq!(kept("c", other(), of(durability)), "it has events");
        new.delete(&["e".to_owned()]).unwrap();
        // Its log has the former columns.
        assert!(kept("c", other(), of(durability)).contains("the events that it had"));
        new.write(Write::new(batch(&new.schema(), &[Event::new("e", 1)]))).unwrap();
        assert_eq!((held.len(), content(&new.snapshot()).len()), (1, 1));

        assert_eq!(kept("absent", other(), of(durability)), "it was removed");
        let partitioned = Settings { partitions: 2, ..of(durability) };
        store.create("t", "parts", other(), partitioned.clone()).unwrap();
        assert_eq!(kept("parts", wanted.clone(), partitioned.clone()), "it has several partitions");
        store.create("t", "d", other(), of(durability)).unwrap();
        assert!(matches!(store.retype("t", "d", wanted, partitioned), Err(StoreError::Invalid(_))));
        assert_eq!(*store.collection("t", "d").unwrap().schema(), other());
        let began = new.began();
        drop((store, former, new));
        world.disk.crash(CrashStyle::Lose);
        world.clock.advance(1_000_000);
        let store = world.open();
        let reopened = store.collection("t", "c").unwrap();
        // The content of an ephemeral collection begins with each start.
        assert_eq!(reopened.began() > began, durability == Durability::Ephemeral);
        let rows = content(&reopened.snapshot()).len();
        assert_eq!((rows, store.check()), (usize::from(durability == Durability::Local), vec![]));
    }
}
