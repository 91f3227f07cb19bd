//! Events by object: the sidecar compared with a scan of all rows.

use crate::world::{DAY, START, World};
use meridian_model::builder::Value;
use meridian_model::{Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Projection, Schema, Seq, TimeRole};
use meridian_store::seams::{Random, SeededRandom};
use meridian_store::{Settings, Write};
use std::collections::BTreeSet;
use std::sync::Arc;

fn schema(kind: FieldType) -> Schema {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Schema {
        fields: vec![field("at", FieldType::Time, true), field("ship", kind, false)],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(0),
        id: IdRole::Made,
        object: Some(1),
        ..Schema::default()
    }
}

fn batch(schema: &Arc<Schema>, kind: FieldType, events: &[(u64, i64)]) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    for (ship, at) in events {
        builder.set_point((*ship % 360) as f64 - 180.0, (*at % 180) as f64 - 90.0).unwrap();
        builder.set(0, Value::Time(START + at * DAY / 10)).unwrap();
        // One in seventeen has no object.
        match kind {
            _ if ship % 17 == 0 => {}
            FieldType::Int => builder.set(1, Value::Int(*ship as i64)).unwrap(),
            _ => builder.set(1, Value::Text(format!("ship {ship}"))).unwrap(),
        }
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

#[test]
fn the_events_of_an_object_are_found_by_key() {
    for kind in [FieldType::Text, FieldType::Int] {
        let world = World::new();
        let store = world.open();
        let c = store.create("t", "c", schema(kind), Settings::default()).unwrap();
        let random = SeededRandom::new(5);
        for round in 0..6u64 {
            let events: Vec<(u64, i64)> = (0..3000)
                .map(|_| (random.next_u64() % 40, (random.next_u64() % 1000) as i64))
                // One object has so many events that its entries span pages.
                .map(|(ship, at)| (if ship > 20 { 1 } else { ship }, at))
                .collect();
            c.write(Write::new(batch(&c.schema(), kind, &events))).unwrap();
            match round {
                1 | 3 => c.flush().unwrap(),
                4 => c.maintain().unwrap(),
                _ => {}
            }
            let snapshot = c.snapshot();
            for (ship, from, to) in [(1u64, 0, 1000), (2, 100, 300), (16, 500, 500), (17, 0, 1000), (99, 0, 1000)] {
                let name = if kind == FieldType::Int { ship.to_string() } else { format!("ship {ship}") };
                let times = START + from * DAY / 10..=START + to * DAY / 10;
                for part in snapshot.parts.iter() {
                    let rows = part.object_rows(&name, times.clone()).unwrap().expect("the collection has objects");
                    let all = part.read(0..part.rows(), &Projection::all(&snapshot.layout)).unwrap();
                    let expected: Vec<u32> = (0..part.rows())
                        .filter(|row| {
                            let row = *row as usize;
                            let same = match all.field(1).unwrap() {
                                meridian_model::FieldColumn::Int(n) => !is_null(n, row) && n.value(row) == ship as i64,
                                meridian_model::FieldColumn::Text(t) => !is_null(t, row) && t.value(row) == name,
                                _ => panic!("another column"),
                            };
                            same && times.contains(&all.interval(row).0)
                        })
                        .collect();
                    assert_eq!(rows, expected, "{name} in {from}..{to}");
                }
            }
        }
        assert_eq!(store.check(), []);
        let kinds: BTreeSet<bool> = c.snapshot().parts.iter().map(|p| p.in_memory()).collect();
        assert_eq!(kinds.len(), 2, "both memory trees and segments were asked");
        assert_eq!(c.snapshot().parts[0].object_rows("not a number", i64::MIN..=i64::MAX).unwrap(), Some(vec![]));
    }
}

fn is_null(array: &dyn arrow_array::Array, row: usize) -> bool {
    array.is_null(row)
}

#[test]
fn a_collection_without_objects_says_so() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Made);
    c.write(Write::new(crate::world::batch(&c.schema(), &[crate::world::Event::new("a", 1)]))).unwrap();
    assert_eq!(c.snapshot().parts[0].object_rows("a", i64::MIN..=i64::MAX).unwrap(), None);
}

#[test]
fn the_event_before_another_is_the_newest_of_those_written_earlier() {
    for kind in [FieldType::Text, FieldType::Int] {
        let world = World::new();
        let store = world.open();
        let c = store.create("t", "c", schema(kind), Settings::default()).unwrap();
        let random = SeededRandom::new(8);
        let below = |end: u64| random.next_u64() % end;
        let mut written: Vec<(u64, i64, Seq)> = Vec::new();
        for round in 0..12 {
            // Equal times, and one ship with more events than a page of entries holds.
            let ships: Vec<u64> = (0..800).map(|_| if below(2) == 0 { 1 } else { below(40) }).collect();
            let events: Vec<(u64, i64)> = ships.iter().map(|ship| (*ship, below(400) as i64)).collect();
            let position = c.write(Write::new(batch(&c.schema(), kind, &events))).unwrap().position;
            written.extend(events.iter().enumerate().map(|(row, (ship, at))| (*ship, *at, Seq::new(position, row))));
            match round % 4 {
                1 => c.flush().unwrap(),
                2 => c.maintain().unwrap(),
                // Deleted events existed once.
                _ => {
                    let ids: Vec<String> =
                        (0..50).map(|_| written[below(written.len() as u64) as usize].2.to_id()).collect();
                    c.delete(&ids).unwrap();
                }
            }
        }
        let prior = c.prior_events();
        let mut columns = Projection::none(&c.snapshot().layout);
        columns.add_time(&c.snapshot().layout, &c.schema());
        for _ in 0..600 {
            let (ship, at, seq) = written[below(written.len() as u64) as usize];
            let earlier = written.iter().filter(|event| event.0 == ship && ship % 17 != 0 && event.2 < seq);
            let expected = earlier.map(|(_, at, seq)| (START + at * DAY / 10, *seq)).max();
            let one = batch(&c.schema(), kind, &[(ship, at)]);
            let found = prior.before(&one, 0, seq, &columns).unwrap();
            assert_eq!(found.map(|(batch, seq)| (batch.interval(0).1, seq)), expected, "ship {ship} before {seq}");
            assert_eq!(prior.object(&one, 0).is_none(), ship % 17 == 0);
        }
    }
}
