//! Compares formats of other programs with those programs. Files that ogr2ogr makes of our GeoJSON hold the same
//! events. Readers here decode what pyais and Google's bindings decode.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests run programs on files")]

mod common;

use common::{build, read_all, write};
use meridian_formats::{
    BatchLimits, Format, OnError, ReadError, ReadOptions, Unknown, infer, infer_path, reader_of_path,
};
use meridian_model::builder::Value;
use meridian_model::{Batch, Field, FieldColumn, FieldType, GeometryType, Schema, TimeRole};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value as Json;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Runs ogr2ogr, which must succeed; `make test` installs it.
fn ogr2ogr(arguments: &[&str]) {
    let run = Command::new("ogr2ogr").args(arguments).output();
    let run = run.unwrap_or_else(|e| panic!("ogr2ogr is needed: apt-get install gdal-bin: {e}"));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && !said.contains("ERROR"), "{arguments:?}: {said}");
}

/// A schema of every type that all the formats have, with shapes of one kind.
fn schema(kind: GeometryType) -> Arc<Schema> {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    let fields = vec![
        field("txt", FieldType::Text),
        field("n", FieldType::Int),
        field("x", FieldType::Float),
        field("ok", FieldType::Bool),
        field("at", FieldType::Time),
    ];
    Arc::new(Schema { fields, geometry: Some(kind), ..Schema::default() })
}

/// Texts that every format keeps: a dBASE table keeps no trailing blanks, and no empty text.
fn text() -> impl Strategy<Value = String> {
    "[a-zA-Zäé,\"'<>&;]{1,12}"
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let maybe = |value: BoxedStrategy<Value>| prop_oneof![4 => value, 1 => Just(Value::Null)];
    (
        maybe(text().prop_map(Value::Text).boxed()),
        maybe((-1_000_000_000i64..1_000_000_000).prop_map(Value::Int).boxed()),
        maybe((-1_000_000i64..1_000_000).prop_map(|n| Value::Float(n as f64 / 64.0)).boxed()),
        maybe(any::<bool>().prop_map(Value::Bool).boxed()),
        maybe((0i64..4_000_000_000).prop_map(|s| Value::Time(s * 1_000_000)).boxed()),
    )
        .prop_map(|(a, b, c, d, e)| vec![a, b, c, d, e])
}

fn events(kind: GeometryType) -> impl Strategy<Value = Vec<common::Event>> {
    let event = (common::shapes(kind), values()).prop_map(|(shape, values)| common::Event {
        id: String::new(),
        geometry: Some(shape),
        values,
    });
    prop::collection::vec(event, 1..8)
}

/// Returns rows as JSON, sorted: a FlatGeobuf is ordered along a curve.
fn rows(batch: &Batch, fields: &[&str]) -> Vec<String> {
    let mut rows: Vec<String> = (0..batch.rows())
        .map(|row| {
            let shape = batch.geometry(row).map(|shape| wkt_of(&shape));
            let values: Vec<String> = fields.iter().map(|name| value(batch, name, row)).collect();
            format!("{shape:?} {values:?}")
        })
        .collect();
    rows.sort();
    rows
}

/// Rounds a position to a micro-degree; zero has no sign, which GeoJSON loses on its way.
fn at(x: f64, y: f64) -> String {
    format!("{x:.6} {y:.6}").replace("-0.000000", "0.000000")
}

/// Normalises a shape: rings start at their min position and run in one direction, single shapes become multi ones.
fn wkt_of(shape: &geo_types::Geometry<f64>) -> String {
    use geo_types::Geometry::*;
    let ring = |ring: &geo_types::LineString<f64>| {
        let mut points: Vec<String> = ring.0[1..].iter().map(|c| at(c.x, c.y)).collect();
        points.sort();
        points
    };
    let polygon = |p: &geo_types::Polygon<f64>| {
        let mut holes: Vec<_> = p.interiors().iter().map(ring).collect();
        holes.sort();
        (ring(p.exterior()), holes)
    };
    let line = |l: &geo_types::LineString<f64>| l.0.iter().map(|c| at(c.x, c.y)).collect::<Vec<_>>();
    match shape {
        Point(p) => format!("points {:?}", vec![at(p.x(), p.y())]),
        MultiPoint(all) => {
            format!("points {:?}", all.iter().map(|p| at(p.x(), p.y())).collect::<Vec<_>>())
        }
        LineString(l) => format!("lines {:?}", vec![line(l)]),
        MultiLineString(all) => format!("lines {:?}", all.iter().map(line).collect::<Vec<_>>()),
        Polygon(p) => format!("polygons {:?}", vec![polygon(p)]),
        MultiPolygon(all) => {
            let mut all: Vec<_> = all.iter().map(polygon).collect();
            all.sort();
            format!("polygons {all:?}")
        }
        other => panic!("{other:?}"),
    }
}

fn value(batch: &Batch, name: &str, row: usize) -> String {
    use arrow_array::Array;
    let Some(field) = batch.schema().field_index(name) else { return "no such field".to_owned() };
    match batch.field(field) {
        Some(FieldColumn::Text(c)) if c.is_valid(row) => format!("{:?}", c.value(row)),
        Some(FieldColumn::Int(c)) if c.is_valid(row) => c.value(row).to_string(),
        Some(FieldColumn::Float(c)) if c.is_valid(row) => format!("{}", c.value(row)),
        Some(FieldColumn::Bool(c)) if c.is_valid(row) => c.value(row).to_string(),
        Some(FieldColumn::Time(c)) if c.is_valid(row) => c.value(row).to_string(),
        _ => "null".to_owned(),
    }
}

/// Converts events by ogr2ogr, reads the file in place under the original schema, and compares.
fn converted(driver: &str, ending: &str, fields: &[&str], more: &[&str], kinds: &[GeometryType]) {
    for kind in kinds {
        let mut runner = TestRunner::new(Config { cases: 6, failure_persistence: None, ..Config::default() });
        runner
            .run(&events(*kind), |events| {
                let folder = tempfile::tempdir().unwrap();
                let schema = schema(*kind);
                let batch = build(&schema, &events);
                let from = folder.path().join("events.geojson");
                std::fs::write(&from, write(Format::GeoJson, std::slice::from_ref(&batch), &schema)).unwrap();
                let to = folder.path().join(format!("out.{ending}"));
                let mut arguments = vec!["-f", driver, to.to_str().unwrap(), from.to_str().unwrap(), "-nln", "layer"];
                arguments.extend(more);
                ogr2ogr(&arguments);
                let format = Format::detect(to.to_str().unwrap(), &std::fs::read(&to).unwrap()).unwrap();
                let options = ReadOptions { unknown: Unknown::Ignore, ids: Unknown::Ignore, ..ReadOptions::default() };
                let kept = schema.fields.iter().filter(|field| fields.contains(&field.name.as_str()));
                let of_format = Arc::new(Schema { fields: kept.cloned().collect(), ..(*schema).clone() });
                let back = read_path(format, &to, &of_format, &options).unwrap();
                prop_assert_eq!(rows(&back, fields), rows(&batch, fields));
                // The inferred schema reads the file as well, event for event.
                let inferred = Arc::new(infer_path(format, &to, &ReadOptions::default()).unwrap().schema);
                let again = read_path(format, &to, &inferred, &ReadOptions::default()).unwrap();
                prop_assert_eq!(again.rows(), batch.rows());
                Ok(())
            })
            .unwrap();
    }
}

fn read_path(format: Format, path: &Path, schema: &Arc<Schema>, options: &ReadOptions) -> Result<Batch, ReadError> {
    let mut events = reader_of_path(format, path, schema.clone(), options)?;
    let mut batches = vec![Batch::empty(schema.clone())];
    while let Some(batch) = events.next_batch(&BatchLimits::default())? {
        batches.push(batch);
    }
    Ok(Batch::concat(&batches).unwrap())
}

const ALL: &[&str] = &["txt", "n", "x", "ok", "at"];
const SHAPES: &[GeometryType] = &[
    GeometryType::Point,
    GeometryType::Line,
    GeometryType::Polygon,
    GeometryType::MultiPoint,
    GeometryType::MultiLine,
    GeometryType::MultiPolygon,
];

#[test]
#[cfg(feature = "flatgeobuf")]
fn flatgeobuf_of_ogr2ogr_holds_the_same_events() {
    converted("FlatGeobuf", "fgb", ALL, &[], SHAPES);
    converted("FlatGeobuf", "fgb", ALL, &["-lco", "SPATIAL_INDEX=NO"], &[GeometryType::Any]);
}

#[test]
#[cfg(feature = "geopackage")]
fn geopackage_of_ogr2ogr_holds_the_same_events() {
    converted("GPKG", "gpkg", ALL, &[], SHAPES);
}

#[test]
fn shapefile_of_ogr2ogr_holds_the_same_events() {
    // dBASE has no times and no booleans here, and a Shapefile holds one kind of shape.
    let kinds = [GeometryType::Point, GeometryType::Line, GeometryType::Polygon, GeometryType::MultiPolygon];
    converted("ESRI Shapefile", "shp", &["txt", "n", "x"], &["-lco", "ENCODING=UTF-8"], &kinds);
    converted("ESRI Shapefile", "shz", &["txt", "n", "x"], &["-lco", "ENCODING=UTF-8"], &kinds);
}

#[test]
fn kml_of_ogr2ogr_holds_the_same_events() {
    converted("KML", "kml", &["txt", "n", "x"], &[], &[GeometryType::Point, GeometryType::Line, GeometryType::Polygon]);
    converted("LIBKML", "kmz", &["txt", "n", "x"], &[], &[GeometryType::Point, GeometryType::Polygon]);
}

#[test]
fn another_reference_system_is_refused_with_the_command_that_changes_it() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema(GeometryType::Point);
    let from = folder.path().join("events.geojson");
    std::fs::write(&from, r#"{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[13,52]},"properties":{}}]}"#).unwrap();
    let mut formats = vec![("ESRI Shapefile", "shp"), ("ESRI Shapefile", "shz")];
    if cfg!(feature = "flatgeobuf") {
        formats.push(("FlatGeobuf", "fgb"));
    }
    if cfg!(feature = "geopackage") {
        formats.push(("GPKG", "gpkg"));
    }
    for (driver, ending) in formats {
        for system in ["EPSG:3857", "EPSG:25832", "EPSG:4258"] {
            let to = folder.path().join(format!("{}.{ending}", &system[5..]));
            ogr2ogr(&["-f", driver, to.to_str().unwrap(), from.to_str().unwrap(), "-t_srs", system]);
            let format = Format::detect(to.to_str().unwrap(), &std::fs::read(&to).unwrap()).unwrap();
            let refusal = read_path(format, &to, &schema, &ReadOptions::default()).unwrap_err().to_string();
            assert!(refusal.contains("ogr2ogr -t_srs EPSG:4326 converted."), "{driver} {system}: {refusal}");
        }
    }
}

#[test]
fn the_points_of_gpx_are_events_in_order() {
    let track = include_bytes!("../../../fuzz/corpus/gpx/track").to_vec();
    let schema =
        Arc::new(infer(Format::Gpx, Box::new(Cursor::new(track.clone())), &ReadOptions::default()).unwrap().schema);
    let batch = read_all(Format::Gpx, track, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    let seen: Vec<String> = (0..batch.rows())
        .map(|row| {
            let at: geo_types::Point<f64> = batch.geometry(row).unwrap().try_into().unwrap();
            let values: Vec<String> = ["kind", "track", "segment", "time", "ele", "hr", "name"]
                .iter()
                .map(|n| value(&batch, n, row))
                .collect();
            format!("{} {} {}", at.x(), at.y(), values.join(" "))
        })
        .collect();
    assert_eq!(
        seen,
        [
            "13.4 52.5 \"trkpt\" \"Morning & run\" 1 1767261600000000 34.5 120 null",
            "13.5 52.6 \"trkpt\" \"Morning & run\" 1 1767261605250000 null null null",
            "13.6 52.7 \"trkpt\" \"Morning & run\" 2 null null null null",
            "2 1 \"rtept\" \"2\" null null null null \"a <b>\"",
        ]
    );
}

#[test]
fn waypoints_of_ogr2ogr_come_back() {
    let points = include_bytes!("../../../fuzz/corpus/gpx/waypoints").to_vec();
    let schema =
        Arc::new(infer(Format::Gpx, Box::new(Cursor::new(points.clone())), &ReadOptions::default()).unwrap().schema);
    let batch = read_all(Format::Gpx, points, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    assert_eq!(batch.rows(), 3);
    assert_eq!(batch.geometry(1), Some(common::point(-20.25, -7.25)));
    assert_eq!((value(&batch, "name", 0), value(&batch, "kind", 0)), ("\"Zürich\"".to_owned(), "\"wpt\"".to_owned()));
    assert_eq!(schema.time, TimeRole::Instant(schema.field_index("time").unwrap()));
}

#[test]
fn kml_has_tracks_times_and_fields_with_their_types() {
    let text = include_bytes!("../../../fuzz/corpus/kml/track").to_vec();
    let packed = include_bytes!("../../../fuzz/corpus/kml/kmz").to_vec();
    for bytes in [text, packed] {
        let schema =
            Arc::new(infer(Format::Kml, Box::new(Cursor::new(bytes.clone())), &ReadOptions::default()).unwrap().schema);
        let batch = read_all(Format::Kml, bytes, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
        assert_eq!(batch.rows(), 4);
        assert_eq!(batch.geometry(1), Some(common::point(13.5, 52.6)));
        assert_eq!(batch.geometry(2), Some(common::multi_point(&[(1.0, 2.0), (3.0, 4.0)])));
        let kind = |name: &str| schema.fields[schema.field_index(name).unwrap()].kind;
        assert_eq!((kind("n"), kind("x"), kind("note")), (FieldType::Int, FieldType::Float, FieldType::Text));
        assert_eq!((value(&batch, "n", 2), value(&batch, "folder", 0)), ("7".to_owned(), "\"Ships\"".to_owned()));
        assert_eq!(
            (value(&batch, "name", 2), value(&batch, "name", 0)),
            ("\"A & B\"".to_owned(), "\"Anna\"".to_owned())
        );
        assert_eq!(
            (value(&batch, "time", 1), value(&batch, "begin", 3)),
            ("\"2026-01-01T10:05:00Z\"".to_owned(), "\"2025-01-01\"".to_owned())
        );
    }
}

#[test]
fn a_bad_placemark_is_left_out_and_the_next_ones_are_read() {
    let points = |middle: &str| {
        let mark = |at: &str| format!("<Placemark><name>{at}</name>{middle}</Placemark>").replace("AT", at);
        format!("<kml><Document>{}{}{}</Document></kml>", mark("1,2"), mark("1x,\n2"), mark("3,4")).into_bytes()
    };
    let text = points("<Point><coordinates>AT</coordinates></Point>");
    let skip = ReadOptions { on_error: OnError::Skip, ..ReadOptions::default() };
    let schema = Arc::new(infer(Format::Kml, Box::new(Cursor::new(text.clone())), &skip).unwrap().schema);
    let batch = read_all(Format::Kml, text.clone(), &schema, &skip, &BatchLimits::default()).unwrap();
    let names: Vec<String> = (0..batch.rows()).map(|row| value(&batch, "name", row)).collect();
    assert_eq!(names, ["\"1,2\"", "\"3,4\""]);
    let refusal = read_all(Format::Kml, text, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "line 2: coordinates: \"1x,\" where lon,lat was expected");
}

#[test]
fn a_shapefile_without_a_reference_system_is_read_as_degrees_and_this_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("events.geojson"), folder.path().join("events.shp"));
    std::fs::write(
        &from,
        r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[13,52]},"properties":{"n":1}}"#,
    )
    .unwrap();
    ogr2ogr(&["-f", "ESRI Shapefile", to.to_str().unwrap(), from.to_str().unwrap()]);
    let notes = || infer_path(Format::Shapefile, &to, &ReadOptions::default()).unwrap().notes;
    assert_eq!(notes(), Vec::<String>::new());
    std::fs::remove_file(folder.path().join("events.prj")).unwrap();
    assert!(notes()[0].starts_with("no .prj file names the reference system"), "{:?}", notes());
}

#[test]
fn ships_are_what_pyais_decodes() {
    let log = include_bytes!("files/ais.nmea").to_vec();
    let expected: Vec<Json> = serde_json::from_str(include_str!("files/ais.json")).unwrap();
    let schema =
        Arc::new(infer(Format::Nmea, Box::new(Cursor::new(log.clone())), &ReadOptions::default()).unwrap().schema);
    let time = TimeRole::Instant(schema.field_index("time").unwrap());
    assert_eq!(schema.time, time);
    let batch = read_all(Format::Nmea, log, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    // The last one is the receiver's own.
    assert_eq!(batch.rows(), expected.len() + 1);
    for (row, message) in expected.iter().enumerate() {
        let kind = message["msg_type"].as_i64().unwrap();
        let got = |name: &str| value(&batch, name, row);
        assert_eq!(got("message"), format!("{:?}", kind.to_string()), "{message}");
        assert_eq!(got("mmsi"), message["mmsi"].to_string());
        assert_eq!(got("time"), (message["_t"].as_i64().unwrap() * 1_000_000).to_string(), "{message}");
        let place = batch.geometry(row).map(|shape| geo_types::Point::<f64>::try_from(shape).unwrap());
        match (message["lon"].as_f64(), place) {
            (Some(lon), Some(at)) => {
                let lat = message["lat"].as_f64().unwrap();
                assert!((at.x() - lon).abs() < 1e-4 && (at.y() - lat).abs() < 1e-4, "{message}: {at:?}");
            }
            (None, None) => {}
            (_, place) => panic!("{message}: {place:?}"),
        }
        for (name, key) in [("speed", "speed"), ("course", "course"), ("heading", "heading"), ("draught", "draught")] {
            if let Some(number) = message[key].as_f64() {
                assert_eq!(got(name).parse::<f64>().ok(), Some(number), "{name} of {message}");
            }
        }
        for (name, key) in
            [("name", "shipname"), ("name", "name"), ("callsign", "callsign"), ("destination", "destination")]
        {
            if let Some(text) = message[key].as_str().filter(|text| !text.is_empty()) {
                assert_eq!(got(name), format!("{text:?}"), "{message}");
            }
        }
    }
    let own = expected.len();
    assert_eq!(value(&batch, "time", own), "905674716000000");
    assert_eq!(
        (value(&batch, "altitude", own), value(&batch, "satellites", own)),
        ("545.4".to_owned(), "8".to_owned())
    );
    let at: geo_types::Point<f64> = batch.geometry(own).unwrap().try_into().unwrap();
    assert!((at.y() + 37.860_833_333).abs() < 1e-8 && (at.x() - 145.122_666_667).abs() < 1e-8, "{at:?}");
}

#[test]
fn a_wrong_checksum_is_an_error_of_its_line() {
    let log = b"!AIVDM,1,1,,A,139>Jh0P3g39JAPGQA2==rJ1P000,0*68\r\n!AIVDM,1,1,,A,139>Jh0P3g39JAPGQA2==rJ1P000,0*69\r\n"
        .to_vec();
    let schema = Arc::new(
        infer(Format::Nmea, Box::new(Cursor::new(log[..45].to_vec())), &ReadOptions::default()).unwrap().schema,
    );
    let mistake = read_all(Format::Nmea, log, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap_err();
    assert_eq!(mistake.to_string(), "line 2: the checksum is 69: expected 68");
}

#[test]
fn vehicles_are_what_the_feed_says() {
    let feed = include_bytes!("files/vehicles.pb").to_vec();
    let schema =
        Arc::new(infer(Format::GtfsRt, Box::new(Cursor::new(feed.clone())), &ReadOptions::default()).unwrap().schema);
    let batch = read_all(Format::GtfsRt, feed, &schema, &ReadOptions::default(), &BatchLimits::default()).unwrap();
    // Of five entities, one is a trip update and one is deleted.
    assert_eq!(batch.rows(), 3);
    assert_eq!(batch.geometry(0), Some(common::point(-13.25, 52.1)));
    let got: Vec<String> = [
        "entity",
        "time",
        "trip",
        "route",
        "direction",
        "start_date",
        "start_time",
        "bearing",
        "odometer",
        "speed",
        "stop",
        "stop_sequence",
        "status",
        "congestion",
        "occupancy",
        "vehicle",
        "label",
        "license_plate",
    ]
    .iter()
    .map(|name| value(&batch, name, 0).replace('"', ""))
    .collect();
    assert_eq!(
        got,
        [
            "e0",
            "1767225000000000",
            "trip 1",
            "U2",
            "1",
            "20260101",
            "25:10:00",
            "90.5",
            "1234.5",
            "12.25",
            "s1",
            "3",
            "STOPPED_AT",
            "STOP_AND_GO",
            "FULL",
            "v1",
            "Bus 1",
            "B-XY 1",
        ]
    );
    // A position without a time of its own has that of the feed.
    assert_eq!(value(&batch, "time", 2), "1767225600000000");
}
