//! Random collections, and the results of scans over them.

use geo_types::{Coord, LineString};
use meridian_index::{Forest, ForestBuilder, Grid, Key, Node, Number, Summary, Tree, sort_order};
use meridian_model::builder::Value;
use meridian_model::filter::{Region, Relation};
use meridian_model::{Batch, BatchBuilder, Bounds, Field, FieldColumn, FieldType, GeometryType, Schema, TimeRole};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Numeric ordinals of the schemas here.
pub const COUNT: usize = 0;
pub const LEVEL: usize = 1;
/// Fields of the schemas here.
const FIELD_START: usize = 0;
const FIELD_END: usize = 1;
const FIELD_COUNT: usize = 2;
pub const FIELD_LEVEL: usize = 4;

const DAY: i64 = 86_400_000_000;

/// The kind of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub geometry: Option<GeometryType>,
    pub time: Clock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    None,
    Instant,
    Interval,
}

/// One event before it becomes a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// West, south, east, north; `None` is nowhere.
    pub place: Option<[f64; 4]>,
    /// First instant and duration; `None` is open.
    pub start: Option<i64>,
    pub duration: Option<i64>,
    pub count: Option<i64>,
    pub level: Option<f64>,
}

pub fn schema(kind: Kind) -> Arc<Schema> {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Arc::new(Schema {
        fields: vec![
            field("start", FieldType::Time, kind.time == Clock::Instant),
            field("end", FieldType::Time, false),
            field("count", FieldType::Int, false),
            field("note", FieldType::Text, false),
            field("level", FieldType::Float, false),
        ],
        geometry: kind.geometry,
        time: match kind.time {
            Clock::None => TimeRole::None,
            Clock::Instant => TimeRole::Instant(FIELD_START),
            Clock::Interval => TimeRole::Interval { start: FIELD_START, end: FIELD_END },
        },
        ..Schema::default()
    })
}

/// The events as a batch, in the order given.
pub fn batch(kind: Kind, events: &[Event]) -> Batch {
    let mut builder = BatchBuilder::new(schema(kind));
    for event in events {
        match (kind.geometry, event.place) {
            (None, _) | (_, None) => {}
            (Some(GeometryType::Point), Some([west, south, _, _])) => builder.set_point(west, south).unwrap(),
            (Some(_), Some([west, south, east, north])) => {
                // Most lines are short, some are long; all go straight through their box.
                let edges = event.count.filter(|n| n.rem_euclid(8) == 7).map_or(1, |n| 1 + n.unsigned_abs() % 50);
                let at = |low: f64, high: f64, i: u64| match i {
                    0 => low,
                    i if i == edges => high,
                    i => (low + (high - low) * (i as f64 / edges as f64)).clamp(low, high),
                };
                let line: LineString<f64> =
                    (0..=edges).map(|i| Coord { x: at(west, east, i), y: at(south, north, i) }).collect();
                builder.set_geometry(&line.into()).unwrap();
            }
        }
        let start = match kind.time {
            Clock::Instant => Some(event.start.unwrap_or(0)),
            _ => event.start,
        };
        let end = event.duration.map(|d| event.start.unwrap_or(0) + d);
        for (field, value) in [(FIELD_START, start), (FIELD_END, end)] {
            builder.set(field, value.map_or(Value::Null, Value::Time)).unwrap();
        }
        builder.set(FIELD_COUNT, event.count.map_or(Value::Null, Value::Int)).unwrap();
        builder.set(FIELD_LEVEL, event.level.map_or(Value::Null, Value::Float)).unwrap();
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

/// The events in the order of their collection, with their keys.
pub fn sorted(kind: Kind, events: &[Event]) -> (Batch, Vec<Key>) {
    let batch = batch(kind, events);
    let keys = Grid::of(batch.schema()).keys(&batch);
    let order = sort_order(&keys, &(0..events.len() as u64).collect::<Vec<_>>());
    (batch.take(&order), order.iter().map(|&row| keys[row as usize]).collect())
}

/// Builds from slices that end at `cuts`.
pub fn build(batch: &Batch, keys: &[Key], cuts: &[usize]) -> Forest {
    let mut builder = ForestBuilder::new(batch.schema());
    for rows in pieces(batch.rows(), cuts) {
        builder.push(&batch.slice(rows.start, rows.len()), &keys[rows]).unwrap();
    }
    assert_eq!(builder.rows() as usize, batch.rows());
    builder.finish()
}

/// `0..rows` cut at `cuts`, which may repeat and exceed the range.
pub fn pieces(rows: usize, cuts: &[usize]) -> Vec<Range<usize>> {
    let mut ends: Vec<usize> = cuts.iter().map(|&cut| cut.min(rows)).chain([0, rows]).collect();
    ends.sort_unstable();
    ends.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// A query about place, time and a number, each optional.
#[derive(Debug, Clone)]
pub struct Question {
    pub place: Option<[f64; 4]>,
    pub time: Option<(i64, i64)>,
    pub level: Option<(f64, f64)>,
}

impl Question {
    pub fn matches(&self, batch: &Batch, row: usize) -> bool {
        let bounds = batch.bounds(row);
        self.place.is_none_or(|place| !bounds.is_nowhere() && boxed(place).touches_in_space(&bounds))
            && self.time.is_none_or(|time| timed(time).touches_in_time(&bounds))
            && self.level.is_none_or(|(min, max)| match number(batch, row, LEVEL) {
                Some(Number::Float(x)) => min <= x && x <= max,
                _ => false,
            })
    }

    pub fn relation(&self, region: &dyn Region) -> Relation {
        let bounds = region.bounds();
        let place = self.place.map_or(Relation::All, |place| {
            three_valued(
                boxed(place).touches_in_space(&bounds),
                boxed(place).holds_in_space(&bounds) && !region.some_nowhere(),
            )
        });
        let time = self.time.map_or(Relation::All, |time| {
            three_valued(timed(time).touches_in_time(&bounds), timed(time).holds_in_time(&bounds))
        });
        let level = self.level.map_or(Relation::All, |(min, max)| match region.field_range(FIELD_LEVEL) {
            None => Relation::Some,
            Some(range) => {
                three_valued(min <= range.max && range.min <= max, min <= range.min && range.max <= max && !range.nulls)
            }
        });
        let all = [place, time, level];
        if all.contains(&Relation::None) {
            Relation::None
        } else if all.contains(&Relation::Some) {
            Relation::Some
        } else {
            Relation::All
        }
    }
}

fn three_valued(touches: bool, holds: bool) -> Relation {
    match (touches, holds) {
        (false, _) => Relation::None,
        (true, false) => Relation::Some,
        (true, true) => Relation::All,
    }
}

fn boxed([west, south, east, north]: [f64; 4]) -> Bounds {
    Bounds { west, south, east, north, ..Bounds::WORLD }
}

fn timed((start, end): (i64, i64)) -> Bounds {
    Bounds { start, end, ..Bounds::WORLD }
}

/// A numeric value of a row, by numeric ordinal.
pub fn number(batch: &Batch, row: usize, ordinal: usize) -> Option<Number> {
    use meridian_model::FieldColumn::{Float, Int};
    let column = batch.field(batch.schema().numeric_fields()[ordinal])?;
    if !valid(column, row) {
        return None;
    }
    match column {
        Int(values) => Some(Number::Int(values.value(row))),
        Float(values) => Some(Number::Float(values.value(row))),
        _ => None,
    }
}

fn valid(column: FieldColumn<'_>, row: usize) -> bool {
    let nulls = match column {
        FieldColumn::Int(values) => values.nulls_of(),
        FieldColumn::Float(values) => values.nulls_of(),
        _ => None,
    };
    nulls.is_none_or(|nulls| nulls.is_valid(row))
}

/// `Array::nulls` without importing the trait at each use.
trait Nulls {
    fn nulls_of(&self) -> Option<&arrow_buffer::NullBuffer>;
}

impl<T: arrow_array::Array> Nulls for T {
    fn nulls_of(&self) -> Option<&arrow_buffer::NullBuffer> {
        self.nulls()
    }
}

/// The result of a scan of these rows, with the sum of magnitudes of floats.
pub fn scan(batch: &Batch, rows: impl Iterator<Item = usize>, ordinal: usize) -> (Summary, f64) {
    let mut summary = if ordinal == COUNT { Summary::INT } else { Summary::FLOAT };
    let mut magnitudes = 0.0;
    for value in rows.filter_map(|row| number(batch, row, ordinal)) {
        summary.add(value);
        magnitudes += value.to_f64().abs();
    }
    (summary, magnitudes)
}

/// Checks that two summaries agree within Meridian's guarantee.
pub fn check_summary(found: &Summary, expected: &(Summary, f64)) -> Result<(), TestCaseError> {
    let (expected, magnitudes) = expected;
    prop_assert_eq!(found.count, expected.count);
    prop_assert_eq!(found.min, expected.min);
    prop_assert_eq!(found.max, expected.max);
    match (found.sum, expected.sum) {
        (meridian_index::Sum::Int(found), meridian_index::Sum::Int(expected)) => prop_assert_eq!(found, expected),
        (found, expected) => {
            let error = (found.to_f64() - expected.to_f64()).abs();
            prop_assert!(error <= 1e-12 * magnitudes, "{:?} {:?} {}", found, expected, magnitudes);
        }
    }
    Ok(())
}

/// Calls `check` with every node of a tree, the root first.
pub fn each_node(
    tree: &Tree,
    check: &mut dyn FnMut(Node) -> Result<(), TestCaseError>,
) -> Result<usize, TestCaseError> {
    let mut stack: Vec<Node> = tree.root().into_iter().collect();
    let mut nodes = 0;
    while let Some(node) = stack.pop() {
        nodes += 1;
        check(node)?;
        stack.extend(tree.children(node));
    }
    Ok(nodes)
}

/// Any kind of collection.
pub fn kinds() -> impl Strategy<Value = Kind> {
    let geometry = prop_oneof![
        4 => Just(Some(GeometryType::Point)),
        4 => Just(Some(GeometryType::Line)),
        1 => Just(None),
    ];
    let time = prop_oneof![3 => Just(Clock::Instant), 3 => Just(Clock::Interval), 1 => Just(Clock::None)];
    (geometry, time).prop_map(|(geometry, time)| Kind { geometry, time })
}

/// A coordinate within `±limit`: anywhere, in a cluster, on few values, or at an edge.
fn coordinate(limit: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => -limit..=limit,
        3 => 10.0..10.5f64,
        2 => (-6..=6i32).prop_map(move |step| f64::from(step) * limit / 6.0),
        1 => Just(0.0),
    ]
}

/// West, south, east and north: points, boxes small and huge, the whole world.
fn place() -> impl Strategy<Value = [f64; 4]> {
    let extent = prop_oneof![3 => Just(0.0), 3 => 0.0..0.1f64, 1 => 0.0..10.0f64, 1 => 0.0..360.0f64];
    let extents = (extent.clone(), extent);
    let boxes = (coordinate(180.0), coordinate(90.0), extents).prop_map(|(west, south, (width, height))| {
        [west, south, (west + width).min(180.0), (south + height).min(90.0)]
    });
    prop_oneof![
        20 => boxes,
        1 => Just([-180.0, -90.0, 180.0, 90.0]),
    ]
}

/// An instant: within a month, on few values, or in any year.
pub fn instant() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..30 * DAY,
        2 => (-5..5i64).prop_map(|week| week * 7 * DAY),
        1 => -62_135_596_800_000_000..=253_402_207_200_000_000i64,
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let duration = prop_oneof![
        3 => Just(Some(0)),
        3 => (0..DAY).prop_map(Some),
        1 => (0..1000 * DAY).prop_map(Some),
        1 => Just(None),
    ];
    let start = prop_oneof![9 => instant().prop_map(Some), 1 => Just(None)];
    let count = prop_oneof![
        4 => (-100..100i64).prop_map(Some),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()].prop_map(Some),
        1 => Just(None),
    ];
    let level = prop_oneof![
        4 => (-100.0..100.0f64).prop_map(Some),
        1 => prop_oneof![Just(1e300), Just(-1e300), Just(1e-300), Just(-0.0)].prop_map(Some),
        2 => Just(None),
    ];
    let place = prop_oneof![12 => place().prop_map(Some), 1 => Just(None)];
    // An interval must not end beyond what the model accepts.
    (place, start, duration, count, level).prop_map(|(place, start, duration, count, level)| {
        let last = 253_402_207_200_000_000 - start.unwrap_or(0);
        Event { place, start, duration: duration.map(|d| d.min(last)), count, level }
    })
}

/// Some events: none, one, about a leaf's or a node's capacity, thousands; sometimes all alike.
pub fn events() -> impl Strategy<Value = Vec<Event>> {
    let size = prop_oneof![
        6 => 0..70usize,
        1 => Just(64usize),
        1 => Just(65usize),
        1 => Just(1024usize),
        1 => Just(1025usize),
        1 => 1000..2500usize,
    ];
    let mixed = size.clone().prop_flat_map(|size| prop::collection::vec(event(), size));
    let alike = (event(), size).prop_map(|(event, size)| vec![event; size]);
    prop_oneof![9 => mixed, 1 => alike]
}

/// Queries: anywhere and at any time, degenerate, at the edges, all of the world, or none of it.
pub fn questions() -> impl Strategy<Value = Vec<Question>> {
    let time = (instant(), prop_oneof![Just(0), 0..40 * DAY, Just(i64::MAX)], any::<bool>()).prop_map(
        |(start, duration, open)| match open && duration == i64::MAX {
            true => (i64::MIN, start),
            false => (start, start.saturating_add(duration)),
        },
    );
    let level = (-120.0..120.0f64, 0.0..150.0f64).prop_map(|(min, width)| (min, min + width));
    let edges = prop_oneof![
        Just([-180.0, -90.0, -180.0, 90.0]),
        Just([180.0, -90.0, 180.0, 90.0]),
        Just([-180.0, 90.0, 180.0, 90.0]),
        Just([-180.0, -90.0, 180.0, -90.0]),
    ];
    let question = (
        prop::option::weighted(0.8, prop_oneof![9 => place(), 1 => edges]),
        prop::option::weighted(0.5, time),
        prop::option::weighted(0.3, level),
    );
    prop::collection::vec(question.prop_map(|(place, time, level)| Question { place, time, level }), 1..6)
}
