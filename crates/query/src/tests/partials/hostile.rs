//! Record batches that no partition wrote are rejected, or read as far as they make sense; nothing panics.

use super::super::oracle::{all_functions, by_fields, functions};
use super::super::world::*;
use super::{Partitions, given_kinds, steps};
use crate::aggregate::Aggregate;
use crate::items::{Items, Order};
use crate::partial::*;
use crate::passages::Passages;
use crate::sort::{SortKey, SortTarget};
use crate::track::Track;
use crate::windows::Windows;
use crate::wire::WireError;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, RecordBatch, RecordBatchOptions,
    UInt64Array, new_null_array,
};
use arrow_schema::{Field, Schema};
use meridian_model::Projection;
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::Arc;

/// A mutation of a batch.
#[derive(Debug, Clone)]
enum Harm {
    Drop(Index),
    Nulls(Index),
    Ints(Index, i64),
    Counts(Index, u64),
    Floats(Index, f64),
    Flags(Index),
    Texts(Index),
    Swap(Index, Index),
    Says(Index, String),
    Cut(Index),
}

fn harms() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Harm::Drop),
        at().prop_map(Harm::Nulls),
        (at(), prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()]).prop_map(|(i, n)| Harm::Ints(i, n)),
        (at(), prop_oneof![Just(u64::MAX), Just(0), any::<u64>()]).prop_map(|(i, n)| Harm::Counts(i, n)),
        (at(), prop_oneof![Just(f64::NAN), Just(f64::INFINITY), any::<f64>()]).prop_map(|(i, x)| Harm::Floats(i, x)),
        at().prop_map(Harm::Flags),
        at().prop_map(Harm::Texts),
        (at(), at()).prop_map(|(i, j)| Harm::Swap(i, j)),
        (at(), "\\PC{0,12}|[0-9]{1,25}").prop_map(|(i, text)| Harm::Says(i, text)),
        at().prop_map(Harm::Cut),
    ]
}

fn harmed(batch: &RecordBatch, harm: &Harm) -> RecordBatch {
    let (mut columns, mut metadata) = (batch.columns().to_vec(), batch.schema().metadata().clone());
    let mut names: Vec<String> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
    let mut rows = batch.num_rows();
    let mut put = |at: &Index, column: &dyn Fn(&ArrayRef) -> ArrayRef| {
        if !columns.is_empty() {
            let at = at.index(columns.len());
            columns[at] = column(&columns[at]);
        }
    };
    match harm {
        Harm::Nulls(at) => put(at, &|column| new_null_array(column.data_type(), column.len())),
        Harm::Ints(at, n) => put(at, &|column| Arc::new(Int64Array::from(vec![*n; column.len()]))),
        Harm::Counts(at, n) => put(at, &|column| Arc::new(UInt64Array::from(vec![*n; column.len()]))),
        Harm::Floats(at, x) => put(at, &|column| Arc::new(Float64Array::from(vec![*x; column.len()]))),
        Harm::Flags(at) => put(at, &|column| Arc::new(BooleanArray::from(vec![true; column.len()]))),
        Harm::Texts(at) => put(at, &|column| Arc::new(LargeStringArray::from(vec!["x"; column.len()]))),
        Harm::Drop(at) if !columns.is_empty() => {
            let at = at.index(columns.len());
            columns.remove(at);
            names.remove(at);
        }
        Harm::Swap(a, b) if !columns.is_empty() => columns.swap(a.index(names.len()), b.index(names.len())),
        Harm::Says(at, text) => {
            let mut keys: Vec<String> = metadata.keys().cloned().collect();
            keys.sort();
            metadata.insert(keys[at.index(keys.len())].clone(), text.clone());
        }
        Harm::Cut(at) => {
            rows = at.index(rows + 1);
            columns.iter_mut().for_each(|column| *column = column.slice(0, rows));
        }
        Harm::Drop(_) | Harm::Swap(..) => {}
    }
    let fields: Vec<Field> =
        names.iter().zip(&columns).map(|(name, column)| Field::new(name, column.data_type().clone(), true)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new_with_metadata(fields, metadata)), columns, &options).unwrap()
}

/// Changes the version of a batch.
fn of_version(batch: &RecordBatch, version: &str) -> RecordBatch {
    let mut metadata = batch.schema().metadata().clone();
    metadata.insert("meridian.version".to_owned(), version.to_owned());
    let schema = Arc::new(Schema::new_with_metadata(batch.schema().fields().clone(), metadata));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn harmed_batches_never_panic(
        kind in given_kinds(),
        steps in steps(),
        (filter, window, by, functions) in (filters(), any::<bool>(), by_fields(), functions()),
        harms in prop::collection::vec(prop::collection::vec(harms(), 0..3), 8),
    ) {
        let all = Partitions::after(kind, 1, &steps);
        let world = &all.parts[0];
        let (snapshot, control, schema) = (world.collection.snapshot(), world.control(), &world.schema);
        let predicate = filter.predicate(world);
        let windows = (window && kind.times != Times::None).then(|| Windows::parse("P1D", "Europe/Berlin").unwrap());
        let question =
            Aggregate { predicate: predicate.clone(), functions, windows, by, empty: false };
        let groups = PartialGroups::of(&snapshot, &question, &control).unwrap().to_arrow(schema).unwrap();
        let grid = crate::Density { predicate: predicate.clone(), bbox: [-180.0, -90.0, 180.0, 90.0], width: 7, height: 5 };
        let grid = PartialGrid::of(&snapshot, &grid, &control).unwrap().to_arrow().unwrap();
        let count = PartialCount::of(&snapshot, &predicate, u64::MAX, &control).unwrap().to_arrow().unwrap();
        let keys = vec![
            SortKey { target: SortTarget::Field(4), descending: true },
            SortKey { target: SortTarget::Field(3), descending: false },
            SortKey { target: SortTarget::Field(5), descending: false },
            SortKey { target: SortTarget::Id, descending: false },
        ];
        let numeric = schema.numeric_fields();
        let average = window.then(|| numeric[question.by.len() % numeric.len()]);
        let tile = crate::Tile {
            predicate: predicate.clone(), z: 0, row: 0, column: 0, layer: "a".to_owned(), fields: None, density: window, average,
        };
        let tiles = PartialTile::of(&snapshot, &tile, &control).unwrap().to_arrow().unwrap();
        let orders = [Order::Natural, Order::Near { lon: 1.0, lat: 2.0, k: None }, Order::Fields(keys)];
        for harms in harms {
            let hurt = |batch: &RecordBatch| harms.iter().fold(batch.clone(), |batch, harm| harmed(&batch, harm));
            // Whatever decodes may be merged with itself and finished.
            let read = || PartialGroups::from_arrow(&hurt(&groups), &question, schema, &control);
            if let (Ok(mut one), Ok(other)) = (read(), read()) {
                one.merge(other).unwrap();
                let _ = one.finish(&question, &control);
            }
            if let Ok(mut one) = PartialGrid::from_arrow(&hurt(&grid), 35) {
                one.merge(&one.clone()).unwrap();
            }
            if let Ok(mut one) = PartialCount::from_arrow(&hurt(&count)) {
                let same = one;
                one.merge(&same);
            }
            let read = || PartialTile::from_arrow(&hurt(&tiles));
            if let (Ok(one), Ok(other)) = (read(), read())
                && let Ok(Some(merged)) = PartialTile::merge(vec![one, other], &tile)
            {
                let _ = merged.finish(&tile);
            }
            for order in &orders {
                let items = Items { predicate: predicate.clone(), order: order.clone(), limit: Some(50), ..Items::all(schema) };
                for rows in PartRows::of(&snapshot, &items, &control).unwrap() {
                    if let Ok(rows) = PartialRows::from_arrow(&hurt(&rows.unwrap().to_arrow(order).unwrap()), order, schema) {
                        prop_assert_eq!(rows.batch.rows(), rows.cursors.len());
                        (0..rows.cursors.len()).for_each(|row| drop((rows.batch.bounds(row), rows.batch.geometry(row))));
                    }
                }
            }
            if kind.times != Times::None {
                let passages = Passages { predicate: predicate.clone(), after: None, limit: 5 };
                let objects = PartialPassages::of(&snapshot, &passages, &control).unwrap();
                if let Ok(mut one) = PartialPassages::from_arrow(&hurt(&objects.to_arrow(schema).unwrap()), schema) {
                    one.merge(objects);
                    let _ = one.finish(&passages);
                }
                if kind.places != Places::None {
                    let question = Track { object: "a".to_owned(), predicate: predicate.clone(), simplify_m: Some(5.0) };
                    let track = PartialTrack::of(&snapshot, &question, &control).unwrap();
                    if let Ok(mut one) = PartialTrack::from_arrow(&hurt(&track.to_arrow().unwrap()), &control) {
                        one.merge(track).unwrap();
                        let _ = one.finish(&question, &control);
                    }
                }
            }
        }
    }
}

#[test]
fn another_version_and_another_kind_are_refused() {
    let world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: false });
    let (snapshot, control, schema) = (world.collection.snapshot(), world.control(), &world.schema);
    let predicate = Filter::All.predicate(&world);
    let question = Aggregate {
        predicate: predicate.clone(),
        functions: all_functions(),
        windows: None,
        by: Vec::new(),
        empty: false,
    };
    let track = Track { object: "a".to_owned(), predicate: predicate.clone(), simplify_m: None };
    let passages = Passages { predicate: predicate.clone(), after: None, limit: 5 };
    let grid = PartialGrid { counts: vec![1], stats: Default::default() };
    let rows = PartialRows { batch: meridian_model::Batch::empty(schema.clone()), cursors: Vec::new() };
    let columns = Projection::all(&snapshot.layout);
    let near = PartialNear::of(&snapshot, crate::near::Circle::new(0.0, 0.0, 1.0), 1, &columns).unwrap();
    let batches = [
        PartialGroups::of(&snapshot, &question, &control).unwrap().to_arrow(schema).unwrap(),
        grid.to_arrow().unwrap(),
        PartialCount::of(&snapshot, &predicate, 9, &control).unwrap().to_arrow().unwrap(),
        PartialTrack::of(&snapshot, &track, &control).unwrap().to_arrow().unwrap(),
        PartialPassages::of(&snapshot, &passages, &control).unwrap().to_arrow(schema).unwrap(),
        rows.to_arrow(&Order::Natural).unwrap(),
        RowsSummary::default().to_arrow().unwrap(),
        near.to_arrow().unwrap(),
    ];
    type Read<'a> = Box<dyn Fn(&RecordBatch) -> Result<(), WireError> + 'a>;
    let reads: [Read<'_>; 8] = [
        Box::new(|batch| PartialGroups::from_arrow(batch, &question, schema, &control).map(drop)),
        Box::new(|batch| PartialGrid::from_arrow(batch, 1).map(drop)),
        Box::new(|batch| PartialCount::from_arrow(batch).map(drop)),
        Box::new(|batch| PartialTrack::from_arrow(batch, &control).map(drop)),
        Box::new(|batch| PartialPassages::from_arrow(batch, schema).map(drop)),
        Box::new(|batch| PartialRows::from_arrow(batch, &Order::Natural, schema).map(drop)),
        Box::new(|batch| RowsSummary::from_arrow(batch).map(drop)),
        Box::new(|batch| PartialNear::from_arrow(batch, schema).map(drop)),
    ];
    for (i, read) in reads.iter().enumerate() {
        for (j, batch) in batches.iter().enumerate() {
            assert_eq!(read(batch).is_ok(), i == j, "{i} reads {j}");
            assert!(i == j || matches!(read(batch), Err(WireError::Version { .. })), "{i} reads {j}");
        }
        for version in ["2", "0", "", "one"] {
            let error = read(&of_version(&batches[i], version)).unwrap_err();
            assert!(
                matches!(error, WireError::Version { .. }) && error.to_string().contains("of version 1"),
                "{error}"
            );
        }
    }
}
