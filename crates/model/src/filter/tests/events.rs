//! Events and schemas to test with.

use crate::builder::Value;
use crate::schema::{Field, FieldType, GeometryType, IdRole, Schema, TimeRole};
use crate::{Batch, BatchBuilder};
use geo_types::{Coord, Geometry, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use proptest::prelude::*;
use std::sync::Arc;

/// Microseconds per day, and the day around which test times lie: 2026-01-01.
pub const DAY: i64 = 86_400_000_000;
pub const NEW_YEAR: i64 = 1_767_225_600_000_000;

/// An event as plain values; missing values are null.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: String,
    pub geometry: Option<Geometry<f64>>,
    pub name: Option<String>,
    pub n: Option<i64>,
    pub x: Option<f64>,
    pub flag: Option<bool>,
    pub flag2: Option<bool>,
    pub from: Option<i64>,
    pub to: Option<i64>,
    pub seen: Option<i64>,
    pub tags: Option<Vec<String>>,
}

/// The parts of a test schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Points and one instant, `seen`.
    Points,
    /// Any geometry, and an interval `from` to `to`.
    Shapes,
    /// Neither geometry nor time.
    Bare,
}

pub fn schema(kind: Kind) -> Arc<Schema> {
    let field = |name: &str, kind: FieldType, required: bool| Field { name: name.into(), kind, required, title: None };
    let fields = vec![
        field("name", FieldType::Text, false),
        field("n", FieldType::Int, false),
        field("x", FieldType::Float, false),
        field("flag", FieldType::Bool, false),
        field("flag2", FieldType::Bool, false),
        field("from", FieldType::Time, false),
        field("to", FieldType::Time, false),
        field("seen", FieldType::Time, kind == Kind::Points),
        field("tags", FieldType::TextList, false),
    ];
    let schema = Schema {
        fields,
        geometry: match kind {
            Kind::Points => Some(GeometryType::Point),
            Kind::Shapes => Some(GeometryType::Any),
            Kind::Bare => None,
        },
        time: match kind {
            Kind::Points => TimeRole::Instant(7),
            Kind::Shapes => TimeRole::Interval { start: 5, end: 6 },
            Kind::Bare => TimeRole::None,
        },
        id: IdRole::Given,
        ..Schema::default()
    };
    schema.validate().unwrap();
    Arc::new(schema)
}

pub fn batch(kind: Kind, events: &[Event]) -> Batch {
    let mut builder = BatchBuilder::new(schema(kind));
    for event in events {
        builder.set_id(event.id.clone()).unwrap();
        if let Some(geometry) = &event.geometry {
            builder.set_geometry(geometry).unwrap();
        }
        let time = |t: Option<i64>| t.map_or(Value::Null, Value::Time);
        let values = [
            event.name.clone().map_or(Value::Null, Value::Text),
            event.n.map_or(Value::Null, Value::Int),
            event.x.map_or(Value::Null, Value::Float),
            event.flag.map_or(Value::Null, Value::Bool),
            event.flag2.map_or(Value::Null, Value::Bool),
            time(event.from),
            time(event.to),
            time(event.seen),
            event.tags.clone().map_or(Value::Null, Value::TextList),
        ];
        for (i, value) in values.into_iter().enumerate() {
            builder.set(i, value).unwrap();
        }
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

/// An event with only what the schema requires.
pub fn plain(id: &str) -> Event {
    Event {
        id: id.into(),
        geometry: None,
        name: None,
        n: None,
        x: None,
        flag: None,
        flag2: None,
        from: None,
        to: None,
        seen: Some(NEW_YEAR),
        tags: None,
    }
}

/// Texts with quotes, wildcards, escapes, cased letters and multi-byte letters.
pub fn text() -> impl Strategy<Value = String> {
    "[aAbBéß'%_\\\\日 ]{0,4}"
}

/// Integers around the limit of exact floats.
pub fn int() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -3i64..4, 1 => (1i64 << 53) - 1..(1 << 53) + 3, 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
}

pub fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-6i32..7).prop_map(|h| f64::from(h) * 0.5),
        1 => Just(9_007_199_254_740_992.0),
        1 => Just(9_223_372_036_854_775_808.0),
        1 => Just(-0.0),
        1 => Just(1e300)
    ]
}

/// Instants at and next to the bounds of a few days.
pub fn time() -> impl Strategy<Value = i64> {
    (-2i64..4, prop_oneof![Just(0), Just(-1), Just(DAY / 2)]).prop_map(|(day, past)| NEW_YEAR + day * DAY + past)
}

/// Positions on a coarse grid, so that shapes often touch.
pub fn position() -> impl Strategy<Value = Coord<f64>> {
    (0i32..9, 0i32..9).prop_map(|(x, y)| Coord { x: f64::from(x) * 0.5, y: f64::from(y) * 0.5 })
}

fn polygon() -> impl Strategy<Value = Polygon<f64>> {
    let triangle = (position(), position(), position())
        .prop_filter("a triangle has an area", |(a, b, c)| {
            ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)).abs() > 1e-9
        })
        .prop_map(|(a, b, c)| Polygon::new(LineString(vec![a, b, c, a]), vec![]));
    let box_at = |low: Coord<f64>, w: f64, h: f64| {
        LineString(vec![
            low,
            Coord { x: low.x + w, y: low.y },
            Coord { x: low.x + w, y: low.y + h },
            Coord { x: low.x, y: low.y + h },
            low,
        ])
    };
    let rectangle = (position(), 1i32..5, 1i32..5)
        .prop_map(move |(low, w, h)| Polygon::new(box_at(low, f64::from(w) * 0.5, f64::from(h) * 0.5), vec![]));
    let with_hole = (position(), 3i32..6).prop_map(move |(low, size)| {
        let size = f64::from(size) * 0.5;
        let hole = box_at(Coord { x: low.x + 0.5, y: low.y + 0.5 }, size - 1.0, size - 1.0);
        Polygon::new(box_at(low, size, size), vec![hole])
    });
    prop_oneof![triangle, rectangle, with_hole]
}

fn line() -> impl Strategy<Value = LineString<f64>> {
    prop::collection::vec(position(), 2..5)
        .prop_filter("a line has a length", |l| l.windows(2).all(|s| s[0] != s[1]))
        .prop_map(LineString)
}

pub fn point() -> impl Strategy<Value = Geometry<f64>> {
    position().prop_map(|p| Geometry::Point(Point(p)))
}

/// Adjacent polygons that do not overlap.
fn polygons() -> impl Strategy<Value = MultiPolygon<f64>> {
    (polygon(), polygon()).prop_map(|(a, b)| {
        use geo::Translate;
        MultiPolygon(vec![a, b.translate(20.0, 0.0)])
    })
}

pub fn geometry() -> impl Strategy<Value = Geometry<f64>> {
    prop_oneof![
        2 => point(),
        2 => line().prop_map(Geometry::LineString),
        4 => polygon().prop_map(Geometry::Polygon),
        1 => prop::collection::vec(position().prop_map(Point), 1..4).prop_map(|p| Geometry::MultiPoint(MultiPoint(p))),
        1 => prop::collection::vec(line(), 1..3).prop_map(|l| Geometry::MultiLineString(MultiLineString(l))),
        1 => polygons().prop_map(Geometry::MultiPolygon),
    ]
}

pub fn event(kind: Kind) -> impl Strategy<Value = Event> {
    let place = match kind {
        Kind::Points => prop::option::weighted(0.8, point().boxed()).boxed(),
        Kind::Shapes => prop::option::weighted(0.8, geometry().boxed()).boxed(),
        Kind::Bare => Just(None).boxed(),
    };
    let maybe = |t| prop::option::weighted(0.8, t);
    (
        "[ab]{1,2}",
        place,
        (prop::option::of(text()), prop::option::weighted(0.8, int()), prop::option::weighted(0.8, float())),
        (any::<Option<bool>>(), any::<Option<bool>>()),
        (maybe(time().boxed()), maybe(time().boxed()), time()),
        prop::option::weighted(0.8, prop::collection::vec("[abc]", 0..4)),
    )
        .prop_map(move |(id, geometry, (name, n, x), (flag, flag2), (from, to, seen), tags)| {
            let (from, to) = match (from, to) {
                (Some(a), Some(b)) if kind == Kind::Shapes => (Some(a.min(b)), Some(a.max(b))),
                ends => ends,
            };
            Event { id, geometry, name, n, x, flag, flag2, from, to, seen: Some(seen), tags }
        })
}
