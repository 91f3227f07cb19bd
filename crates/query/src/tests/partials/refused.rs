//! The rejections of each check of a partial result: nulls, tags of no table, values and windows of another query.

use super::super::oracle::all_functions;
use super::super::world::*;
use crate::aggregate::Aggregate;
use crate::by::ByValue;
use crate::items::{Items, Order};
use crate::partial::*;
use crate::passages::Passages;
use crate::tile::Tile;
use crate::track::Track;
use crate::windows::Windows;
use crate::wire::WireError;
use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{Array, ArrayRef, Int64Array, LargeStringArray, RecordBatch, UInt64Array, new_null_array};
use arrow_schema::{Field, Schema as ArrowSchema};
use meridian_model::{Projection, Schema, Seq};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Twenty points, an hour apart, of one object, with a value in every field.
fn world() -> World {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: false });
    let event = |n: i64| Event {
        id: format!("e{n}"),
        spot: Spot::Point(n as f64, 1.0),
        start: n * HOUR,
        end: n * HOUR,
        n: Some(n % 3),
        x: Some(0.5),
        s: Some("a".to_owned()),
        b: Some(true),
        seq: Seq(0),
    };
    world.write_as_they_are(&(0..20).map(event).collect::<Vec<_>>());
    world
}

fn aggregate(world: &World, by: &[usize], windows: Option<&str>) -> Aggregate {
    let windows = windows.map(|window| Windows::parse(window, "UTC").unwrap());
    Aggregate {
        predicate: Filter::All.predicate(world),
        functions: all_functions(),
        windows,
        by: by.to_vec(),
        empty: false,
    }
}

fn groups(world: &World, question: &Aggregate) -> RecordBatch {
    let groups = PartialGroups::of(&world.collection.snapshot(), question, &world.control()).unwrap();
    groups.to_arrow(&world.schema).unwrap()
}

fn tile(world: &World) -> RecordBatch {
    let predicate = Filter::All.predicate(world);
    let tile = Tile {
        predicate,
        z: 0,
        row: 0,
        column: 0,
        layer: "a".to_owned(),
        fields: Some(vec![2]),
        density: false,
        average: None,
    };
    PartialTile::of(&world.collection.snapshot(), &tile, &world.control()).unwrap().to_arrow().unwrap()
}

/// The batch with the column of this name replaced.
fn with_column(batch: &RecordBatch, name: &str, column: ArrayRef) -> RecordBatch {
    let schema = batch.schema();
    let mut columns = batch.columns().to_vec();
    let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    let at = schema.index_of(name).unwrap();
    fields[at] = Field::new(name, column.data_type().clone(), true);
    columns[at] = column;
    let schema = ArrowSchema::new_with_metadata(fields, schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn is_malformed<T>(read: Result<T, WireError>) -> bool {
    matches!(read, Err(WireError::Malformed { .. }))
}

#[test]
fn a_column_of_nulls_is_refused_wherever_a_value_must_stand() {
    let world = world();
    let (snapshot, control, schema) = (world.collection.snapshot(), world.control(), &world.schema);
    let predicate = Filter::All.predicate(&world);
    let question = aggregate(&world, &[4], None);
    let grid = crate::Density { predicate: predicate.clone(), bbox: [-180.0, -90.0, 180.0, 90.0], width: 7, height: 5 };
    let track = Track { object: "a".to_owned(), predicate: predicate.clone(), simplify_m: None };
    let passages = Passages { predicate: predicate.clone(), after: None, limit: 5 };
    let columns = Projection::all(&snapshot.layout);
    let near = PartialNear::of(&snapshot, crate::near::Circle::new(0.0, 0.0, 1e7), 9, &columns).unwrap();
    let rows = |order: &Order| {
        let items = Items { order: order.clone(), limit: Some(9), ..Items::all(schema) };
        PartRows::of(&snapshot, &items, &control).unwrap().next().unwrap().unwrap().to_arrow(order).unwrap()
    };
    let by_distance = Order::Near { lon: 1.0, lat: 2.0, k: None };
    // Events may lack values of optional fields, groups a window and a value. Half a position is rejected.
    let (of_groups, of_events) = (["@window_start", "@window_end", "@by"], ["u", "n", "x", "s", "b"]);
    type Read<'a> = Box<dyn Fn(&RecordBatch) -> Result<(), WireError> + 'a>;
    let all: [(&str, RecordBatch, &[&str], Read<'_>); 8] = [
        (
            "groups",
            groups(&world, &question),
            &of_groups,
            Box::new(|batch| PartialGroups::from_arrow(batch, &question, schema, &control).map(drop)),
        ),
        (
            "grid",
            PartialGrid::of(&snapshot, &grid, &control).unwrap().to_arrow().unwrap(),
            &[],
            Box::new(|batch| PartialGrid::from_arrow(batch, 35).map(drop)),
        ),
        ("tile", tile(&world), &[], Box::new(|batch| PartialTile::from_arrow(batch).map(drop))),
        (
            "track",
            PartialTrack::of(&snapshot, &track, &control).unwrap().to_arrow().unwrap(),
            &[],
            Box::new(|batch| PartialTrack::from_arrow(batch, &control).map(drop)),
        ),
        (
            "passages",
            PartialPassages::of(&snapshot, &passages, &control).unwrap().to_arrow(schema).unwrap(),
            &[],
            Box::new(|batch| PartialPassages::from_arrow(batch, schema).map(drop)),
        ),
        (
            "near",
            near.to_arrow().unwrap(),
            &of_events,
            Box::new(|batch| PartialNear::from_arrow(batch, schema).map(drop)),
        ),
        (
            "rows",
            rows(&Order::Natural),
            &of_events,
            Box::new(|batch| PartialRows::from_arrow(batch, &Order::Natural, schema).map(drop)),
        ),
        (
            "rows by distance",
            rows(&by_distance),
            &of_events,
            Box::new(|batch| PartialRows::from_arrow(batch, &by_distance, schema).map(drop)),
        ),
    ];
    for (what, batch, nullable, read) in &all {
        assert!(batch.num_rows() > 0 && read(batch).is_ok(), "{what}");
        for field in batch.schema().fields() {
            let nulls = new_null_array(field.data_type(), batch.num_rows());
            let refused = is_malformed(read(&with_column(batch, field.name(), nulls)));
            assert_eq!(refused, !nullable.contains(&field.name().as_str()), "{} of {what}", field.name());
        }
    }
}

#[test]
fn tags_that_no_table_has_are_refused() {
    let world = world();
    let batch = tile(&world);
    let with = |tags: &[u32]| {
        let mut lists = ListBuilder::new(UInt32Builder::new());
        for _ in 0..batch.num_rows() {
            lists.values().append_slice(tags);
            lists.append(true);
        }
        PartialTile::from_arrow(&with_column(&batch, "tags", Arc::new(lists.finish())))
    };
    // Two names, and 23 values: the ids, and the three values of `n`.
    for good in [&[][..], &[0, 0], &[1, 22], &[0, 1, 1, 2]] {
        assert!(with(good).is_ok(), "{good:?}");
    }
    for bad in [&[0][..], &[0, 23], &[2, 0], &[0, 0, 0], &[0, 0, 2, 0], &[u32::MAX, u32::MAX]] {
        assert!(is_malformed(with(bad)), "{bad:?}");
    }
}

#[test]
fn groups_of_values_or_windows_of_another_question_are_refused() {
    let world = world();
    let read = |asked: &Aggregate, read: &Aggregate| {
        PartialGroups::from_arrow(&groups(&world, asked), read, &world.schema, &world.control()).map(drop)
    };
    let (int, text, flag) = (2, 4, 5);
    for asked in [int, text, flag] {
        for by in [int, text, flag] {
            let (asked, by) = (aggregate(&world, &[asked], None), aggregate(&world, &[by], None));
            assert_eq!(is_malformed(read(&asked, &by)), asked.by != by.by, "{:?} as {:?}", asked.by, by.by);
        }
    }
    let windows = [None, Some("PT1H"), Some("PT2H")].map(|window| aggregate(&world, &[], window));
    for (i, asked) in windows.iter().enumerate() {
        for (j, by) in windows.iter().enumerate() {
            // Without a window, all events are in the group that has none, which a query for windows has as well.
            assert_eq!(is_malformed(read(asked, by)), i != j && i != 0, "{i} as {j}");
        }
    }
}

#[test]
fn passages_of_another_type_order_or_span_are_refused() {
    let world = world();
    let (schema, predicate) = (&world.schema, Filter::All.predicate(&world));
    let passages = Passages { predicate, after: None, limit: 5 };
    let found = BTreeMap::from(["a", "b"].map(|object| (ByValue::Text(object.to_owned()), (2, 1, 3))));
    let objects = PartialPassages {
        found,
        ..PartialPassages::of(&world.collection.snapshot(), &passages, &world.control()).unwrap()
    };
    let batch = objects.to_arrow(schema).unwrap();
    let read = |name: &str, column: ArrayRef| PartialPassages::from_arrow(&with_column(&batch, name, column), schema);
    let texts = |texts: [&str; 2]| Arc::new(LargeStringArray::from(texts.to_vec())) as ArrayRef;
    let ints = |ints: [i64; 2]| Arc::new(Int64Array::from(ints.to_vec())) as ArrayRef;
    assert_eq!(read("object", texts(["a", "b"])).unwrap(), objects);
    for column in [texts(["b", "a"]), texts(["a", "a"]), ints([1, 2])] {
        assert!(is_malformed(read("object", column.clone())), "{column:?}");
    }
    assert!(is_malformed(read("count", Arc::new(UInt64Array::from(vec![2, 0])))));
    assert!(is_malformed(read("first", ints([1, 4]))) && read("first", ints([1, 3])).is_ok());
    let of_timeless = ints([1, i64::MAX]);
    assert!(is_malformed(read("first", of_timeless.clone())), "a last event without a first");
    let lasting = with_column(&batch, "last", ints([3, i64::MIN]));
    assert!(PartialPassages::from_arrow(&with_column(&lasting, "first", of_timeless), schema).is_ok());
    // Objects that are numbers, even where there are none.
    let of_numbers = Schema { object: Some(2), ..schema.as_ref().clone() };
    assert!(
        is_malformed(PartialPassages::from_arrow(&batch, &of_numbers)) && is_malformed(objects.to_arrow(&of_numbers))
    );
    let none = PartialPassages { found: BTreeMap::new(), ..objects };
    assert_eq!(PartialPassages::from_arrow(&none.to_arrow(&of_numbers).unwrap(), &of_numbers).unwrap(), none);
    assert!(is_malformed(PartialPassages::from_arrow(&none.to_arrow(schema).unwrap(), &of_numbers)));
}
