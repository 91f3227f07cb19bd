//! Files that ogr2ogr makes of our GeoJSON hold the same events, or are refused or read with a remark.

use crate::common::shown::value;
use crate::common::{self, build, write};
use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, Unknown, infer_path, reader_of_path};
use meridian_model::builder::Value;
use meridian_model::{Batch, Field, FieldType, GeometryType, Schema};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
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

/// The server sends FlatGeobuf like this: a header without a number of features, then batch after batch.
#[test]
#[cfg(feature = "flatgeobuf")]
fn a_stream_of_flatgeobuf_holds_the_same_events_for_ogr2ogr_and_for_us() {
    for kind in [SHAPES, &[GeometryType::Any]].concat() {
        let mut runner = TestRunner::new(Config { cases: 6, failure_persistence: None, ..Config::default() });
        let placeless = prop::collection::vec(any::<bool>(), 8);
        runner
            .run(&(events(kind), placeless), |(mut events, placeless)| {
                for (event, _) in events.iter_mut().zip(placeless).filter(|(_, is_placeless)| *is_placeless) {
                    event.geometry = None;
                }
                let folder = tempfile::tempdir().unwrap();
                let schema = schema(kind);
                let batch = build(&schema, &events);
                let cut = batch.rows() / 2;
                let parts = [batch.slice(0, cut), batch.slice(cut, batch.rows() - cut)];
                let stream = folder.path().join("events.fgb");
                std::fs::write(&stream, write(Format::FlatGeobuf, &parts, &schema)).unwrap();
                let options = ReadOptions { unknown: Unknown::Ignore, ids: Unknown::Ignore, ..ReadOptions::default() };
                let back = read_path(Format::FlatGeobuf, &stream, &schema, &options).unwrap();
                prop_assert_eq!(rows(&back, ALL), rows(&batch, ALL));
                // GeoJSON, as GDAL writes no FlatGeobuf of features without a place.
                let copy = folder.path().join("copy.geojson");
                ogr2ogr(&["-f", "GeoJSON", copy.to_str().unwrap(), stream.to_str().unwrap()]);
                let copied = read_path(Format::GeoJson, &copy, &schema, &options).unwrap();
                prop_assert_eq!(rows(&copied, ALL), rows(&batch, ALL));
                Ok(())
            })
            .unwrap();
    }
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
fn heights_on_wgs_84_are_refused_or_dropped_as_those_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema(GeometryType::Point);
    let from = folder.path().join("events.geojson");
    std::fs::write(&from, r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[13,52,10]},"properties":{}}"#)
        .unwrap();
    let mut formats = vec![("ESRI Shapefile", "shp")];
    if cfg!(feature = "flatgeobuf") {
        formats.push(("FlatGeobuf", "fgb"));
    }
    if cfg!(feature = "geopackage") {
        formats.push(("GPKG", "gpkg"));
    }
    for (driver, ending) in formats {
        let to = folder.path().join(format!("heights.{ending}"));
        // GDAL names this system for GeoJSON with heights from version 3.6 on.
        ogr2ogr(&["-f", driver, to.to_str().unwrap(), from.to_str().unwrap(), "-a_srs", "EPSG:4979"]);
        let format = Format::detect(to.to_str().unwrap(), &std::fs::read(&to).unwrap()).unwrap();
        let options = ReadOptions { unknown: Unknown::Ignore, ids: Unknown::Ignore, ..ReadOptions::default() };
        let refusal = read_path(format, &to, &schema, &options).unwrap_err().to_string();
        assert!(refusal.contains("height"), "{driver}: {refusal}");
        let dropped = ReadOptions { heights: Unknown::Ignore, ..options };
        assert_eq!(read_path(format, &to, &schema, &dropped).unwrap().rows(), 1, "{driver}");
    }
}

#[cfg(feature = "geopackage")]
#[test]
fn a_curve_of_a_geopackage_is_named_with_the_command_that_straightens_it() {
    let folder = tempfile::tempdir().unwrap();
    for (shape, kind, option) in [
        ("CIRCULARSTRING (0 0,1 1,2 0)", "CircularString", "-nlt CONVERT_TO_LINEAR"),
        ("CURVEPOLYGON (CIRCULARSTRING (0 0,1 1,2 0,1 -1,0 0))", "CurvePolygon", "-nlt CONVERT_TO_LINEAR"),
        ("MULTISURFACE (((0 0,1 1,2 0,0 0)))", "MultiSurface", "-nlt CONVERT_TO_LINEAR"),
        ("TIN Z (((0 0 0,1 0 0,0 1 0,0 0 0)))", "TIN", "-nlt MULTIPOLYGON"),
    ] {
        let from = folder.path().join(format!("{kind}.csv"));
        std::fs::write(&from, format!("n,wkt\n1,\"{shape}\"\n")).unwrap();
        let (to, straight) = (from.with_extension("gpkg"), folder.path().join(format!("{kind}-2.gpkg")));
        let columns = ["-oo", "GEOM_POSSIBLE_NAMES=wkt", "-oo", "KEEP_GEOM_COLUMNS=NO", "-a_srs", "EPSG:4326"];
        ogr2ogr(&[&[to.to_str().unwrap(), from.to_str().unwrap()][..], &columns].concat());
        let options = ReadOptions { heights: Unknown::Ignore, ..ReadOptions::default() };
        let read = read_path(Format::GeoPackage, &to, &schema(GeometryType::Any), &options);
        let refusal = read.unwrap_err().to_string();
        let words = format!("a geometry {kind} is not supported: ogr2ogr {option} converted.");
        assert!(refusal.contains(&words), "{refusal}");
        let option: Vec<&str> = option.split(' ').collect();
        ogr2ogr(&[&option[..], &[straight.to_str().unwrap(), to.to_str().unwrap()]].concat());
        let guess = infer_path(Format::GeoPackage, &straight, &options).unwrap();
        assert!(guess.schema.geometry.is_some(), "{kind}");
    }
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

#[cfg(feature = "flatgeobuf")]
#[test]
fn shapes_of_other_types_are_bad_events_and_none_without_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("events.csv");
    let written = |kind: &str, name: &str, rows: &[&str]| {
        let rows: String = rows.iter().map(|shape| format!("\"{shape}\",1\n")).collect();
        std::fs::write(&from, format!("wkt,n\n{rows}")).unwrap();
        let to = folder.path().join(format!("{name}.fgb"));
        let columns = ["-oo", "GEOM_POSSIBLE_NAMES=wkt", "-oo", "KEEP_GEOM_COLUMNS=NO", "-a_srs", "EPSG:4326"];
        let layer = ["-f", "FlatGeobuf", "-lco", "SPATIAL_INDEX=NO", "-nlt", kind];
        ogr2ogr(&[&layer[..], &columns, &[to.to_str().unwrap(), from.to_str().unwrap()]].concat());
        to
    };
    let skip = ReadOptions { on_error: meridian_formats::OnError::Skip, ..ReadOptions::default() };
    for shape in [
        "GEOMETRYCOLLECTION (POINT (1 2))",
        "CIRCULARSTRING (0 0,1 1,2 0)",
        "COMPOUNDCURVE (CIRCULARSTRING (0 0,1 1,2 0),(2 0,3 0))",
        "CURVEPOLYGON (CIRCULARSTRING (0 0,1 1,2 0,1 -1,0 0))",
        "MULTICURVE ((0 0,1 1))",
        "MULTISURFACE (((0 0,1 0,1 1,0 0)))",
        "POLYHEDRALSURFACE (((0 0,1 0,1 1,0 0)))",
    ] {
        let (kind, _) = shape.split_once(' ').unwrap();
        // The header names one type of all features, or each feature names its own.
        let alone = written(kind, kind, &[shape]);
        let among = written("GEOMETRY", &format!("{kind}-2"), &["POINT (1 2)", shape, "POINT (3 4)"]);
        for (file, number) in [(&alone, 1), (&among, 2)] {
            let refusal = infer_path(Format::FlatGeobuf, file, &ReadOptions::default()).unwrap_err();
            let first = refusal.first().unwrap();
            assert!(first.line == Some(number) && first.detail.contains("is not supported: "), "{kind}: {refusal}");
        }
        let schema = Arc::new(infer_path(Format::FlatGeobuf, &among, &skip).unwrap().schema);
        let mut events = reader_of_path(Format::FlatGeobuf, &among, schema, &skip).unwrap();
        let batch = events.next_batch(&BatchLimits::default()).unwrap().unwrap();
        assert_eq!((batch.rows(), events.report().skipped), (2, 1), "{kind}");
        assert!((0..2).all(|row| batch.geometry(row).is_some()), "{kind}");
    }
}
