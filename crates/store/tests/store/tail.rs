//! The end of the newest log file, cut, zeroed or overwritten: missing acknowledged writes are detected and reported.

use crate::world::{Event, World, batch, content};
use meridian_model::IdRole;
use meridian_store::Write;
use meridian_store::seams::CrashStyle;

/// Creates 50 acknowledged writes of one event; the server ended without a clean stop.
fn fifty(power: bool) -> World {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Made);
    for n in 0..50 {
        c.write(Write::new(batch(&c.schema(), &[Event::new(String::new(), n)]))).unwrap();
    }
    if !power {
        world.disk.crash(CrashStyle::Lose);
    }
    drop((store, c));
    world
}

#[test]
fn writes_missing_at_the_end_of_the_log_are_named_and_stop_the_collection() {
    for (how, power) in ["cut", "zeroed", "overwritten"].iter().flat_map(|how| [(how, true), (how, false)]) {
        let world = fifty(power);
        let (path, _) = world.files(".log").pop().unwrap();
        let mut bytes = world.disk.vanish(&path).unwrap();
        // Half of the records; the space allocated ahead of them is zeros.
        let end = bytes.iter().rposition(|b| *b != 0).unwrap();
        let half = 8192 + (end - 8192) / 2;
        match *how {
            "cut" => bytes.truncate(half),
            "zeroed" => bytes[half..].fill(0),
            _ => bytes[half..].fill(0x5a),
        }
        world.disk.put(&path, bytes);
        let store = world.open();
        let c = store.collection("t", "c").unwrap();
        let left = content(&c.snapshot()).len();
        assert!((20..30).contains(&left), "{left}");
        let last = if power { 50 } else { 49 };
        let missing = format!("writes {} to {last} were acknowledged and are missing", left + 1);
        let said = |problems: &[meridian_store::Problem]| {
            problems.iter().any(|p| p.path == path && p.detail.contains(&missing))
        };
        assert!(said(&store.problems()), "{how}, power {power}: {:?}", store.problems());
        assert!(said(&store.check()), "{how}, power {power}: {:?}", store.check());
        assert!(!c.snapshot().missing.is_empty());
        assert!(c.stats().refuses.is_some());
        // Another start reports the same: nothing was made up for.
        drop((store, c));
        assert!(said(&world.open().problems()));
    }
}

#[test]
fn a_last_group_whose_mark_power_took_is_forgotten_once_and_then_never() {
    let world = fifty(false);
    let (path, _) = world.files(".log").pop().unwrap();
    let spoil = |world: &World, share: usize| {
        let mut bytes = world.disk.vanish(&path).unwrap();
        let end = bytes.iter().rposition(|b| *b != 0).unwrap();
        bytes[end - (end - 8192) / share..].fill(0);
        world.disk.put(&path, bytes);
    };
    // Some bytes of the last record, then half of all.
    spoil(&world, 200);
    let store = world.open();
    assert_eq!(store.problems(), []);
    assert_eq!(store.collection("t", "c").unwrap().position(), 49);
    drop(store);
    // That start has seen 49 writes, and marked them.
    world.disk.crash(CrashStyle::Lose);
    spoil(&world, 2);
    assert_eq!(world.open().problems().len(), 1);
}
