//! Random schemas and events, and their way through a writer and a reader.
// `quiet` uses only a part of this module, and a helper that fails is a test that fails.
#![allow(dead_code, clippy::unwrap_used)]

pub mod points;
pub mod shown;

use geo_types::{Coord, Geometry, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, reader, writer};
use meridian_model::builder::Value;
use meridian_model::civil::DAY_US;
use meridian_model::{Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Schema, Seq, TimeRole, time};
use proptest::prelude::*;
use std::io::Cursor;
use std::sync::Arc;

/// Formats that are written and read.
pub const BOTH_WAYS: [Format; 6] =
    [Format::GeoJson, Format::GeoJsonSeq, Format::NdJson, Format::Csv, Format::GeoParquet, Format::Arrow];

/// An event of a schema.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: String,
    pub geometry: Option<Geometry<f64>>,
    pub values: Vec<Value>,
}

pub fn build(schema: &Arc<Schema>, events: &[Event]) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    for event in events {
        if schema.id == IdRole::Given {
            builder.set_id(event.id.clone()).unwrap();
        }
        if let Some(shape) = &event.geometry {
            builder.set_geometry(shape).unwrap();
        }
        for (i, value) in event.values.iter().enumerate() {
            builder.set(i, value.clone()).unwrap();
        }
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

pub fn write(format: Format, batches: &[Batch], schema: &Arc<Schema>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = writer(format, schema, None).unwrap();
    writer.start(&mut out).unwrap();
    for batch in batches {
        let seqs: Vec<Seq> = (0..batch.rows()).map(|i| Seq::new(1, i)).collect();
        writer.write(batch, &seqs, &mut out).unwrap();
    }
    writer.finish(&mut out).unwrap();
    out
}

pub fn read_all(
    format: Format,
    bytes: Vec<u8>,
    schema: &Arc<Schema>,
    options: &ReadOptions,
    limits: &BatchLimits,
) -> Result<Batch, ReadError> {
    let mut events = reader(format, Box::new(Cursor::new(bytes)), schema.clone(), options)?;
    let mut batches = vec![Batch::empty(schema.clone())];
    while let Some(batch) = events.next_batch(limits)? {
        assert!(batch.rows() > 0 && batch.rows() <= limits.rows.max(1));
        batches.push(batch);
    }
    Ok(Batch::concat(&batches).unwrap())
}

/// Names that real fields have, including those to which readers give a meaning.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        "[A-Za-z0-9 ,;\"'é_@.-]{1,12}",
        prop::sample::select(vec!["id", "lon", "lat", "x", "y", "time", "geometry", "bbox", "type", "features", "wkt"])
            .prop_map(str::to_owned),
    ]
}

fn kind() -> impl Strategy<Value = FieldType> {
    prop::sample::select(vec![
        FieldType::Text,
        FieldType::Int,
        FieldType::Float,
        FieldType::Bool,
        FieldType::Time,
        FieldType::Date,
        FieldType::TextList,
    ])
}

fn geometry_type() -> impl Strategy<Value = GeometryType> {
    use GeometryType::*;
    prop::sample::select(vec![Point, Point, Line, Polygon, MultiPoint, MultiLine, MultiPolygon, Any])
}

/// A valid schema.
pub fn schema() -> impl Strategy<Value = Arc<Schema>> {
    let fields = prop::collection::vec((name(), kind(), any::<bool>()), 0..7);
    (fields, prop::option::of(geometry_type()), any::<bool>(), 0..3u8, any::<bool>()).prop_map(
        |(fields, geometry, given, time, other_id_name)| {
            let mut schema = Schema { geometry, ..Schema::default() };
            for (name, kind, required) in fields {
                let taken = schema.field_index(&name).is_some() || (geometry.is_some() && name == "geometry");
                // A given id and a field of its name cannot both be in a file of named columns.
                let taken = taken || (given && matches!(name.as_str(), "id" | "key"));
                if !taken {
                    schema.fields.push(Field { name, kind, required, title: None });
                }
            }
            let kind_of = |i: usize| schema.fields[i].kind;
            let times: Vec<usize> = (0..schema.fields.len()).filter(|&i| kind_of(i).is_time()).collect();
            let alike = times.len() > 1 && kind_of(times[0]) == kind_of(times[1]);
            schema.time = match (time, times.as_slice()) {
                (1, [only, ..]) => {
                    schema.fields[*only].required = true;
                    TimeRole::Instant(*only)
                }
                (2, [start, end, ..]) if alike => TimeRole::Interval { start: *start, end: *end },
                _ => TimeRole::None,
            };
            if given {
                schema.id = IdRole::Given;
                if other_id_name {
                    schema.id_name = "key".to_owned();
                }
            }
            schema.validate().unwrap();
            Arc::new(schema)
        },
    )
}

fn degrees(edge: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        -edge..=edge,
        prop::sample::select(vec![0.0, -0.0, edge, -edge, 1e-7, 12.0, -1.5]),
        (-edge * 1e4..=edge * 1e4).prop_map(|x| x.round() / 1e4),
    ]
}

fn coord() -> impl Strategy<Value = Coord<f64>> {
    (degrees(180.0), degrees(90.0)).prop_map(|(x, y)| Coord { x, y })
}

fn line() -> impl Strategy<Value = LineString<f64>> {
    prop::collection::vec(coord(), 2..6).prop_map(LineString::new)
}

/// A triangle or rectangle in its own cell, sometimes with a hole.
fn polygon(cell: i32) -> impl Strategy<Value = Polygon<f64>> {
    (0.1f64..0.9, any::<bool>()).prop_map(move |(size, hole)| {
        let (x, y) = (f64::from(cell) * 2.0, f64::from(cell));
        let ring = |from: f64, to: f64| {
            LineString::new(vec![
                Coord { x: x + from, y: y + from },
                Coord { x: x + to, y: y + from },
                Coord { x: x + to, y: y + to },
                Coord { x: x + from, y: y + from },
            ])
        };
        let holes = if hole {
            vec![LineString::new(vec![
                Coord { x: x + size * 0.5, y: y + size * 0.2 },
                Coord { x: x + size * 0.6, y: y + size * 0.2 },
                Coord { x: x + size * 0.6, y: y + size * 0.3 },
                Coord { x: x + size * 0.5, y: y + size * 0.2 },
            ])]
        } else {
            vec![]
        };
        Polygon::new(ring(0.0, size), holes)
    })
}

fn shape(kind: GeometryType) -> BoxedStrategy<Geometry<f64>> {
    use GeometryType::*;
    match kind {
        Point => coord().prop_map(|c| Geometry::Point(geo_types::Point(c))).boxed(),
        Line => line().prop_map(Geometry::LineString).boxed(),
        Polygon => polygon(3).prop_map(Geometry::Polygon).boxed(),
        MultiPoint => prop_oneof![
            shape(Point),
            prop::collection::vec(coord(), 1..4)
                .prop_map(|c| geo_types::MultiPoint::new(c.into_iter().map(geo_types::Point).collect()).into()),
        ]
        .boxed(),
        MultiLine => {
            prop_oneof![shape(Line), prop::collection::vec(line(), 1..4).prop_map(|l| MultiLineString::new(l).into()),]
                .boxed()
        }
        MultiPolygon => prop_oneof![
            shape(Polygon),
            (polygon(-7), polygon(8)).prop_map(|(a, b)| geo_types::MultiPolygon::new(vec![a, b]).into()),
        ]
        .boxed(),
        Any => prop_oneof![shape(Point), shape(MultiLine), shape(MultiPolygon), shape(MultiPoint)].boxed(),
    }
}

/// Shapes of a kind.
pub fn shapes(kind: GeometryType) -> BoxedStrategy<Geometry<f64>> {
    shape(kind)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \",;\r\n\ta-z\\\\]{0,8}",
        prop::sample::select(vec!["", "null", "NaN", "true", "12", "2026-01-31T12:00:00Z", "[]", "\u{feff}", "\u{1e}"])
            .prop_map(str::to_owned),
    ]
}

fn value(kind: FieldType, required: bool) -> BoxedStrategy<Value> {
    let some = match kind {
        FieldType::Text => text().prop_map(Value::Text).boxed(),
        FieldType::Int => prop_oneof![any::<i64>(), -9i64..9].prop_map(Value::Int).boxed(),
        FieldType::Float => prop_oneof![any::<f64>(), -9.0..9.0, (-9i64..9).prop_map(|n| n as f64)]
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(Value::Float)
            .boxed(),
        FieldType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        FieldType::Time => (time::TIME_MIN..=time::TIME_MAX, 0..7u32)
            .prop_map(|(t, coarse)| {
                let unit = 10i64.pow(coarse);
                Value::Time((t / unit * unit).clamp(time::TIME_MIN, time::TIME_MAX))
            })
            .boxed(),
        FieldType::Date => {
            (time::TIME_MIN / DAY_US..=time::TIME_MAX / DAY_US).prop_map(|day| Value::Time(day * DAY_US)).boxed()
        }
        FieldType::TextList => prop::collection::vec(text(), 0..4).prop_map(Value::TextList).boxed(),
    };
    if required { some } else { prop_oneof![3 => some, 1 => Just(Value::Null)].boxed() }
}

fn event(schema: &Schema) -> impl Strategy<Value = Event> + use<> {
    let values: Vec<_> = schema.fields.iter().map(|f| value(f.kind, f.required)).collect();
    let geometry = match schema.geometry {
        None => Just(None).boxed(),
        Some(kind) => prop::option::weighted(0.8, shape(kind)).boxed(),
    };
    let time = schema.time;
    ("[a-zA-Z0-9 ,\"é:/-]{1,10}", geometry, values).prop_map(move |(id, geometry, mut values)| {
        if let TimeRole::Interval { start, end } = time
            && let (Value::Time(from), Value::Time(to)) = (&values[start], &values[end])
            && from > to
        {
            values.swap(start, end);
        }
        Event { id, geometry, values }
    })
}

/// A schema and some events of it.
pub fn events() -> impl Strategy<Value = (Arc<Schema>, Vec<Event>)> {
    schema().prop_flat_map(|schema| {
        let events = prop::collection::vec(event(&schema), 0..12);
        (Just(schema), events)
    })
}

pub fn point(lon: f64, lat: f64) -> Geometry<f64> {
    Geometry::Point(Point::new(lon, lat))
}

pub fn multi_point(points: &[(f64, f64)]) -> Geometry<f64> {
    MultiPoint::from(points.to_vec()).into()
}

pub fn multi_polygon(polygons: Vec<Polygon<f64>>) -> Geometry<f64> {
    MultiPolygon::new(polygons).into()
}
