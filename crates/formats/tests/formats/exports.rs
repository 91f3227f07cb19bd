//! Files for other programs: ogr2ogr reads the same events from them, and they read back unchanged.

use crate::common::{self, build, write};
use arrow_ipc::reader::StreamReader;
use meridian_formats::export::{FlatGeobufWriter, GeoPackageWriter, UnnamedGeoPackage};
use meridian_formats::{BatchLimits, Format, ReadOptions, reader_of_path};
use meridian_model::builder::Value;
use meridian_model::{Batch, Field, FieldType, GeometryType, IdRole, Schema};
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

#[test]
fn exported_files_hold_the_events_for_gdal_and_for_us() {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    let fields = vec![
        field("name", FieldType::Text),
        field("n", FieldType::Int),
        field("x", FieldType::Float),
        field("ok", FieldType::Bool),
        field("at", FieldType::Time),
    ];
    for kind in [GeometryType::Point, GeometryType::MultiPoint] {
        let geometry = Some(kind);
        let schema = Arc::new(Schema { fields: fields.clone(), geometry, id: IdRole::Given, ..Schema::default() });
        let events: Vec<common::Event> = (0..200)
            .map(|n| common::Event {
                id: format!("e{n}"),
                geometry: Some(common::point(f64::from(n) / 4.0, f64::from(n) / -8.0)),
                values: vec![
                    if n % 7 == 0 { Value::Null } else { Value::Text(format!("né {n}")) },
                    Value::Int(i64::from(n) - 3_000_000_000),
                    Value::Float(f64::from(n) * 0.1),
                    Value::Bool(n % 2 == 0),
                    Value::Time(i64::from(n) * 1_234_567_000),
                ],
            })
            .collect();
        let batch = build(&schema, &events);
        let stream = write(Format::Arrow, std::slice::from_ref(&batch), &schema);
        let folder = tempfile::tempdir().unwrap();
        let (fgb, gpkg) = (folder.path().join("events.fgb"), folder.path().join("events.gpkg"));
        let mut flatgeobuf = FlatGeobufWriter::new(&fgb, "events", &schema).unwrap();
        let mut geopackage = GeoPackageWriter::create(&gpkg, "events", &schema).unwrap();
        for record in StreamReader::try_new(Cursor::new(stream), None).unwrap() {
            let record = record.unwrap();
            flatgeobuf.write(&record).unwrap();
            geopackage.write(&record).unwrap();
        }
        flatgeobuf.finish(File::create(&fgb).unwrap()).unwrap();
        geopackage.finish().unwrap();
        for (format, path) in [(Format::FlatGeobuf, &fgb), (Format::GeoPackage, &gpkg)] {
            let back = read_path(format, path, &schema);
            assert_eq!(lines(&back, &schema), lines(&batch, &schema), "{format}");
            let said = Command::new("ogrinfo").args(["-so", "-al", path.to_str().unwrap()]).output();
            let said = said.expect("ogrinfo is needed: apt-get install gdal-bin");
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(said.status.success() && said.stderr.is_empty(), "{text}{}", String::from_utf8_lossy(&said.stderr));
            for part in ["Feature Count: 200", "WGS 84", "at: DateTime", "n: Integer64", "x: Real", "(Boolean)"] {
                assert!(text.contains(part), "{format}: {part} is not in {text}");
            }
        }
    }
}

#[test]
fn features_without_a_place_have_no_geometry_for_gdal_and_for_us() {
    use GeometryType::{Any, Line, MultiLine, MultiPoint, MultiPolygon, Point, Polygon};
    let fields = vec![Field { name: "n".into(), kind: FieldType::Int, required: false, title: None }];
    let folder = tempfile::tempdir().unwrap();
    for kind in [Point, Line, Polygon, MultiPoint, MultiLine, MultiPolygon, Any] {
        let schema =
            Arc::new(Schema { fields: fields.clone(), geometry: Some(kind), id: IdRole::Given, ..Schema::default() });
        let line = geo_types::LineString::from(vec![(1.0, 2.0), (3.0, 4.0)]);
        let square = geo_types::LineString::from(vec![(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)]);
        let shape: geo_types::Geometry<f64> = match kind {
            Point | Any => common::point(1.0, 2.0),
            MultiPoint => common::multi_point(&[(1.0, 2.0), (3.0, 4.0)]),
            Line => line.into(),
            MultiLine => geo_types::MultiLineString(vec![line.clone(), line]).into(),
            Polygon => geo_types::Polygon::new(square, vec![]).into(),
            MultiPolygon => geo_types::MultiPolygon(vec![geo_types::Polygon::new(square, vec![])]).into(),
        };
        // One feature of three, all but one of many, and all features have no place.
        for (count, placed) in [(3, 1), (40, 39), (1, 0), (30, 0)] {
            let events: Vec<common::Event> = (0..count)
                .map(|n| common::Event {
                    id: format!("e{n:02}"),
                    geometry: (n < placed).then(|| shape.clone()),
                    values: vec![Value::Int(n)],
                })
                .collect();
            let batch = build(&schema, &events);
            let stream = write(Format::Arrow, std::slice::from_ref(&batch), &schema);
            let path = folder.path().join(format!("{}-{count}.fgb", kind.word()));
            let mut writer = FlatGeobufWriter::new(&path, "events", &schema).unwrap();
            for record in StreamReader::try_new(Cursor::new(stream), None).unwrap() {
                writer.write(&record.unwrap()).unwrap();
            }
            writer.finish(File::create(&path).unwrap()).unwrap();
            let back = read_path(Format::FlatGeobuf, &path, &schema);
            assert_eq!(lines(&back, &schema), lines(&batch, &schema), "{kind:?} {placed} of {count}");
            let said = Command::new("ogrinfo").args(["-al", path.to_str().unwrap()]).output();
            let said = said.expect("ogrinfo is needed: apt-get install gdal-bin");
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(said.status.success() && said.stderr.is_empty(), "{text}{}", String::from_utf8_lossy(&said.stderr));
            assert!(text.contains(&format!("Feature Count: {count}")), "{kind:?}: {text}");
            assert_eq!(text.matches("OGRFeature(events)").count() as i64, count, "{kind:?}: {text}");
            // Returns a line with the well-known text of each shape.
            let words = ["  POINT (", "  LINESTRING (", "  POLYGON (", "  MULTI"];
            let shapes = text.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
            assert_eq!(shapes.count() as i64, placed, "{kind:?}: {text}");
            assert!(!text.contains("EMPTY") && !text.contains("inf"), "{kind:?}: {text}");
        }
    }
}

#[test]
fn shapes_of_one_part_are_read_by_gdal() {
    let line = geo_types::LineString::from(vec![(1.0, 2.0), (3.0, 4.0)]);
    let square = geo_types::LineString::from(vec![(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)]);
    let lines: Vec<geo_types::Geometry<f64>> =
        vec![geo_types::MultiLineString(vec![line.clone()]).into(), line.clone().into()];
    let polygons: Vec<geo_types::Geometry<f64>> = vec![
        geo_types::MultiPolygon(vec![geo_types::Polygon::new(square.clone(), vec![])]).into(),
        geo_types::Polygon::new(square, vec![]).into(),
    ];
    let points = vec![common::multi_point(&[(1.0, 2.0)]), common::point(1.0, 2.0)];
    let all = [lines.clone(), polygons.clone(), points.clone()].concat();
    let folder = tempfile::tempdir().unwrap();
    for (kind, shapes) in [
        (GeometryType::MultiLine, lines),
        (GeometryType::MultiPolygon, polygons),
        (GeometryType::MultiPoint, points),
        (GeometryType::Any, all),
    ] {
        let schema = Arc::new(Schema { geometry: Some(kind), id: IdRole::Given, ..Schema::default() });
        let events: Vec<common::Event> = shapes
            .iter()
            .enumerate()
            .map(|(n, shape)| common::Event { id: format!("e{n}"), geometry: Some(shape.clone()), values: vec![] })
            .collect();
        let stream = write(Format::Arrow, &[build(&schema, &events)], &schema);
        let path = folder.path().join(format!("{}.fgb", kind.word()));
        let mut writer = FlatGeobufWriter::new(&path, "events", &schema).unwrap();
        for record in StreamReader::try_new(Cursor::new(stream), None).unwrap() {
            writer.write(&record.unwrap()).unwrap();
        }
        writer.finish(File::create(&path).unwrap()).unwrap();
        assert_eq!(read_path(Format::FlatGeobuf, &path, &schema).rows(), shapes.len());
        let said = Command::new("ogrinfo").args(["-al", path.to_str().unwrap()]).output();
        let said = said.expect("ogrinfo is needed: apt-get install gdal-bin");
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success() && said.stderr.is_empty(), "{text}{}", String::from_utf8_lossy(&said.stderr));
        assert_eq!(text.matches("OGRFeature(events)").count(), shapes.len(), "{kind:?}: {text}");
    }
}

#[test]
fn lists_and_names_in_other_case_come_back_or_have_another_name() {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    let fields = vec![
        field("tags", FieldType::TextList),
        field("Lon", FieldType::Int),
        field("lon", FieldType::Int),
        field("lon_2", FieldType::Int),
    ];
    let schema = Schema { fields, geometry: Some(GeometryType::Point), id: IdRole::Given, ..Schema::default() };
    let schema = Arc::new(schema);
    let tags = |n: i64| Value::TextList((0..n).map(|n| format!("tag \"{n}\"")).collect());
    let events: Vec<common::Event> = (0..3)
        .map(|n| common::Event {
            id: format!("e{n}"),
            geometry: Some(common::point(n as f64, 1.0)),
            values: vec![tags(n), Value::Int(n), Value::Int(10 + n), Value::Int(20 + n)],
        })
        .collect();
    let batch = build(&schema, &events);
    let stream = write(Format::Arrow, std::slice::from_ref(&batch), &schema);
    let folder = tempfile::tempdir().unwrap();
    let (fgb, gpkg) = (folder.path().join("events.fgb"), folder.path().join("events.gpkg"));
    let mut flatgeobuf = FlatGeobufWriter::new(&fgb, "events", &schema).unwrap();
    let mut geopackage = GeoPackageWriter::create(&gpkg, "events", &schema).unwrap();
    assert_eq!(geopackage.renamed, [("lon".to_owned(), "lon_3".to_owned())]);
    for record in StreamReader::try_new(Cursor::new(stream), None).unwrap() {
        let record = record.unwrap();
        flatgeobuf.write(&record).unwrap();
        geopackage.write(&record).unwrap();
    }
    flatgeobuf.finish(File::create(&fgb).unwrap()).unwrap();
    geopackage.finish().unwrap();
    let streamed = folder.path().join("streamed.fgb");
    std::fs::write(&streamed, write(Format::FlatGeobuf, std::slice::from_ref(&batch), &schema)).unwrap();
    assert_eq!(lines(&read_path(Format::FlatGeobuf, &streamed, &schema), &schema), lines(&batch, &schema));
    let back = read_path(Format::FlatGeobuf, &fgb, &schema);
    assert_eq!(lines(&back, &schema), lines(&batch, &schema));
    let mut renamed = Schema::clone(&schema);
    renamed.fields[2].name = "lon_3".to_owned();
    let renamed = Arc::new(renamed);
    let back = read_path(Format::GeoPackage, &gpkg, &renamed);
    assert_eq!(lines(&back, &renamed), lines(&build(&renamed, &events), &renamed));
}

/// 2026-01-01T00:00:00.250999Z, in microseconds since 1970.
const AS_OF: i64 = 1_767_225_600_250_999;

#[test]
fn a_geopackage_without_a_name_holds_the_events_with_places_and_without() {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    let fields = vec![field("name", FieldType::Text), field("n", FieldType::Int)];
    // The beginnings of the last two belong to SQLite and to GeoPackage.
    for (geometry, name) in [(Some(GeometryType::Point), "spots"), (None, "sqlite_x"), (None, "gpkg_contents")] {
        let schema = Arc::new(Schema { fields: fields.clone(), geometry, id: IdRole::Given, ..Schema::default() });
        let events: Vec<common::Event> = (0..3_000)
            .map(|n| common::Event {
                id: format!("e{n}"),
                geometry: geometry.map(|_| common::point(f64::from(n) / 40.0, 1.0)),
                values: vec![Value::Text(format!("né {n}")), Value::Int(n.into())],
            })
            .collect();
        let (batch, folder) = (build(&schema, &events), tempfile::tempdir().unwrap());
        let path = folder.path().join("copy.gpkg");
        let written = |properties: Option<&[String]>| {
            let mut made = UnnamedGeoPackage::begin(folder.path(), name, &schema, properties, AS_OF).unwrap();
            let others = |entry: &std::fs::DirEntry| entry.path() != path;
            let left = || std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).filter(others).count();
            assert_eq!(left(), 0, "its name is gone at once");
            let empty = made.bytes().unwrap();
            made.write(&batch, &[]).unwrap();
            let bytes = made.bytes().unwrap();
            assert!(bytes > empty + 30_000, "{bytes} bytes after {empty}");
            let mut file = made.finish().unwrap();
            assert_eq!((file.metadata().unwrap().len(), left()), (bytes, 0));
            let mut content = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut content).unwrap();
            std::fs::write(&path, &content).unwrap();
            content
        };
        let content = written(None);
        let has = |words: &[u8]| content.windows(words.len()).any(|part| part == words);
        assert!(has(b"2026-01-01T00:00:00.250Z"), "the time of the events, in milliseconds");
        assert!(written(None) == content, "{name}: the same events, other bytes");
        assert_eq!(lines(&read_path(Format::GeoPackage, &path, &schema), &schema), lines(&batch, &schema), "{name}");
        written(Some(&["n".to_owned()]));
        let part = Arc::new(Schema { fields: fields[1..].to_vec(), ..Schema::clone(&schema) });
        let back = read_path(Format::GeoPackage, &path, &part);
        assert_eq!((back.rows(), lines(&back, &part)[0].contains("né")), (events.len(), false), "{name}");
        let none = UnnamedGeoPackage::begin(&folder.path().join("none"), name, &schema, None, AS_OF);
        assert!(none.is_err_and(|error| error.is_of_disk()));
    }
}

#[test]
fn fields_may_have_every_name_that_a_geopackage_gives_its_own_columns() {
    let names = ["fid", "@FID", "@@fid", "geom", "@geom"];
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Int, required: false, title: None };
    let fields = names.iter().map(|name| field(name)).collect();
    let geometry = Some(GeometryType::Point);
    let schema = Arc::new(Schema { fields, geometry, id: IdRole::Given, ..Schema::default() });
    let values = (0..5).map(Value::Int).collect();
    let event = common::Event { id: "one".to_owned(), geometry: Some(common::point(1.0, 2.0)), values };
    let folder = tempfile::tempdir().unwrap();
    let mut made = UnnamedGeoPackage::begin(folder.path(), "events", &schema, None, AS_OF).unwrap();
    made.write(&build(&schema, &[event]), &[]).unwrap();
    let (mut file, mut content) = (made.finish().unwrap(), Vec::new());
    file.rewind().unwrap();
    file.read_to_end(&mut content).unwrap();
    let path = folder.path().join("events.gpkg");
    std::fs::write(&path, content).unwrap();

    let database = rusqlite::Connection::open(&path).unwrap();
    let mut statement = database.prepare("SELECT * FROM events").unwrap();
    let own = ["@@@fid", "@@geom", "id"];
    assert_eq!(statement.column_names().collect::<Vec<_>>(), [&own[..], &names].concat());
    let numbers: Vec<i64> =
        statement.query_row([], |row| (3..3 + names.len()).map(|at| row.get(at)).collect()).unwrap();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

fn read_path(format: Format, path: &Path, schema: &Arc<Schema>) -> Batch {
    let mut events = reader_of_path(format, path, schema.clone(), &ReadOptions::default()).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = events.next_batch(&BatchLimits::default()).unwrap() {
        batches.push(batch);
    }
    Batch::concat(&batches).unwrap()
}

/// Returns features, one per line, sorted, in the multi form, the only form in such a layer.
fn lines(batch: &Batch, schema: &Arc<Schema>) -> Vec<String> {
    let text = String::from_utf8(write(Format::NdJson, std::slice::from_ref(batch), schema)).unwrap();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.replace("\"MultiPoint\"", "\"Point\"").replace("[[", "[").replace("]]", "]"))
        .collect();
    lines.sort();
    lines
}
