//! Idempotency keys that are reused with other events.

use crate::world::{Event, World, batch};
use meridian_model::{Field, FieldType, IdRole};
use meridian_store::seams::CrashStyle;
use meridian_store::{Collection, Write, WriteError, WriteReceipt};

fn send(c: &Collection, events: &[Event]) -> Result<WriteReceipt, WriteError> {
    c.write(Write::new(batch(&c.schema(), events)).replacing().with_key("load-1"))
}

fn is_refused(c: &Collection, events: &[Event]) {
    let answer = send(c, events);
    assert!(matches!(answer, Err(WriteError::KeyReused { position: 1, partition: None, events: 4 })), "{answer:?}");
}

#[test]
fn a_key_with_other_events_is_refused_before_and_after_restarts() {
    for role in [IdRole::Given, IdRole::Made] {
        let world = if role == IdRole::Given { World::new() } else { World::over_bucket() };
        let event = |n: i64| Event::new(format!("id-{n}"), n);
        // With an occasional null, and an absent place.
        let events: Vec<Event> = (12..16).map(event).collect();
        let mut others = events.clone();
        others[2].time += 1;
        let (store, c) = world.with_collection(role);
        assert_eq!(send(&c, &events).unwrap().written, 4);
        let both = |c: &Collection| {
            assert_eq!(send(c, &events).unwrap().duplicates, 4);
            is_refused(c, &others);
            is_refused(c, &events[..3]);
            is_refused(c, &[&events[1..], &events[..1]].concat());
        };
        both(&c);
        // An added field without values does not make the events differ.
        c.add_fields(vec![Field { name: "more".into(), kind: FieldType::Text, required: false, title: None }]).unwrap();
        both(&c);
        world.disk.crash(CrashStyle::Lose);
        drop((store, c));
        let (store, c) = world.with_collection(role);
        both(&c);
        c.flush().unwrap();
        world.disk.crash(CrashStyle::Lose);
        drop((store, c));
        let (_store, c) = world.with_collection(role);
        both(&c);
        assert_eq!(c.stats().events, 4);
    }
}

#[test]
fn of_a_key_of_an_older_version_nobody_knows_the_events() {
    let world = World::new();
    let events: Vec<Event> = (0..4).map(|n| Event::new(format!("id-{n}"), n)).collect();
    let (store, c) = world.with_collection(IdRole::Given);
    send(&c, &events).unwrap();
    store.close().unwrap();
    drop((store, c));
    let (path, _) = world.files(".keys").pop().unwrap();
    let bytes = world.disk.vanish(&path).unwrap();
    // Version 1: the same without the last eight bytes of each key.
    let mut old = [&bytes[..8], &1u32.to_le_bytes()].concat();
    let content = &bytes[16..16 + 8 + 36];
    old.extend(crc32c::crc32c_append(crc32c::crc32c(&old), content).to_le_bytes());
    old.extend(content);
    world.disk.put(&path, old);
    let (store, c) = world.with_collection(IdRole::Given);
    assert_eq!(store.check(), []);
    assert_eq!(send(&c, &events[1..]).unwrap().duplicates, 4);
}
