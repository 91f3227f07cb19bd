//! Bad input: a clear error with its line and field, and nothing read.

mod bytes;

use crate::common::{self, read_all};
use meridian_formats::{
    BatchLimits, EventReader, Format, MISTAKES_MAX, OnError, ReadError, ReadOptions, Unknown, infer, reader,
};
use meridian_model::{Field, FieldType, GeometryType, IdRole, Invalid, Schema, TimeRole};
use std::io::Cursor;
use std::sync::Arc;

fn schema(geometry: GeometryType) -> Arc<Schema> {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    let schema = Schema {
        fields: vec![
            field("time", FieldType::Time, true),
            field("name", FieldType::Text, false),
            field("n", FieldType::Int, false),
            field("x", FieldType::Float, false),
            field("ok", FieldType::Bool, false),
            field("tags", FieldType::TextList, false),
        ],
        geometry: Some(geometry),
        time: TimeRole::Instant(0),
        id: IdRole::Given,
        ..Schema::default()
    };
    schema.validate().unwrap();
    Arc::new(schema)
}

fn mistakes(format: Format, bytes: &[u8], schema: &Arc<Schema>) -> Vec<Invalid> {
    match read_all(format, bytes.to_vec(), schema, &ReadOptions::default(), &BatchLimits::default()) {
        Ok(batch) => panic!("{format} took {} events of {:?}", batch.rows(), String::from_utf8_lossy(bytes)),
        Err(ReadError::Invalid(mistakes)) => mistakes,
        Err(error) => panic!("{format}: {error}"),
    }
}

/// Compares the only error of an input with the expected one.
fn check(format: Format, bytes: &[u8], schema: &Arc<Schema>, line: Option<u64>, field: Option<&str>, words: &str) {
    let found = mistakes(format, bytes, schema);
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]);
    assert_eq!(found.len(), 1, "{format} {shown}: {found:?}");
    assert_eq!((found[0].line, found[0].field.as_deref()), (line, field), "{format} {shown}: {}", found[0]);
    assert!(found[0].detail.contains(words), "{format} {shown}: {}", found[0]);
}

const GOOD: &str = r#"{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"time":"2026-01-31T12:00:00Z"}}"#;

/// Returns a feature with another geometry.
fn placed(geometry: &str) -> String {
    GOOD.replace(r#"{"type":"Point","coordinates":[1,2]}"#, geometry)
}

/// Returns a feature with one more property.
fn with(property: &str) -> String {
    GOOD.replace(r#"12:00:00Z""#, &format!(r#"12:00:00Z",{property}"#))
}

#[test]
fn bad_features_are_told_by_line_and_field() {
    let point = |position: &str| placed(&format!(r#"{{"type":"Point","coordinates":{position}}}"#));
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for (feature, field, words) in [
        (point("[200,2]"), Some("geometry"), "longitude 200 is outside -180..180"),
        (point("[1,-91]"), Some("geometry"), "latitude -91"),
        (point("[48.85,120.35]"), Some("geometry"), "swapped"),
        (point("[180.000001,2]"), Some("geometry"), "longitude 180.000001"),
        (point("[1e999,2]"), Some("geometry"), "too large"),
        (point("[NaN,2]"), Some("geometry"), "not JSON: a number was expected"),
        (point("[null,2]"), Some("geometry"), "a number was expected"),
        (point("[\"1\",2]"), Some("geometry"), "a number was expected"),
        (point("[1]"), Some("geometry"), "a position of 1 numbers"),
        (point("[]"), Some("geometry"), "a position of 0 numbers"),
        (placed(r#"{"type":"Circle","coordinates":[1,2]}"#), Some("geometry"), "\"Circle\" is not a type of geometry"),
        (placed(r#"{"type":"Point"}"#), Some("geometry"), "no coordinates"),
        (placed(r#"{"coordinates":[1,2]}"#), Some("geometry"), "no type"),
        (placed(r#"{"type":"GeometryCollection","geometries":[]}"#), Some("geometry"), "GeometryCollection"),
        (placed(r#"{"type":"LineString","coordinates":[[1,2],[3,4]]}"#), Some("geometry"), "a LineString where"),
        (placed("7"), Some("geometry"), "'{' was expected"),
        (with(r#""n":"x""#), Some("n"), "the text \"x\" where an integer"),
        (with(r#""n":1.5"#), Some("n"), "the number 1.5"),
        (with(r#""n":1e300"#), Some("n"), "too large: expected an integer"),
        (with(r#""n":9223372036854775808"#), Some("n"), "too large: expected an integer"),
        (with(r#""x":true"#), Some("x"), "true where a number"),
        (with(r#""ok":1"#), Some("ok"), "the integer 1 where a boolean"),
        (with(r#""name":[1]"#), Some("name"), "a list where a string"),
        (with(r#""name":{}"#), Some("name"), "an object where a string"),
        (with(r#""tags":["a",1]"#), Some("tags"), "strings only"),
        (with(r#""tags":"a""#), Some("tags"), "where a list of strings"),
        (with(r#""colour":1"#), Some("colour"), "no such field; the fields are time, name, n, x, ok, tags"),
        (with(r#""n":1,"n":2"#), Some("n"), "occurs twice"),
        (with(&format!(r#""name":{deep}"#)), Some("name"), "a list where"),
        (GOOD.replace("12:00:00Z", "12:00:00"), Some("time"), "no time zone"),
        (GOOD.replace("2026-01-31", "2026-02-31"), Some("time"), "is not a time"),
        (GOOD.replace("12:00:00Z", "24:00:00Z"), Some("time"), "is not a time"),
        (GOOD.replace("12:00:00Z", "12:00:00+25:00"), Some("time"), "has an offset that no clock has"),
        (GOOD.replace("\"2026-01-31T12:00:00Z\"", "1769860800"), Some("time"), "the integer 1769860800"),
        (GOOD.replace("\"2026-01-31T12:00:00Z\"", "null"), Some("time"), "no value where this collection requires"),
        (GOOD.replace(r#""id":"a","#, ""), Some("id"), "the event has no id"),
        (GOOD.replace(r#""id":"a","#, r#""id":"","#), Some("id"), "1 to 1024 bytes"),
        (GOOD.replace(r#""id":"a","#, r#""id":[1],"#), Some("id"), "a string or a number"),
        (GOOD.replace(r#""id":"a","#, r#""id":"a","id":"b","#), Some("id"), "two members"),
        (GOOD.replace(r#""type":"Feature","#, r#""type":"Feature","type":"Feature","#), Some("type"), "two members"),
        (GOOD.replace(r#""type":"Feature","#, r#""type":"Point","#), Some("type"), "Point"),
        (GOOD.replace(r#""properties":{"#, r#""properties":[{"#).replace("}}", "}]}"), Some("properties"), "an object"),
        (GOOD.replace(r#""id":"a","#, r#""id":"a","crs":{"name":"EPSG:3857"},"#), Some("crs"), "EPSG:3857"),
        (GOOD.replace(r#""id":"a""#, r#""id":"\ud800""#), Some("id"), "surrogates"),
    ] {
        let text = format!("{GOOD}\n\n{feature}\n{GOOD}");
        check(Format::NdJson, text.as_bytes(), &schema(GeometryType::Point), Some(3), field, words);
        let text = format!(r#"{{"type":"FeatureCollection","features":[{GOOD},{feature},{GOOD}]}}"#);
        check(Format::GeoJson, text.as_bytes(), &schema(GeometryType::Point), Some(2), field, words);
        let text = format!("\u{1e}{GOOD}\n\u{1e}{feature}\n\u{1e}{GOOD}\n");
        check(Format::GeoJsonSeq, text.as_bytes(), &schema(GeometryType::Point), Some(2), field, words);
    }
}

#[test]
fn bad_shapes_are_told() {
    for (coordinates, words) in [
        ("[[[0,0],[4,0],[4,4]]]", "not closed: it begins at [0, 0] and ends at [4, 4]"),
        ("[[[0,0],[4,0],[0,0]]]", "expected at least 4"),
        ("[[[0,0],[4,4],[4,0],[0,4],[0,0]]]", "self-intersection"),
        ("[[[0,0],[0,0],[0,0],[0,0]]]", "not valid"),
        ("[[[0,0],[4,0],[4,4],[0,0]],[[5,5],[6,5],[6,6],[5,5]]]", "not valid"),
        ("[[]]", "no positions"),
        ("[]", "without rings"),
        ("[[[0,0],[4,0],[4,100],[0,0]]]", "latitude 100"),
    ] {
        let polygon = placed(&format!(r#"{{"type":"Polygon","coordinates":{coordinates}}}"#));
        check(Format::NdJson, polygon.as_bytes(), &schema(GeometryType::Any), Some(1), Some("geometry"), words);
        let polygons = placed(&format!(r#"{{"coordinates":[{coordinates}],"type":"MultiPolygon"}}"#));
        check(Format::NdJson, polygons.as_bytes(), &schema(GeometryType::Any), Some(1), Some("geometry"), words);
    }
    let line = placed(r#"{"type":"LineString","coordinates":[[1,2]]}"#);
    check(Format::NdJson, line.as_bytes(), &schema(GeometryType::Any), Some(1), Some("geometry"), "two positions");
}

#[test]
fn a_bad_place_has_the_name_of_the_schema() {
    let named = Schema { geometry_name: "place".into(), ..(*schema(GeometryType::Point)).clone() };
    let points = Arc::new(named);
    for position in ["[\"a\",0]", "[200,0]", "[1]"] {
        let feature = placed(&format!(r#"{{"type":"Point","coordinates":{position}}}"#));
        check(Format::GeoJson, feature.as_bytes(), &points, Some(1), Some("place"), "");
    }
    for flat in [r#""lon":200,"lat":1"#, r#""lon":1"#] {
        let event = format!(r#"{{"id":"a","time":"2026-01-31T12:00:00Z",{flat}}}"#);
        check(Format::NdJson, event.as_bytes(), &points, Some(1), Some("place"), "");
    }
    let row = "id,lon,lat,time\na,200,2,2026-01-31T12:00:00Z\n";
    check(Format::Csv, row.as_bytes(), &points, Some(2), Some("place"), "longitude 200");
}

#[test]
fn broken_json_is_told() {
    let whole = format!(r#"{{"type":"FeatureCollection","features":[{GOOD},{GOOD}]}}"#);
    let points = schema(GeometryType::Point);
    for cut in 1..whole.len() {
        let found = mistakes(Format::GeoJson, &whole.as_bytes()[..cut], &points);
        assert!(found.iter().any(|m| m.detail.contains("ends")), "cut at {cut}: {found:?}");
    }
    for (text, words) in [
        ("", "the input is empty"),
        ("  \n ", "the input is empty"),
        ("1", "a GeoJSON object was expected"),
        ("[1]", "'{' was expected"),
        ("[,]", "a value was expected"),
        ("[] x", "ndjson"),
        ("[", "ends"),
        (r#"{"type":"FeatureCollection"}"#, "no array of features"),
        (r#"{"features":[]}"#, "FeatureCollection"),
        (r#"{"type":"FeatureCollection","features":[]} x"#, "ndjson"),
        (r#"{"type":"FeatureCollection","features":[,]}"#, "a value was expected"),
        (r#"{"type":"FeatureCollection","features":[] "a":1}"#, "a member or '}'"),
        (
            r#"{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"EPSG:28992"}},"features":[]}"#,
            "28992",
        ),
        ("\u{feff}x", "a GeoJSON object was expected"),
    ] {
        let found = mistakes(Format::GeoJson, text.as_bytes(), &points);
        assert!(found[0].detail.contains(words), "{text}: {}", found[0]);
    }
    check(
        Format::NdJson,
        format!("{GOOD}\n{GOOD} {GOOD}\n").as_bytes(),
        &points,
        Some(2),
        None,
        "the end was expected",
    );
    check(
        Format::NdJson,
        format!("{GOOD}\n{}\n", &GOOD[..50]).as_bytes(),
        &points,
        Some(2),
        Some("geometry"),
        "where the text ends",
    );
}

#[test]
fn mistakes_in_a_document_of_several_lines_have_theirs() {
    let points = schema(GeometryType::Point);
    // More than is held at once.
    let many = format!("{GOOD},\n").repeat(4000);
    let document = |feature: &str| format!("{{\"type\":\"FeatureCollection\",\n\"features\":[\n{many}\n{feature}\n]}}");
    for (feature, words) in [
        (placed(r#"{"type":"Point","coordinates":[200,2]}"#), "(on line 4004)"),
        (placed("{\"type\":\"Point\",\n\"coordinates\":[null,0]}"), "a number was expected, found 'n' (on line 4004)"),
        (with("\"n\":\n"), "a value was expected, found '}' (on line 4005)"),
        ("\n,".to_owned(), "a value was expected, found ',' (on line 4005)"),
    ] {
        let found = mistakes(Format::GeoJson, document(&feature).as_bytes(), &points);
        assert_eq!(found[0].line.unwrap() / 4000, 1, "{}", found[0]);
        assert!(found[0].detail.ends_with(words), "{}", found[0]);
        let line = found[0].on_line.map(|line| format!("(on line {line})"));
        assert!(line.is_some_and(|line| words.ends_with(&line)), "{:?}", found[0].on_line);
    }
}

#[test]
fn bad_rows_are_told_by_line_and_field() {
    let header = "id,lon,lat,time,name,n,x,ok,tags";
    let good = "a,1,2,2026-01-31T12:00:00Z,b,3,4.5,true,\"[\"\"c\"\"]\"";
    for (row, field, words) in [
        ("a,200,2,2026-01-31T12:00:00Z,,,,,", Some("geometry"), "longitude 200"),
        ("a,48.85,120.35,2026-01-31T12:00:00Z,,,,,", Some("geometry"), "swapped"),
        ("a,NaN,2,2026-01-31T12:00:00Z,,,,,", Some("geometry"), "finite"),
        ("a,inf,2,2026-01-31T12:00:00Z,,,,,", Some("geometry"), "finite"),
        ("a,1°,2,2026-01-31T12:00:00Z,,,,,", Some("lon"), "\"1°\" where a number of degrees"),
        ("a,1,,2026-01-31T12:00:00Z,,,,,", Some("geometry"), "one is missing"),
        (",1,2,2026-01-31T12:00:00Z,,,,,", Some("id"), "the event has no id"),
        ("a,1,2,2026-01-31T12:00:00,,,,,", Some("time"), "no time zone"),
        ("a,1,2,2026-01-31,,,,,", Some("time"), "no time zone"),
        ("a,1,2,yesterday,,,,,", Some("time"), "is not a time"),
        ("a,1,2,,,,,,", Some("time"), "no value"),
        ("a,1,2,2026-01-31T12:00:00Z,,1.5,,,", Some("n"), "1.5 where an integer"),
        ("a,1,2,2026-01-31T12:00:00Z,,x,,,", Some("n"), "\"x\" where an integer"),
        ("a,1,2,2026-01-31T12:00:00Z,,,NaN,,", Some("x"), "NaN where a number"),
        ("a,1,2,2026-01-31T12:00:00Z,,,-inf,,", Some("x"), "inf where a number"),
        ("a,1,2,2026-01-31T12:00:00Z,,,,yes,", Some("ok"), "\"yes\" where a boolean"),
        ("a,1,2,2026-01-31T12:00:00Z,,,,,c;d", Some("tags"), "expected a list such as"),
        ("a,1,2,2026-01-31T12:00:00Z,,,,", None, "a row of 8 fields where the header has 9; was the row cut off?"),
        ("a,1,2,2026-01-31T12:00:00Z,,,,,,", None, "a row of 10 fields where the header has 9"),
        ("a,1,2,2026-01-31T12:00:00Z,\"b\"c,,,,", None, "field 5: something follows the closing quote"),
    ] {
        let text = format!("{header}\n{good}\n{}\n{row}\n{good}\n", good.replace(",b,", ",\"multi\nline\","));
        check(Format::Csv, text.as_bytes(), &schema(GeometryType::Point), Some(5), field, words);
    }
    let text = format!("{header}\n{good}\na,1,2,\"2026");
    check(Format::Csv, text.as_bytes(), &schema(GeometryType::Point), Some(3), None, "the quote is not closed");
    // Columns without a name may be there, empty.
    let text = format!(",{header},\n,{good},\n{good},7,8\n,{good},7\n");
    let found = mistakes(Format::Csv, text.as_bytes(), &schema(GeometryType::Point));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let words = ["line 3: a value in column 1, which has no name", "line 4: a value in column 11, which has no name"];
    assert!(found.len() == 2 && found.iter().zip(words).all(|(found, words)| found.starts_with(words)), "{found:?}");
    for (header, field, words) in [
        ("", None, "the input is empty"),
        ("id,lon,time", None, "a column of longitude but none of latitude"),
        ("id,lon,lat", Some("time"), "no column of this name"),
        ("lon,lat,time", Some("id"), "no column of ids"),
        ("id,lon,lat,time,colour", Some("colour"), "no such field; the fields are time"),
        ("id,lon,lat,time,n,n", Some("n"), "two columns have this name"),
        ("id,lon,lat,time,wkt", Some("wkt"), "beside longitude and latitude"),
    ] {
        check(Format::Csv, header.as_bytes(), &schema(GeometryType::Point), Some(1), field, words);
    }
    for (wkt, words) in [
        ("POLYGON((0 0,4 0,4 4))", "not closed"),
        ("POLYGON((0 0,4 4,4 0,0 4,0 0))", "self-intersection"),
        ("POINT(nan 2)", "finite"),
        ("POINT(1)", "a number was expected"),
    ] {
        let text = format!("id,time,wkt\na,2026-01-31T12:00:00Z,\"{wkt}\"\n");
        check(Format::Csv, text.as_bytes(), &schema(GeometryType::Any), Some(2), Some("wkt"), words);
    }
}

#[test]
fn at_most_a_hundred_mistakes_are_collected() {
    let points = schema(GeometryType::Point);
    let bad = GOOD.replace("[1,2]", "[999,2]");
    let text = format!("{bad}\n").repeat(150) + "broken";
    let found = mistakes(Format::NdJson, text.as_bytes(), &points);
    assert_eq!(found.len(), MISTAKES_MAX);
    assert_eq!(found.last().unwrap().line, Some(100));
    // A stop after some errors includes them.
    let text = format!(r#"{{"type":"FeatureCollection","features":[{bad},{GOOD},{bad}"#);
    let found = mistakes(Format::GeoJson, text.as_bytes(), &points);
    assert_eq!(found.iter().map(|m| m.line).collect::<Vec<_>>(), [Some(1), Some(3), Some(3)]);
}

#[test]
fn nothing_of_a_bad_batch_is_given_out() {
    let points = schema(GeometryType::Point);
    let bad = GOOD.replace("[1,2]", "[999,2]");
    let text = format!("{GOOD}\n{GOOD}\n{GOOD}\n{bad}\n{GOOD}\n");
    let open = |on_error| -> Box<dyn EventReader> {
        let options = ReadOptions { on_error, ..ReadOptions::default() };
        reader(Format::NdJson, Box::new(Cursor::new(text.clone())), points.clone(), &options).unwrap()
    };
    let two = BatchLimits { rows: 2, ..BatchLimits::default() };
    for on_error in [OnError::First, OnError::Collect] {
        let mut events = open(on_error);
        assert_eq!(events.next_batch(&two).unwrap().unwrap().rows(), 2);
        let error = events.next_batch(&two).unwrap_err();
        assert_eq!(error.first().unwrap().line, Some(4));
        assert_eq!(events.line(), if on_error == OnError::First { 4 } else { 5 });
        assert!(events.next_batch(&two).unwrap().is_none());
    }
}

#[test]
fn options_change_what_is_taken() {
    let points = schema(GeometryType::Point);
    let all = BatchLimits::default();
    let local = GOOD.replace("12:00:00Z", "12:00:00");
    let zone = Some(meridian_model::time::zone("+01:00").unwrap());
    let options = ReadOptions { zone, ..ReadOptions::default() };
    let batch = read_all(Format::NdJson, local.into_bytes(), &points, &options, &all).unwrap();
    assert_eq!(batch.interval(0).0, meridian_model::time::parse_instant("2026-01-31T11:00:00Z", None).unwrap());

    let options = ReadOptions { unknown: Unknown::Ignore, ..ReadOptions::default() };
    let batch = read_all(Format::NdJson, with("\"colour\":[1]").into_bytes(), &points, &options, &all).unwrap();
    assert_eq!(batch.rows(), 1);

    let options = ReadOptions { id_if_absent: Some("b".into()), ..ReadOptions::default() };
    let text = format!("{}\n{GOOD}", GOOD.replace("\"id\":\"a\",", ""));
    let batch = read_all(Format::NdJson, text.into_bytes(), &points, &options, &all).unwrap();
    assert_eq!(batch.ids().unwrap().iter().collect::<Vec<_>>(), [Some("b"), Some("a")]);

    let options = ReadOptions {
        lon: Some("east".into()),
        lat: Some("north".into()),
        time: Some("seen".into()),
        id: Some("key".into()),
        epoch: Some(meridian_formats::Epoch::Seconds),
        nulls: vec!["NA".into()],
        ..ReadOptions::default()
    };
    let table = "key;east;north;seen;name;n\n1;2;3;60;NA;NA\n";
    let batch = read_all(Format::Csv, table.as_bytes().to_vec(), &points, &options, &all).unwrap();
    assert_eq!(batch.interval(0), (60_000_000, 60_000_000));
    assert_eq!(batch.geometry(0), Some(common::point(2.0, 3.0)));
    let schema = infer(Format::Csv, Box::new(Cursor::new(table)), &options).unwrap().schema;
    assert_eq!(schema.time, TimeRole::Instant(0));
    assert_eq!((schema.id, schema.id_name.as_str()), (IdRole::Given, "key"));
}

#[test]
fn noise_at_the_edge_of_the_world_is_taken_as_the_edge() {
    let points = schema(GeometryType::Point);
    let text = GOOD.replace("[1,2]", "[180.00000000000006,-90.0000000001]");
    let batch = read_all(Format::NdJson, text.into_bytes(), &points, &ReadOptions::default(), &BatchLimits::default());
    assert_eq!(batch.unwrap().geometry(0), Some(common::point(180.0, -90.0)));
}
