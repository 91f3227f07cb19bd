//! Input that is not stored is refused, repaired or left out, and always reported.

use arrow_array::{ArrayRef, BinaryArray, FixedSizeListArray, Float64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use meridian_formats::{BatchLimits, Format, OnError, ReadError, ReadOptions, Rejects, Report, Unknown, infer, reader};
use meridian_model::{Batch, FieldColumn, Invalid, Schema, geometry, schema_spec};
use std::collections::HashMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex};

fn schema(spec: &str) -> Arc<Schema> {
    Arc::new(schema_spec::parse(spec).unwrap())
}

pub(crate) fn read(
    format: Format,
    bytes: &[u8],
    schema: &Arc<Schema>,
    options: &ReadOptions,
) -> Result<(Batch, Report), ReadError> {
    let mut events = reader(format, Box::new(Cursor::new(bytes.to_vec())), schema.clone(), options)?;
    let mut batches = vec![Batch::empty(schema.clone())];
    while let Some(batch) = events.next_batch(&BatchLimits::default())? {
        batches.push(batch);
    }
    Ok((Batch::concat(&batches).unwrap(), events.report()))
}

fn refused(format: Format, bytes: &[u8], schema: &Arc<Schema>) -> Invalid {
    match read(format, bytes, schema, &ReadOptions::default()) {
        Err(ReadError::Invalid(mistakes)) => mistakes[0].clone(),
        other => panic!("{format}: {other:?}"),
    }
}

/// An Arrow stream of a column `geometry`.
fn arrow(column: ArrayRef) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([("geometry", column)]).unwrap();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn parquet(column: ArrayRef) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([("geometry", column)]).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A point with a height, as the extended and the ISO form of WKB have it.
fn wkb(code: u32) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend(code.to_le_bytes());
    [1.0f64, 2.0, 3.0].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes
}

#[test]
fn heights_are_refused_in_every_format_and_dropped_and_counted_where_asked() {
    let points = schema("*geometry:Point");
    let numbers = |x: f64| Arc::new(Float64Array::from(vec![x])) as ArrayRef;
    let field = |name: &str| Arc::new(ArrowField::new(name, DataType::Float64, true));
    let apart =
        StructArray::from(vec![(field("x"), numbers(1.0)), (field("y"), numbers(2.0)), (field("z"), numbers(3.0))]);
    let in_turn = FixedSizeListArray::new(field("xyz"), 3, Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0])), None);
    let binary = |code: u32| Arc::new(BinaryArray::from(vec![wkb(code).as_slice()])) as ArrayRef;
    let feature = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2,3]},"properties":{}}"#;
    let inputs: Vec<(Format, Vec<u8>)> = vec![
        (Format::GeoJson, feature.into()),
        (Format::GeoJsonSeq, format!("\u{1e}{feature}\n").into()),
        (Format::NdJson, feature.into()),
        (Format::NdJson, r#"{"geometry":{"coordinates":[1,2,3,4],"type":"Point"}}"#.into()),
        (Format::Csv, "geometry\nPOINT Z (1 2 3)\n".into()),
        (Format::Csv, "geometry\nPOINT M (1 2 3)\n".into()),
        (Format::Csv, "geometry\nPOINT (1 2 3)\n".into()),
        (Format::Arrow, arrow(binary(1001))),
        (Format::Arrow, arrow(binary(0x8000_0001))),
        (Format::Arrow, arrow(Arc::new(StringArray::from(vec!["POINT Z (1 2 3)"])))),
        (Format::Arrow, arrow(Arc::new(apart))),
        (Format::Arrow, arrow(Arc::new(in_turn))),
        (Format::GeoParquet, parquet(binary(2001))),
    ];
    let drops = ReadOptions { heights: Unknown::Ignore, ..ReadOptions::default() };
    for (format, bytes) in inputs {
        let mistake = refused(format, &bytes, &points);
        assert!(mistake.not_kept && mistake.detail.contains("height"), "{format}: {mistake}");
        assert_eq!(mistake.field.as_deref(), Some("geometry"), "{format}: {mistake}");
        let (batch, report) = read(format, &bytes, &points, &drops).unwrap();
        assert_eq!(batch.geometry(0), Some(geo_types::Point::new(1.0, 2.0).into()), "{format}");
        assert_eq!(report, Report { heights_dropped: 1, ..Report::default() }, "{format}");
    }
    // A shape without heights is treated the same.
    let flat = feature.replace(",3", "");
    assert_eq!(read(Format::GeoJson, flat.as_bytes(), &points, &drops).unwrap().1, Report::default());
}

#[test]
fn columns_of_types_that_are_not_kept_are_refused_or_left_out_and_named() {
    let part = Arc::new(ArrowField::new("primary", DataType::Utf8, true));
    let names = StructArray::from(vec![(part, Arc::new(StringArray::from(vec!["a"])) as ArrayRef)]);
    let batch = RecordBatch::try_from_iter([
        ("names", Arc::new(names) as ArrayRef),
        ("n", Arc::new(arrow_array::Int64Array::from(vec![1]))),
        ("ids", Arc::new(arrow_array::FixedSizeBinaryArray::try_from(vec![b"0123".as_slice()]).unwrap())),
        ("x", Arc::new(Float64Array::from(vec![2.5]))),
    ])
    .unwrap();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    let mut file = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    file.write(&batch).unwrap();
    let ignores = ReadOptions { unknown: Unknown::Ignore, ..ReadOptions::default() };
    for (format, bytes) in
        [(Format::Arrow, stream.into_inner().unwrap()), (Format::GeoParquet, file.into_inner().unwrap())]
    {
        let look = |options: &ReadOptions| infer(format, Box::new(Cursor::new(bytes.clone())), options);
        let refusal = look(&ReadOptions::default()).unwrap_err().to_string();
        assert!(refusal.contains("names") && refusal.contains("--ignore-unknown"), "{format}: {refusal}");
        let found = look(&ignores).unwrap();
        let is_said = found.notes.iter().any(|note| note.ends_with("left out: names, ids"));
        assert!(is_said, "{format}: {:?}", found.notes);
        let fields: Vec<&str> = found.schema.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(fields, ["n", "x"], "{format}");
        let (batch, _) = read(format, &bytes, &Arc::new(found.schema.clone()), &ignores).unwrap();
        assert_eq!(batch.rows(), 1, "{format}");
    }
}

/// A row in a file of each columnar format: the declared geometry `geom` in another reference system, a text `wkt`,
/// bytes `photo`, and two numbers.
fn with_declared(columns: &[usize]) -> [(Format, Vec<u8>); 2] {
    let bytes = |bytes: &[u8]| Arc::new(BinaryArray::from(vec![bytes])) as ArrayRef;
    let number = |x: f64| Arc::new(Float64Array::from(vec![x])) as ArrayRef;
    let values: Vec<ArrayRef> = vec![
        bytes(&wkb(1)[..21]),
        Arc::new(StringArray::from(vec!["POINT (3 4)"])),
        bytes(b"\xff\xd8"),
        number(5.0),
        number(6.0),
    ];
    let marks = [("ARROW:extension:name", "geoarrow.wkb"), ("ARROW:extension:metadata", r#"{"crs":"EPSG:3857"}"#)];
    let marks = HashMap::from(marks.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let fields: Vec<ArrowField> = ["geom", "wkt", "photo", "east", "north"]
        .iter()
        .zip(&values)
        .map(|(name, values)| ArrowField::new(*name, values.data_type().clone(), true))
        .map(|field| if field.name() == "geom" { field.with_metadata(marks.clone()) } else { field })
        .collect();
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), values).unwrap().project(columns).unwrap();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    let mut file = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    if columns.contains(&0) {
        let geo = r#"{"primary_column":"geom","columns":{"geom":{"encoding":"WKB","crs":"EPSG:3857"}}}"#;
        file.append_key_value_metadata(parquet::file::metadata::KeyValue::new("geo".to_owned(), geo.to_owned()));
    }
    file.write(&batch).unwrap();
    [(Format::Arrow, stream.into_inner().unwrap()), (Format::GeoParquet, file.into_inner().unwrap())]
}

#[test]
fn a_declared_geometry_gives_way_to_the_place_that_an_option_names_and_other_bytes_are_left_out_if_asked() {
    let named = |name: &str| Some(name.to_owned());
    let by_shape = ReadOptions { geometry: named("wkt"), ..ReadOptions::default() };
    let by_points = ReadOptions { lon: named("east"), lat: named("north"), ..ReadOptions::default() };
    for (format, bytes) in with_declared(&[0, 1, 2, 3, 4]) {
        let look = |options: &ReadOptions| infer(format, Box::new(Cursor::new(bytes.clone())), options);
        let refusal = look(&ReadOptions::default()).unwrap_err().to_string();
        assert!(refusal.contains("EPSG:3857"), "{format}: {refusal}");
        for (options, place) in [(&by_shape, (3.0, 4.0)), (&by_points, (5.0, 6.0))] {
            let refusal = look(options).unwrap_err().to_string();
            assert!(refusal.contains("photo") && refusal.contains("--ignore-unknown"), "{format}: {refusal}");
            let ignores = ReadOptions { unknown: Unknown::Ignore, ..options.clone() };
            let found = look(&ignores).unwrap();
            let is_said = found.notes.iter().any(|note| note.ends_with("left out: geom, photo"));
            assert!(is_said, "{format}: {:?}", found.notes);
            let (batch, _) = read(format, &bytes, &Arc::new(found.schema), &ignores).unwrap();
            assert_eq!(batch.geometry(0), Some(geo_types::Point::from(place).into()), "{format}");
        }
        // A collection that has the place already takes it alike.
        let points = schema("east:Double,north:Double,*wkt:Point");
        let (batch, _) = read(format, &bytes, &points, &ReadOptions { unknown: Unknown::Ignore, ..by_shape.clone() })
            .unwrap_or_else(|e| panic!("{format}: {e}"));
        assert_eq!(batch.geometry(0), Some(geo_types::Point::new(3.0, 4.0).into()), "{format}");
    }
    // Without other bytes the option of the place is enough.
    for (format, bytes) in with_declared(&[0, 1]) {
        let found = infer(format, Box::new(Cursor::new(bytes.clone())), &by_shape).unwrap();
        assert!(found.notes.iter().any(|note| note.ends_with("left out: geom")), "{format}: {:?}", found.notes);
        let (batch, _) = read(format, &bytes, &Arc::new(found.schema), &by_shape).unwrap();
        assert_eq!(batch.geometry(0), Some(geo_types::Point::new(3.0, 4.0).into()), "{format}");
    }
    // Bytes that are no geometry are no place either.
    let ignores = ReadOptions { unknown: Unknown::Ignore, ..ReadOptions::default() };
    for (format, bytes) in with_declared(&[2, 3]) {
        let found = infer(format, Box::new(Cursor::new(bytes.clone())), &ignores).unwrap();
        assert_eq!(found.schema.geometry, None, "{format}");
        assert_eq!(read(format, &bytes, &Arc::new(found.schema), &ignores).unwrap().0.rows(), 1, "{format}");
    }
}

#[test]
fn ids_that_cannot_be_kept_are_refused_or_dropped_and_counted() {
    let made = schema("n:Integer");
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef),
        ("n", Arc::new(arrow_array::Int64Array::from(vec![1, 2]))),
    ])
    .unwrap();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    let inputs: [(Format, Vec<u8>); 4] = [
        (Format::GeoJson, r#"{"type":"FeatureCollection","features":[{"type":"Feature","id":7,"geometry":null,"properties":{"n":1}},{"type":"Feature","id":null,"geometry":null,"properties":{"n":2}}]}"#.into()),
        (Format::NdJson, "{\"id\":\"a\",\"n\":1}\n{\"n\":2}\n".into()),
        (Format::Csv, "id,n\na,1\n,2\n".into()),
        (Format::Arrow, stream.into_inner().unwrap()),
    ];
    let drops = ReadOptions { ids: Unknown::Ignore, ..ReadOptions::default() };
    for (format, bytes) in inputs {
        let mistake = refused(format, &bytes, &made);
        assert!(mistake.not_kept && mistake.detail.contains("x-ogc-role"), "{format}: {mistake}");
        assert_eq!(mistake.field.as_deref(), Some("id"), "{format}");
        let (batch, report) = read(format, &bytes, &made, &drops).unwrap();
        assert_eq!((batch.rows(), report.ids_dropped), (2, 1), "{format}");
    }
}

#[test]
fn ids_of_features_that_are_no_ids_are_kept_as_a_field() {
    let feature = |id: &str| format!(r#"{{"type":"Feature",{id}"geometry":null,"properties":{{"n":1}}}}"#);
    let lines = [feature(r#""id":"a","#), feature(r#""id":"a","#), feature(""), feature(r#""id":7,"#)].join("\n");
    let inferred = infer(Format::NdJson, Box::new(Cursor::new(lines.clone())), &ReadOptions::default()).unwrap().schema;
    let schema = Arc::new(inferred);
    let (batch, report) = read(Format::NdJson, lines.as_bytes(), &schema, &ReadOptions::default()).unwrap();
    assert_eq!(report, Report::default());
    let Some(FieldColumn::Text(ids)) = batch.field(schema.field_index("feature_id").unwrap()) else { panic!() };
    assert_eq!(ids.iter().collect::<Vec<_>>(), [Some("a"), Some("a"), None, Some("7")]);
    let twice = feature(r#""id":"a","#).replace(r#""n":1"#, r#""feature_id":"b""#);
    assert_eq!(refused(Format::NdJson, twice.as_bytes(), &schema).field.as_deref(), Some("feature_id"));
}

const BOW: &str = "[[[0,0],[2,2],[2,0],[0,2],[0,0]]]";
const SQUARE: &str = "[[[0,0],[2,0],[2,2],[0,2],[0,0]]]";

fn polygon(rings: &str) -> String {
    format!(r#"{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":{rings}}},"properties":{{}}}}"#)
}

#[test]
fn invalid_events_are_left_out_with_their_lines_and_handed_over() {
    let any = schema("*geometry:Geometry");
    let features = [polygon(SQUARE), polygon(BOW), polygon("[[[0,0],[2,0],[2,2]]]"), polygon(SQUARE), "{".to_owned()];
    let lines = features.join("\n");
    let document = format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, features[..4].join(","));
    let table =
        "geometry\n\"POLYGON((0 0,2 0,2 2,0 2,0 0))\"\n\"POLYGON((0 0,2 2,2 0,0 2,0 0))\"\nPOINT(200 0)\nPOINT(1 1)\n";
    for (format, text, taken, left_out) in [
        (Format::NdJson, lines.as_str(), 2, vec![2, 3, 5]),
        (Format::GeoJson, document.as_str(), 2, vec![2, 3]),
        (Format::Csv, table, 2, vec![3, 4]),
    ] {
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = told.clone();
        let rejects = Rejects::new(move |rejected| {
            notes.lock().unwrap().push((rejected.mistake.line.unwrap(), rejected.event.clone().unwrap()));
            Ok(())
        });
        let options = ReadOptions { on_error: OnError::Skip, rejects: Some(rejects), ..ReadOptions::default() };
        let (batch, report) = read(format, text.as_bytes(), &any, &options).unwrap();
        assert_eq!((batch.rows(), report.skipped), (taken, left_out.len() as u64), "{format}");
        let shown: Vec<u64> = report.skipped_first.iter().map(|m| m.line.unwrap()).collect();
        assert_eq!(shown, left_out, "{format}");
        let told = told.lock().unwrap();
        assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), left_out, "{format}");
        for (_, event) in told.iter() {
            let event: serde_json::Value = serde_json::from_str(event).unwrap();
            assert!(event.is_object() || event == "{", "{format}: {event}");
        }
        // A sample with bad events gives the schema of the good ones.
        let inferred = infer(format, Box::new(Cursor::new(text.to_owned())), &options).unwrap().schema;
        assert!(inferred.geometry.is_some(), "{format}");
    }
}

#[test]
fn polygons_are_mended_where_that_can_be_done() {
    let any = schema("*geometry:Geometry");
    let options = ReadOptions { on_error: OnError::Skip, mend: true, ..ReadOptions::default() };
    for (shape, words) in [
        (polygon(BOW), Some("cut where they meet")),
        (polygon("[[[0,0],[2,0],[2,2],[0,2]]]"), Some("closed")),
        (polygon("[[[0,0],[2,0],[2,2],[0,2],[0,0]],[[1,1],[1,1],[1,1],[1,1]]]"), Some("encloses nothing")),
        (
            polygon(&format!("[{SQUARE},[[[5,5],[6,5],[5,5]]]]")).replace("Polygon", "MultiPolygon"),
            Some("encloses nothing"),
        ),
        (polygon(SQUARE), None),
        (polygon("[[[0,0],[0,0],[2,0],[2,2],[0,0]]]"), None),
    ] {
        let (batch, report) = read(Format::NdJson, shape.as_bytes(), &any, &options).unwrap();
        assert_eq!((batch.rows(), report.skipped), (1, 0), "{shape}: {report:?}");
        geometry::validate(&batch.geometry(0).unwrap()).unwrap();
        match words {
            None => assert_eq!(report.mended, 0, "{shape}: {report:?}"),
            Some(words) => {
                assert_eq!((report.mended, report.mended_first[0].line), (1, Some(1)), "{shape}");
                assert!(report.mended_first[0].detail.contains(words), "{shape}: {report:?}");
                assert!(read(Format::NdJson, shape.as_bytes(), &any, &ReadOptions::default()).is_err(), "{shape}");
            }
        }
    }
    // A shape that encloses nothing, or lies outside the world, cannot be repaired.
    let flat = format!("{}\n{}", polygon("[[[0,0],[2,2],[1,1],[0,0]]]"), polygon("[[[0,0],[200,0],[2,2],[0,0]]]"));
    assert_eq!(read(Format::NdJson, flat.as_bytes(), &any, &options).unwrap().1.skipped, 2);
    // A bow tie is two polygons, which a collection of single ones cannot hold; a schema made for repaired shapes can.
    let bow = polygon(BOW);
    assert_eq!(read(Format::NdJson, bow.as_bytes(), &schema("*geometry:Polygon"), &options).unwrap().1.skipped, 1);
    let inferred = Arc::new(infer(Format::NdJson, Box::new(Cursor::new(bow.clone())), &options).unwrap().schema);
    assert_eq!(read(Format::NdJson, bow.as_bytes(), &inferred, &options).unwrap().1.mended, 1);
}

#[test]
fn positions_follow_the_reference_system_of_the_input() {
    use meridian_model::Crs;
    let any = schema("*geometry:Geometry");
    let feature = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[10,20]},"properties":{}}"#;
    let latitude_first = ReadOptions { crs: Crs::Epsg4326, ..ReadOptions::default() };
    for format in [Format::GeoJson, Format::NdJson, Format::GeoJsonSeq] {
        let (batch, _) = read(format, feature.as_bytes(), &any, &latitude_first).unwrap();
        assert_eq!(batch.geometry(0), Some(geo_types::Point::new(20.0, 10.0).into()), "{format}");
    }
    let far = feature.replace("10", "100");
    let Err(ReadError::Invalid(mistakes)) = read(Format::GeoJson, far.as_bytes(), &any, &latitude_first) else {
        panic!()
    };
    assert!(mistakes[0].detail.contains("latitude first"), "{}", mistakes[0]);
    // The old member is compared with it, by its whole name.
    let with = |name: &str| {
        feature.replacen('{', &format!(r#"{{"crs":{{"type":"name","properties":{{"name":"{name}"}}}},"#), 1)
    };
    let lon_lat = ReadOptions::default();
    for (name, options, taken) in [
        ("urn:ogc:def:crs:OGC:1.3:CRS84", &lon_lat, true),
        ("urn:ogc:def:crs:EPSG::4326", &lon_lat, true),
        ("urn:ogc:def:crs:EPSG::4979", &lon_lat, true),
        ("urn:ogc:def:crs:EPSG::43261", &lon_lat, false),
        ("urn:ogc:def:crs:EPSG::3857", &lon_lat, false),
        ("urn:ogc:def:crs:OGC:1.3:CRS84", &latitude_first, false),
        ("urn:ogc:def:crs:EPSG::4326", &latitude_first, true),
    ] {
        assert_eq!(read(Format::GeoJson, with(name).as_bytes(), &any, options).is_ok(), taken, "{name}");
    }
    let utm = with("urn:ogc:def:crs:EPSG::25832");
    let refusal = read(Format::GeoJson, utm.as_bytes(), &any, &lon_lat).unwrap_err().to_string();
    let words = "crs: the reference system EPSG:25832 is not longitude and latitude (EPSG:4326): convert it: ogr2ogr ";
    assert!(refusal.starts_with(words) && refusal.ends_with(" INPUT"), "{refusal}");
}

#[test]
fn arrow_files_are_read_however_their_head_is_padded() {
    let numbers = Arc::new(arrow_array::Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    for alignment in [8, 16, 32, 64] {
        let version = arrow_ipc::MetadataVersion::V5;
        let options = arrow_ipc::writer::IpcWriteOptions::try_new(alignment, false, version).unwrap();
        let columns = batch.schema();
        let mut file = arrow_ipc::writer::FileWriter::try_new_with_options(Vec::new(), &columns, options).unwrap();
        file.write(&batch).unwrap();
        let bytes = file.into_inner().unwrap();
        assert_eq!(Format::detect("", &bytes), Some(Format::Arrow));
        let read = read(Format::Arrow, &bytes, &schema("n:Long"), &ReadOptions::default());
        assert_eq!(read.unwrap().0.rows(), 3, "{alignment}");
    }
}

#[test]
fn integers_that_a_float_rounds_are_counted_and_named() {
    let floats = schema("x:Double,n:Integer");
    for (format, text, line) in [
        (Format::Csv, "x\n1.5\n9007199254740992\n9007199254740993\n99999999999999999999\n", 4),
        (Format::NdJson, "{\"x\":1.5}\n{\"x\":1e20}\n{\"x\":9007199254740993}\n{\"x\":99999999999999999999}\n", 3),
    ] {
        let (batch, report) = read(format, text.as_bytes(), &floats, &ReadOptions::default()).unwrap();
        assert_eq!((batch.rows(), report.rounded), (4, 2), "{format}: {report:?}");
        let told: Vec<String> = report.rounded_first.iter().map(ToString::to_string).collect();
        let expected = [
            format!("line {line}: x: the integer 9007199254740993 was rounded to 9007199254740992"),
            format!("line {}: x: the integer 99999999999999999999 was rounded to 100000000000000000000", line + 1),
        ];
        assert_eq!(told, expected, "{format}");
    }
    // One of an event that is left out is not there to be told of.
    let skips = ReadOptions { on_error: OnError::Skip, ..ReadOptions::default() };
    let (_, report) = read(Format::Csv, b"x,n\n9007199254740993,a\n1,2\n", &floats, &skips).unwrap();
    assert_eq!((report.skipped, report.rounded), (1, 0), "{report:?}");
}
