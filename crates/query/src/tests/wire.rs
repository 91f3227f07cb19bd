//! Queries are the same after a round trip over the wire.

use super::items::sort_keys;
use super::oracle::{by_fields, functions};
use super::world::*;
use crate::aggregate::Aggregate;
use crate::by::ByValue;
use crate::items::{Items, Order, items};
use crate::passages::Passages;
use crate::tile::Tile;
use crate::track::Track;
use crate::windows::Windows;
use crate::wire::WireError;
use crate::wire::{Count, NearCircle, QUESTION_VERSION, Question};
use meridian_model::Seq;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

fn back(question: &Question, world: &World) -> Question {
    let left = Duration::from_micros(1_234_567);
    let bytes = question.to_json(&world.schema, left).unwrap();
    let (read, time_left) = Question::from_json(&bytes, &world.schema).unwrap();
    assert_eq!(time_left, left);
    // A decoded query encodes to the same text.
    assert_eq!(read.to_json(&world.schema, left).unwrap(), bytes);
    read
}

/// The complete result of a query, as text.
fn answer(question: &Question, world: &World) -> String {
    let (snapshot, control) = (world.collection.snapshot(), world.control());
    match question {
        Question::Items(question) => match items(&snapshot, question, &control) {
            Ok(mut rows) => {
                let all: Vec<Seq> = rows.by_ref().flat_map(|hits| hits.unwrap().seqs).collect();
                format!("{all:?} {:?}", rows.next_page())
            }
            Err(error) => error.to_string(),
        },
        Question::Count(Count { predicate, tested_max }) => {
            format!("{:?}", crate::count(&snapshot, predicate, *tested_max, &control).unwrap().0)
        }
        Question::Aggregate(question) => match crate::aggregate(&snapshot, question, &control) {
            Ok(answer) => format!("{:?}", answer.groups),
            Err(error) => error.to_string(),
        },
        Question::Density(question) => format!("{:?}", crate::density(&snapshot, question, &control).unwrap().counts),
        Question::Tile(question) => format!("{:?}", crate::tile(&snapshot, question, &control).unwrap().bytes),
        Question::Track(question) => match crate::track(&snapshot, question, &control) {
            Ok(answer) => format!("{:?}", answer.points),
            Err(error) => error.to_string(),
        },
        Question::Passages(question) => match crate::passages(&snapshot, question, &control) {
            Ok(answer) => format!("{:?} {}", answer.passages, answer.more),
            Err(error) => error.to_string(),
        },
        Question::Near(question) => {
            let near = crate::partial::PartialNear::of(&snapshot, question.circle(), question.k, &question.projection);
            format!("{:?}", near.map(|near| near.finish().0).map_err(|e| e.to_string()))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn questions_come_back_and_ask_for_the_same(
        kind in kinds(),
        ops in ops(),
        filter in filters(),
        (limit, k, keys) in (1usize..60, prop::option::of(1usize..40), sort_keys()),
        (lon, lat, radius_m, bbox) in (lons(), lats(), 0.0..1e6f64, bboxes()),
        (window, zone) in (
            prop::option::of(prop::sample::select(vec!["PT1H", "P1D", "p1m", "PT0.5S", "P2W"])),
            prop::sample::select(vec!["UTC", "Europe/Berlin", "+05:45", "Z"]),
        ),
        (by, functions, object, properties) in (
            by_fields(),
            functions(),
            texts(),
            prop::option::of(prop::sample::subsequence(vec!["t", "n", "x", "s", "b"], 0..5)),
        ),
    ) {
        let world = World::after(kind, &ops);
        let predicate = filter.predicate(&world);
        let projection = crate::select(&world.schema, properties.as_deref()).unwrap();
        let page = Items { predicate: predicate.clone(), limit: Some(limit), projection, ..Items::all(&world.schema) };
        let mut asked = vec![
            Question::Count(Count { predicate: predicate.clone(), tested_max: 10_000 }),
            Question::Density(crate::Density { predicate: predicate.clone(), bbox, width: 5, height: 3 }),
            Question::Tile(Tile {
                predicate: predicate.clone(),
                z: 2,
                row: 1,
                column: 3,
                layer: "events".to_owned(),
                fields: (!by.is_empty()).then(|| by.clone()),
                density: by == [5],
                average: k.map(|_| 2),
            }),
            Question::Track(Track { object: object.clone(), predicate: predicate.clone(), simplify_m: k.map(|k| k as f64) }),
            Question::Passages(Passages { predicate: predicate.clone(), after: Some(ByValue::Text(object)), limit }),
        ];
        if kind.places == Places::Points {
            let projection = page.projection.clone();
            asked.push(Question::Near(NearCircle { lon, lat, radius_m, k: limit, projection }));
        }
        let windows = window.filter(|_| kind.times != Times::None).map(|window| Windows::parse(window, zone).unwrap());
        asked.push(Question::Aggregate(Aggregate { predicate, functions, windows, by, empty: false }));
        for order in [Order::Natural, Order::Near { lon, lat, k }, Order::Fields(keys)] {
            let first = Items { order, ..page.clone() };
            let mut rows = items(&world.collection.snapshot(), &first, &world.control()).unwrap();
            rows.by_ref().for_each(|hits| drop(hits.unwrap()));
            asked.extend(rows.next_page().map(|next| Question::Items(Items { after: Some(next.clone()), ..first.clone() })));
            asked.push(Question::Items(first));
        }
        let located = meridian_model::filter::Predicate::located();
        asked.push(Question::Count(Count { predicate: located, tested_max: 10_000 }));
        for question in asked {
            let read = back(&question, &world);
            prop_assert_eq!(answer(&read, &world), answer(&question, &world), "{:?}", question);
            if let (Question::Items(a), Question::Items(b)) = (&read, &question) {
                prop_assert_eq!(&a.projection, &b.projection);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_question_are_refused(
        filter in filters(),
        cut in any::<prop::sample::Index>(),
        flip in any::<(prop::sample::Index, u8)>(),
        text in "\\PC{0,40}",
    ) {
        let world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: false });
        let question = Question::Items(Items { predicate: filter.predicate(&world), ..Items::all(&world.schema) });
        let bytes = question.to_json(&world.schema, Duration::ZERO).unwrap();
        prop_assert!(Question::from_json(&bytes[..cut.index(bytes.len())], &world.schema).is_err());
        prop_assert!(Question::from_json(text.as_bytes(), &world.schema).is_err());
        let mut changed = bytes;
        let at = flip.0.index(changed.len());
        changed[at] = flip.1;
        let _ = Question::from_json(&changed, &world.schema);
    }
}

#[test]
fn another_version_and_unknown_members_are_refused() {
    let world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: false });
    let question = Question::Items(Items::all(&world.schema));
    let bytes = question.to_json(&world.schema, Duration::ZERO).unwrap();
    let message: Value = serde_json::from_slice(&bytes).unwrap();
    let read = |message: &Value| Question::from_json(message.to_string().as_bytes(), &world.schema).map(drop);
    assert!(read(&message).is_ok());
    let mut newer = message.clone();
    newer["version"] = json!(QUESTION_VERSION + 1);
    newer["question"] = json!({"of a later version": true});
    assert!(matches!(read(&newer), Err(WireError::Version { .. })));
    let mut more = message.clone();
    more["question"]["items"]["sample"] = json!(0.5);
    assert!(matches!(read(&more), Err(WireError::Malformed { .. })));
    for (member, value) in [
        ("columns", json!(["nothing"])),
        ("limit", json!(u64::MAX)),
        ("after", json!("AAAA")),
        ("filter", json!({"cql2": {"op": "=", "args": [{"property": "nothing"}, 1]}})),
        ("filter", json!({"near": [1, 2]})),
        ("filter", json!({"located": false})),
        ("filter", json!({"bbox": [0, 0, 1, 1], "located": true})),
        ("order", json!("backwards")),
    ] {
        let mut wrong = message.clone();
        wrong["question"]["items"][member] = value;
        assert!(read(&wrong).is_err(), "{wrong}");
    }
}
